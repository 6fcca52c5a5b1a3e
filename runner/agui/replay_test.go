package agui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

// replay builds messages and state from a record.
func replay(t fataler, events []agui.Event) (messages, state any) {
	var r agui.Reducer
	for _, e := range events {
		if err := r.Apply(e.Data); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
	}
	if err := json.Unmarshal(r.Messages(), &messages); err != nil {
		t.Fatalf("messages: %v", err)
	}
	if err := json.Unmarshal(r.State(), &state); err != nil {
		t.Fatalf("state: %v", err)
	}
	return messages, state
}

// fataler is what testing.T and rapid.T share.
type fataler interface {
	Fatalf(format string, args ...any)
}

// fieldCase reads the events of a case from testdata/field.
func fieldCase(t testing.TB, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "field", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ AgentEvents json.RawMessage }
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	var exact struct{ RawAgentLines []string }
	if json.Unmarshal(c.AgentEvents, &exact) == nil {
		return exact.RawAgentLines
	}
	var events []map[string]json.RawMessage
	if err := json.Unmarshal(c.AgentEvents, &events); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(line))
	}
	return out
}

func TestCompactedRandomRecords(t *testing.T) { rapid.Check(t, compactsRecords) }

// An activity that takes the place of a message with calls changes where their deltas go.
func TestCompactedActivityInPlaceOfAHolder(t *testing.T) {
	call := `"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]`
	var lines []json.RawMessage
	for _, line := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[` +
			`{"id":"m1","role":"assistant",` + call + `},{"id":"m2","role":"assistant",` + call + `}]}}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"a"}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"m1","activityType":"plan","content":{}}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"b"}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"m1","activityType":"plan","content":{"n":1}}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"c"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c"}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
	} {
		lines = append(lines, json.RawMessage(line))
	}
	events := numbered(lines)
	compacted := agui.Compact(events)
	sameReplay(t, events, compacted)
	if len(compacted) != len(events)-1 { // the deltas around the second snapshot are one
		t.Errorf("it has %d events:\n%s", len(compacted), texts(compacted))
	}
}

// FuzzCompactRecords runs the same property on records that the fuzzer steers.
func FuzzCompactRecords(f *testing.F) { f.Fuzz(rapid.MakeFuzz(compactsRecords)) }

func compactsRecords(t *rapid.T) {
	events := numbered(records(t))
	compacted := agui.Compact(events)
	sameReplay(t, events, compacted)
	if err := legal(datas(compacted)); err != nil {
		t.Fatalf("not legal: %v\n%s", err, texts(compacted))
	}
	if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
		t.Fatalf("compacted again:\n%s", diff)
	}
	if diff := cmp.Diff(written(compacted), written(runByRun(events))); diff != "" {
		t.Fatalf("compacted run by run:\n%s", diff)
	}
	covered(t, events, compacted)
	for _, e := range compacted {
		if strings.Contains(string(e.Data), "_CHUNK") {
			t.Fatalf("a chunk is left: %s", e.Data)
		}
	}
}

func sameReplay(t fataler, events, compacted []agui.Event) {
	wantMessages, wantState := replay(t, events)
	messages, state := replay(t, compacted)
	if diff := cmp.Diff(wantMessages, messages); diff != "" {
		t.Fatalf("messages (-live +compacted):\n%s\n%s", diff, texts(compacted))
	}
	if diff := cmp.Diff(wantState, state); diff != "" {
		t.Fatalf("state (-live +compacted):\n%s\n%s", diff, texts(compacted))
	}
}

func runByRun(events []agui.Event) []agui.Event {
	var out []agui.Event
	start := 0
	for i := 1; i <= len(events); i++ {
		if i == len(events) || strings.Contains(string(events[i].Data), `"RUN_STARTED"`) {
			out = append(out, agui.Compact(events[start:i])...)
			start = i
		}
	}
	return out
}

