package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/persistence/thread"
)

func TestEncodedEventsAreReadable(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []thread.Event
		want   string
	}{
		{"none", nil, `[]`},
		{"one", []thread.Event{{First: 1, Last: 1, Data: []byte(`{"type":"A"}`)}}, "[\n[1,1,{\"type\":\"A\"}]]"},
		{"two", []thread.Event{{First: 1, Last: 9, Data: []byte(`{}`)}, {First: 10, Last: 10, Data: []byte(" 1e400\n")}},
			"[\n[1,9,{}],\n[10,10, 1e400\n]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := encodeEvents(c.events)
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != c.want {
				t.Errorf("text is %q, want %q", text, c.want)
			}
			if !json.Valid(text) {
				t.Error("the text is not JSON")
			}
		})
	}
}

func TestMoreThanADatabaseTakesIsTooLarge(t *testing.T) {
	data := make([]byte, 64<<20)
	events := slices.Repeat([]thread.Event{{Data: data}}, 16)
	if _, err := encodeEvents(events); !errors.Is(err, thread.ErrTooLarge) {
		t.Errorf("error is %v, want ErrTooLarge", err)
	}
}

func TestDecodeRefusesWhatEncodeDoesNotMake(t *testing.T) {
	for _, text := range []string{
		``, `[`, `]`, `{}`, `null`, `[]]`, `[] `, "[\n]", "[\n[", "[\n[1", "[\n[1,", "[\n[1,1", "[\n[1,1,", "[\n[1,1,]]",
		"[\n[1,1,{]]", "[\n[1,1,{}]", "[\n[1,1,{}],", "[\n[1,1,{}],]", "[\n[1,1,{}]\n[2,2,{}]]", "[[1,1,{}]]",
		"[\n[x,1,{}]]", "[\n[1,-1,{}]]", "[\n[1,1.5,{}]]", "[\n[99999999999999999999,1,{}]]", "[\n[,1,{}]]",
		"[\n[1,1,\"]]", "[\n[1,1,\"\\\"]]", "[\n[1,1,}]]",
	} {
		t.Run(text, func(t *testing.T) {
			events, err := decodeEvents([]byte(text), 1)
			if !errors.Is(err, thread.ErrCorrupt) {
				t.Errorf("events %v, error %v, want ErrCorrupt", events, err)
			}
		})
	}
}

// value draws a JSON value with whatever may stand around and within it.
func value() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", "", " ", "\n", "\r\n\t"})
		return space.Draw(t, "before") + draw(t, 3) + space.Draw(t, "after")
	})
}

func draw(t *rapid.T, depth int) string {
	kinds := 3
	if depth == 0 {
		kinds = 1
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{`1e400`, `-0`, `12345678901234567890`, `null`, `true`, `"\ud800"`, `"\u0000"`, `"]"`, `"\\"`}).Draw(t, "scalar")
	case 1:
		text, err := json.Marshal(rapid.StringOf(rapid.SampledFrom([]rune(`ab"\[]{},/é😀 `))).Draw(t, "string"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	case 2:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = draw(t, depth-1)
		}
		return "[" + strings.Join(items, ", ") + "]"
	default:
		members := make([]string, rapid.IntRange(0, 3).Draw(t, "members"))
		for i := range members {
			members[i] = rapid.SampledFrom([]string{`"a"`, `"]"`, `"\""`, `"\\"`}).Draw(t, "name") + " : " + draw(t, depth-1)
		}
		return "{" + strings.Join(members, ",") + "}"
	}
}

func drawEvents(t *rapid.T) []thread.Event {
	events := make([]thread.Event, rapid.IntRange(0, 8).Draw(t, "events"))
	for i := range events {
		events[i] = thread.Event{
			First: rapid.Uint64().Draw(t, "first"),
			Last:  rapid.Uint64().Draw(t, "last"),
			Data:  []byte(value().Draw(t, "data")),
		}
	}
	return events
}

func TestEventsComeBackByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		text, err := encodeEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Fatalf("%q is not JSON", text)
		}
		got, err := decodeEvents(text, rapid.IntRange(-1, 1<<40).Draw(t, "count"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(events, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryChangedByteIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := encodeEvents(drawEvents(t))
		if err != nil {
			t.Fatal(err)
		}
		row := AgentRun{Events: string(text)}
		row.Version, row.Checksum = eventsVersion, checksum(text)
		if _, err := row.events(); err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		row.Events = string(text)
		if _, err := row.events(); !errors.Is(err, thread.ErrCorrupt) {
			t.Fatalf("error is %v, want ErrCorrupt", err)
		}
	})
}

func TestEventsOfAnotherVersionAreRefused(t *testing.T) {
	row := AgentRun{Events: "[]"}
	row.Version, row.Checksum = eventsVersion+1, checksum([]byte("[]"))
	if _, err := row.events(); !errors.Is(err, thread.ErrCorrupt) {
		t.Errorf("error is %v, want ErrCorrupt", err)
	}
}

func TestDecodedEventsDoNotGrowIntoEachOther(t *testing.T) {
	text, err := encodeEvents([]thread.Event{{First: 1, Last: 1, Data: []byte(`{}`)}, {First: 2, Last: 2, Data: []byte(`[]`)}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := decodeEvents(text, 2)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(events[0].Data, "xxxxxxxxxxxx"...)
	if string(events[1].Data) != `[]` {
		t.Errorf("the second event became %q", events[1].Data)
	}
}

// FuzzDecode: no text breaks the decoder, and one that it takes is made of the parts that it gives.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"[]", "[\n[1,1,{}]]", "[\n[1,2,{\"a\":\"]\\\"\"}],\n[3,3,[[1],2]]]", "[\n[1,1,\"\\"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := decodeEvents(text, len(text))
		if err != nil {
			if !errors.Is(err, thread.ErrCorrupt) {
				t.Fatalf("error is %v, want ErrCorrupt", err)
			}
			return
		}
		rest := text
		for _, e := range events {
			at := bytes.Index(rest, e.Data)
			if len(e.Data) == 0 || at < 0 {
				t.Fatalf("event %q is not in %q", e.Data, rest)
			}
			rest = rest[at+len(e.Data):]
		}
	})
}

// FuzzEncode: an event is refused, or comes back as it was between its neighbours.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"\ud800\u0000]"}`, " 1e400 ", `"\\"`, `]`, `{}]`, `{},{}`, "\xff", ``, `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		events := []thread.Event{{First: 1, Last: 1, Data: []byte(`{"n":1}`)}, {First: 2, Last: 3, Data: data}, {First: 4, Last: 4, Data: []byte(`"z"`)}}
		text, err := encodeEvents(events)
		if err != nil {
			if !errors.Is(err, thread.ErrBadInput) || checkJSON(data) == nil {
				t.Fatalf("error is %v for %q", err, data)
			}
			return
		}
		got, err := decodeEvents(text, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(events, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func manyEvents(n int) []thread.Event {
	events := make([]thread.Event, n)
	for i := range events {
		data := fmt.Appendf(nil, `{"type":"TOOL_CALL_ARGS","toolCallId":"call-%d","delta":"{\"path\":\"a\\\\b\"}"}`, i)
		events[i] = thread.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: data}
	}
	return events
}

func BenchmarkEncode20000(b *testing.B) {
	events := manyEvents(20_000)
	b.ReportAllocs()
	for b.Loop() {
		text, err := encodeEvents(events)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}

func BenchmarkDecode20000(b *testing.B) {
	text, err := encodeEvents(manyEvents(20_000))
	if err != nil {
		b.Fatal(err)
	}
	row := AgentRun{Events: string(text)}
	row.Version, row.Checksum, row.EventCount = eventsVersion, checksum(text), 20_000
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := row.events(); err != nil {
			b.Fatal(err)
		}
	}
}
