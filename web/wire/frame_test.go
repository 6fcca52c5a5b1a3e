package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/web/wire"
)

func TestParseRefusesWhatIsNoFrame(t *testing.T) {
	tests := map[string]string{
		"nothing":                 ``,
		"no JSON":                 `hello`,
		"an object":               `{"topic":"t"}`,
		"null":                    `null`,
		"four elements":           `["1","1","t","e"]`,
		"six elements":            `["1","1","t","e",{},{}]`,
		"a number as join_ref":    `[1,"1","t","e",{}]`,
		"a number as ref":         `["1",1,"t","e",{}]`,
		"null as topic":           `["1","1",null,"e",{}]`,
		"null as event":           `["1","1","t",null,{}]`,
		"a list as payload":       `["1","1","t","e",[]]`,
		"a string as payload":     `["1","1","t","e","{}"]`,
		"a number as payload":     `["1","1","t","e",1]`,
		"something after the end": `["1","1","t","e",{}] x`,
		"broken off":              `["1","1","t","e",{"a":`,
		"a payload that is wrong": `["1","1","t","e",{a:1}]`,
		"bytes that are no UTF-8": "[\"1\",\"1\",\"t\",\"e\",{\"a\":\"\xff\"}]",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if f, err := wire.Parse([]byte(text)); !errors.Is(err, wire.ErrFrame) {
				t.Fatalf("read as %+v, %v", f, err)
			}
		})
	}
}

func TestParseReadsVariants(t *testing.T) {
	tests := map[string]struct {
		text string
		want wire.Frame
	}{
		"null refs and null payload": {`[null,null,"t","e",null]`, wire.Frame{Topic: "t", Event: "e", Payload: []byte(`{}`)}},
		"white space": {" [ \"1\" ,\n\"2\", \"t\", \"e\",  {\"a\" : 1} ] ",
			wire.Frame{"1", "2", "t", "e", []byte(`{"a" : 1}`)}},
		"escapes": {`["\u0031","2","thread:\u00e4\/\ud83d\ude00","e",{"a":"\u0000"}]`,
			wire.Frame{"1", "2", "thread:ä/😀", "e", []byte(`{"a":"\u0000"}`)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := wire.Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// carried are event texts that any decoder and encoder in between would change.
var carried = []string{
	"{\n  \"type\": \"CUSTOM\",\n  \"value\": { }\n}",
	`{"type":"CUSTOM","value":1e400}`,
	`{"type":"CUSTOM","value":12345678901234567890.10}`,
	"{\"type\":\"CUSTOM\",\"value\":\"\u2028\u2029<>&\"}",
	`{"type":"CUSTOM","value":"\ud800 \u0000 \/"}`,
	`{"b":1,"a":2,"b":3,"type":"CUSTOM"}`,
	`{"type":"CUSTOM","value":null,"":{},"x":[]}`,
}

func TestEventsAreCarriedByteForByte(t *testing.T) {
	var texts [][]byte
	for _, e := range carried {
		texts = append(texts, []byte(e))
	}
	e := wire.Events{RunID: "r", From: "1-0", To: "1-7", Events: texts}
	frame := wire.AppendPush(nil, "1", "thread:t", wire.EventEvents, e.Append(nil))
	if want := strings.Join(carried, ","); !bytes.Contains(frame, []byte(`"events":[`+want+`]}]`)) {
		t.Fatalf("the events are not there as they were:\n%s", frame)
	}
	f, err := wire.Parse(frame)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Events []json.RawMessage }
	if err := json.Unmarshal(f.Payload, &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range carried {
		if string(got.Events[i]) != want {
			t.Errorf("event %d came back as %s, want %s", i, got.Events[i], want)
		}
	}
}

func TestEventsKnowTheirSize(t *testing.T) {
	for n := range 4 {
		e := wire.Events{RunID: strings.Repeat("r", 256), From: "9223372036854775807-9223372036854775807",
			To: "9223372036854775807-9223372036854775807"}
		for range n {
			e.Events = append(e.Events, []byte(carried[0]))
		}
		if got := len(e.Append(nil)); got > e.Size() {
			t.Errorf("%d events: %d bytes, more than the %d that were reserved", n, got, e.Size())
		}
	}
}

func TestStringsAreQuoted(t *testing.T) {
	for _, s := range []string{"", "plain", `a"b\c`, "a\nb", "ä😀", "\u2028", "<script>", "\x7f", "&"} {
		t.Run(s, func(t *testing.T) {
			var back string
			if err := json.Unmarshal(wire.AppendString(nil, s), &back); err != nil || back != s {
				t.Fatalf("%q came back as %q, %v", s, back, err)
			}
		})
	}
}

func TestBinaryPushIsRead(t *testing.T) {
	// phoenix-copilotkit.md, 1.7: join_ref "3", ref "4", topic "t:1", event "up", data 01 02 03.
	data := []byte("\x00\x01\x01\x03\x0234t:1up\x01\x02\x03")
	f, err := wire.ParseBinary(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.Frame{"3", "4", "t:1", "up", []byte("{}")}, f); diff != "" {
		t.Fatal(diff)
	}
	for n := range len(data) - 3 {
		if f, err := wire.ParseBinary(data[:n]); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%d bytes of it were read as %+v, %v", n, f, err)
		}
	}
	data[0] = 1
	if f, err := wire.ParseBinary(data); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a reply was read as a push: %+v, %v", f, err)
	}
	if f, err := wire.ParseBinary([]byte("\x00\x01\x01\x01\x01\xff234")); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a join_ref that is no UTF-8 was read: %+v, %v", f, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"client", "server", "errors"} {
		files, err := os.ReadDir("testdata/" + folder)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			f.Add(golden(f, folder+"/"+strings.TrimSuffix(file.Name(), ".json")))
		}
	}
	f.Add([]byte(`[null,null,"\ud800","\u0000",null]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := wire.Parse(text)
		if err != nil {
			if !errors.Is(err, wire.ErrFrame) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		printed := print(first)
		again, err := wire.Parse(printed)
		if err != nil {
			t.Fatalf("%q was read, but not what was printed of it, %q: %v", text, printed, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
		if once := print(again); !bytes.Equal(printed, once) {
			t.Fatalf("printed as %q and then as %q", printed, once)
		}
	})
}

// print writes a frame of a client with what writes frames of the server: reading asks for no more.
func print(f wire.Frame) []byte {
	push := wire.AppendPush(nil, f.JoinRef, f.Topic, f.Event, f.Payload)
	if f.Ref == "" {
		return push
	}
	head := wire.AppendPush(nil, f.JoinRef, "", "", nil)
	at := bytes.Index(head, []byte(",null"))
	return append(wire.AppendString(append([]byte(nil), push[:at+1]...), f.Ref), push[at+len(",null"):]...)
}

func FuzzParseBinary(f *testing.F) {
	f.Add([]byte("\x00\x01\x01\x03\x0234t:1up\x01\x02\x03"))
	f.Add([]byte("\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := wire.ParseBinary(data)
		if err != nil {
			if !errors.Is(err, wire.ErrFrame) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		head := []byte{0, byte(len(got.JoinRef)), byte(len(got.Ref)), byte(len(got.Topic)), byte(len(got.Event))}
		head = append(head, got.JoinRef+got.Ref+got.Topic+got.Event...)
		if !bytes.HasPrefix(data, head) {
			t.Fatalf("%q was read as %+v", data, got)
		}
	})
}
