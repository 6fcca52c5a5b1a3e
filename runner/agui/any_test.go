package agui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

// Any sequence of events, legal or not: the events of the legal streams (streams_test.go) in any order, with ids that
// come back, runs that begin and end anywhere, and what is malformed or no event at all.

// anyStream draws one. Half of them have no chunks: the first one that breaks the rules makes its run stay as it is.
func anyStream(t *rapid.T) []agui.Event {
	var events []agui.Event
	chunks := rapid.Bool().Draw(t, "chunks")
	for range rapid.IntRange(0, 60).Draw(t, "length") {
		data := anyEvent(t)
		if chunks || !strings.Contains(string(data), "_CHUNK") {
			n := uint64(len(events) + 1)
			events = append(events, agui.Event{First: n, Last: n, Data: data})
		}
	}
	return events
}

func anyEvent(t *rapid.T) []byte {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return boundary(t)
	case 1:
		return []byte(damaged(t, string(candidate(t))))
	default:
		return candidate(t)
	}
}

// boundary draws an event that begins or ends a run.
func boundary(t *rapid.T) []byte {
	run := pick(t, "r0", "r1", "r2")
	return []byte(pick(t,
		fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"thread-1","runId":%q,"input":%s}`, run, input(t, run)),
		fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"thread-1","runId":%q}`, run),
		fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":%q}`, run),
		fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":%q,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"?"}]}}`, run),
		`{"type":"RUN_ERROR","message":"m"}`,
	))
}

// damaged draws what may become of an event on its way, or of the care of who wrote it.
func damaged(t *rapid.T, event string) string {
	switch rapid.IntRange(0, 6).Draw(t, "damage") {
	case 0:
		return event[:rapid.IntRange(0, len(event)).Draw(t, "cut")]
	case 1:
		return event + pick(t, "}", " ", "\n", `{"type":"RAW","event":1}`)
	case 2: // a member comes twice: the last one counts
		return strings.TrimSuffix(event, "}") + pick(t, `,"type":"CUSTOM"}`, `,"delta":"z"}`, `,"delta":null}`, `,"messageId":"m2"}`,
			`,"messageId":7}`, `,"toolCallId":"c2"}`, `,"metadata":null}`, `,"subagentRunId":null}`, `,"snapshot":1}`)
	case 3: // a name in other letters, or spelled with escapes
		return strings.NewReplacer(`"type"`, pick(t, `"Type"`, `"\u0074ype"`), `"delta"`, pick(t, `"DELTA"`, `"d\u0065lta"`)).Replace(event)
	case 4:
		return strings.Replace(event, `:"`, pick(t, ` : "`, ":\n\t\""), 2)
	case 5:
		return strings.Replace(event, `"m1"`, pick(t, `"\u006d1"`, `"m\u0000"`, `"\ud800"`, `""`), 1)
	default:
		return pick(t, "", "null", "[]", "7", `"TEXT_MESSAGE_CONTENT"`, "{}", `{"type":""}`, `{"type":null}`, "\xff", "{\"type\":\"RAW\",\"event\":\"\xff\"}")
	}
}

func TestCompactedAnyStream(t *testing.T) { rapid.Check(t, compactsAnyStream) }

// FuzzCompactAnyStream runs the same property on streams that the fuzzer steers.
func FuzzCompactAnyStream(f *testing.F) { f.Fuzz(rapid.MakeFuzz(compactsAnyStream)) }

func compactsAnyStream(t *rapid.T) {
	events := anyStream(t)
	compacted := agui.Compact(events)
	covered(t, events, compacted)
	if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
		t.Fatalf("compacted again:\n%s", diff)
	}
	if diff := cmp.Diff(written(compacted), written(runByRun(events))); diff != "" {
		t.Fatalf("compacted run by run:\n%s", diff)
	}
	wantMessages, wantState, wantPending := amountsTo(t, events)
	messages, state, pending := amountsTo(t, compacted)
	if diff := cmp.Diff([]any{wantMessages, wantState, wantPending}, []any{messages, state, pending}); diff != "" {
		t.Fatalf("replay (-live +compacted):\n%s\n%s\n----\n%s", diff, texts(events), texts(compacted))
	}
	if legal(datas(events)) == nil {
		if err := legal(datas(compacted)); err != nil {
			t.Fatalf("not legal: %v\n%s", err, texts(compacted))
		}
	}
}

// amountsTo builds what a stream amounts to for a reader that passes over what it cannot use.
func amountsTo(t fataler, events []agui.Event) (messages, state, pending any) {
	var r agui.Reducer
	for _, e := range events {
		_ = r.Apply(e.Data)
	}
	for _, part := range []struct {
		raw  []byte
		into *any
	}{{r.Messages(), &messages}, {r.State(), &state}, {append([]byte("["), append(r.Pending(), ']')...), &pending}} {
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			t.Fatalf("%s: %v", part.raw, err)
		}
	}
	return messages, state, pending
}