// covered makes sure that every number of the record stands in a range of the compacted one, and no other does.
func covered(t fataler, events, compacted []agui.Event) {
	seen := map[uint64]bool{}
	for _, e := range compacted {
		if e.First > e.Last || e.First < 1 || e.Last > uint64(len(events)) {
			t.Fatalf("range %d-%d", e.First, e.Last)
		}
		for n := e.First; n <= e.Last; n++ {
			seen[n] = true
		}
	}
	if len(seen) != len(events) {
		t.Fatalf("%d of %d events are covered by:\n%s", len(seen), len(events), strings.Join(written(compacted), "\n"))
	}
}

// A viewer who has seen the events up to a number, and that number lies inside no range, needs exactly the results
// that begin after it: with those the stream stays legal and comes to the same end.
func TestViewersCanGoOnWithACompactedRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := numbered(record(t, "r"))
		compacted := agui.Compact(events)
		wantMessages, wantState := replay(t, events)
		for seen := range uint64(len(events)) {
			stream := events[:seen:seen]
			inside := false
			for _, e := range compacted {
				inside = inside || e.First <= seen && seen < e.Last
				if e.First > seen {
					stream = append(stream, e)
				}
			}
			if inside {
				continue
			}
			if err := legal(datas(stream)); err != nil {
				t.Fatalf("after %d: %v\n%s", seen, err, texts(stream))
			}
			messages, state := replay(t, stream)
			if diff := cmp.Diff([]any{wantMessages, wantState}, []any{messages, state}); diff != "" {
				t.Fatalf("after %d (-whole +continued):\n%s\n%s", seen, diff, texts(stream))
			}
		}
	})
}

func TestVectorsOfCompactionReplayEqual(t *testing.T) {
	type vector struct {
		Name       string
		InputValid bool
		Input      []json.RawMessage
	}
	for _, file := range []string{"compaction/handpicked.json", "compaction/random.json"} {
		for _, c := range vectors[vector](t, file) {
			t.Run(c.Name, func(t *testing.T) {
				events := numbered(c.Input)
				compacted := agui.Compact(events)
				covered(t, events, compacted)
				if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
					t.Errorf("compacted again:\n%s", diff)
				}
				if !c.InputValid {
					return
				}
				sameReplay(t, events, compacted)
				if err := legal(datas(compacted)); err != nil {
					t.Errorf("not legal: %v", err)
				}
			})
		}
	}
}

func TestVectorsStayLegalWhenCompacted(t *testing.T) {
	for _, file := range []string{"apply/replay-safe.json", "apply/reference-divergence.json"} {
		for _, c := range vectors[applyVector](t, file) {
			t.Run(c.Name, func(t *testing.T) {
				events := numbered(c.Events)
				if err := legal(datas(events)); err != nil {
					t.Fatalf("not legal before: %v", err)
				}
				if err := legal(datas(agui.Compact(events))); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func datas(events []agui.Event) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Data
	}
	return out
}

func texts(events []agui.Event) string { return strings.Join(written(events), "\n") }

func FuzzCompact(f *testing.F) {
	for _, name := range []string{"c13-falsy-values", "c33-split-emoji", "c35-nul-and-lone-surrogate", "c36-numbers-and-bytes"} {
		f.Add(strings.Join(fieldCase(f, name), "\n"))
	}
	f.Add(strings.Join([]string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a","metadata":{"k":1}}`,
		`{"type":"TEXT_MESSAGE_CHUNK","delta":"b","x":1}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"l":[1.0,{"a":null}]}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/-","value":2},{"op":"move","from":"/l/0","path":"/x"}]}`,
		`{"type":"RUN_ERROR","message":"m"}`,
	}, "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		events := lines(strings.Split(text, "\n")...)
		compacted := agui.Compact(events)
		covered(t, events, compacted)
		if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
			t.Fatalf("compacted again:\n%s", diff)
		}
		if legal(datas(events)) != nil {
			return
		}
		for _, e := range events {
			if _, err := agui.ParseHeader(e.Data); err != nil {
				return
			}
		}
		sameReplay(t, events, compacted)
		if err := legal(datas(compacted)); err != nil {
			t.Fatalf("not legal: %v", err)
		}
	})
}
