package agui_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

// reduced applies events to a reducer.
func reduced(t fataler, r *agui.Reducer, events []string) *agui.Reducer {
	for _, e := range events {
		if err := r.Apply([]byte(e)); err != nil {
			t.Fatalf("%.200s: %v", e, err)
		}
	}
	return r
}

// allocated tells how many bytes fn allocates, and how long it takes.
func allocated(fn func()) (uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	fn()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

func TestReducerHoldsNoMoreThanItMay(t *testing.T) {
	kilobyte := `{"a":"` + strings.Repeat("x", 1000) + `"}`
	activity := []string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"x","content":` + kilobyte + `}`}
	for i := range 40 {
		activity = append(activity, fmt.Sprintf(
			`{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"x","patch":[{"op":"copy","from":"","path":"/b%d"}]}`, i))
	}
	var churn []string // copies that do not last
	for range 10_000 {
		churn = append(churn, `{"type":"STATE_DELTA","delta":[{"op":"copy","from":"/big","path":"/c"},{"op":"remove","path":"/c"}]}`)
	}
	wide := "[" + strings.Repeat("1,", 100_000) + "1]"
	for name, events := range map[string][]string{
		"TextIsCopied":      bomb(40, kilobyte),
		"NodesAreMade":      bomb(40, `{}`),
		"InOnePatch":        {`{"type":"STATE_SNAPSHOT","snapshot":{}}`, inOnePatch(40)},
		"InAnActivity":      activity,
		"AgainAndAgain":     append([]string{`{"type":"STATE_SNAPSHOT","snapshot":{"big":"` + strings.Repeat("x", 500_000) + `"}}`}, churn...),
		"ManyNumbers":       {`{"type":"STATE_SNAPSHOT","snapshot":` + wide + `}`},
		"ManyNumbersTested": {`{"type":"STATE_DELTA","delta":[{"op":"test","path":"","value":` + wide + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 1 << 20
			r := &agui.Reducer{MaxBytes: most}
			bytes, took := allocated(func() { reduced(t, r, events) })
			if limit := uint64(8*most + 8*len(strings.Join(events, ""))); bytes > limit {
				t.Errorf("%d bytes were allocated", bytes)
			}
			if took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if !r.Truncated() {
				t.Error("it does not say that something was left out")
			}
			if size := len(r.State()) + len(r.Messages()); size > most {
				t.Errorf("it holds %d bytes", size)
			}
			if !json.Valid(r.State()) || !json.Valid(r.Messages()) {
				t.Error("what is left is not JSON")
			}
		})
	}
}

// What finds no room leaves what was there before, and what finds room afterwards is taken.
func TestReducerLeavesOutWhatFindsNoRoom(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for _, c := range []struct {
		name, before, big, after string
		messages, state          string
	}{
		{
			name: "StateSnapshot", before: `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`,
			big:   `{"type":"STATE_SNAPSHOT","snapshot":{"a":"` + long + `"}}`,
			after: `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":2}]}`, messages: `[]`, state: `{"a":1,"b":2}`,
		},
		{
			name: "StateDelta", before: `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`,
			big:   `{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a"},{"op":"add","path":"/c","value":"` + long + `"}]}`,
			after: `{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a","value":2}]}`, messages: `[]`, state: `{"a":2}`,
		},
		{
			name: "NameInAPatch", before: `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`,
			big:   `{"type":"STATE_DELTA","delta":[{"op":"move","from":"/a","path":"/` + long + `"}]}`,
			after: `{"type":"STATE_DELTA","delta":[]}`, messages: `[]`, state: `{"a":1}`,
		},
		{
			name: "TextEnds", before: `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			big:      `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"` + long + `"}`,
			after:    `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"more"}`,
			messages: `[{"id":"m","role":"assistant","content":""}]`, state: `{}`,
		},
		{
			name: "ArgumentsEnd", before: `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,
			big:      `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"` + long + `"}`,
			after:    `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`,
			messages: `[{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]`,
			state:    `{}`,
		},
		{
			name: "Result", before: `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			big:      `{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"` + long + `"}`,
			after:    `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"more"}`,
			messages: `[{"id":"m","role":"assistant","content":"more"}]`, state: `{}`,
		},
		{
			name: "Metadata", before: `{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"k":1}}`,
			big:      `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","metadata":{"k":"` + long + `"}}`,
			after:    `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","metadata":{"l":2}}`,
			messages: `[{"id":"m","role":"assistant","content":"ab","metadata":{"k":1,"l":2}}]`, state: `{}`,
		},
		{
			name: "MessagesSnapshot", before: `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			big:      `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"n","role":"user","content":"` + long + `"}]}`,
			after:    `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"n","role":"user","content":"n"}]}`,
			messages: `[{"id":"n","role":"user","content":"n"}]`, state: `{}`,
		},
		{
			name: "InputMessage", before: `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			big: `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"u","role":"user","content":"` + long +
				`"},{"id":"v","role":"user","content":"v"}]}}`,
			after:    `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
			messages: `[{"id":"m","role":"assistant","content":""},{"id":"v","role":"user","content":"v"}]`, state: `{}`,
		},
		{
			name: "ActivityDelta", before: `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"x","content":{"a":1}}`,
			big: `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"y","patch":[{"op":"add","path":"/b","value":"` + long +
				`"}],"metadata":{"k":1}}`,
			after:    `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"x","patch":[{"op":"add","path":"/c","value":2}]}`,
			messages: `[{"id":"m","role":"activity","activityType":"x","content":{"a":1,"c":2},"metadata":{"k":1}}]`, state: `{}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reduced(t, &agui.Reducer{MaxBytes: 10_000}, []string{c.before})
			if r.Truncated() {
				t.Error("it says too early that something was left out")
			}
			reduced(t, r, []string{c.big, c.after})
			if got := string(r.Messages()); got != c.messages {
				t.Errorf("messages %s, want %s", got, c.messages)
			}
			if got := string(r.State()); got != c.state {
				t.Errorf("state %s, want %s", got, c.state)
			}
			if !r.Truncated() {
				t.Error("it does not say that something was left out")
			}
		})
	}
}

// Whatever comes, the count stays true and within bounds, so that a long life does not use a budget up.
func TestReducerCountsTruly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{0, 3000, 20_000}).Draw(t, "most")
		r := &agui.Reducer{MaxBytes: most}
		for _, e := range records(t) {
			if err := r.Apply(e); err != nil {
				t.Fatalf("%s: %v", e, err)
			}
			used, afresh := agui.Counted(r)
			if used != afresh {
				t.Fatalf("after %s it counts %d for what counts %d:\n%s\n%s", e, used, afresh, r.Messages(), r.State())
			}
			if most > 0 && used > most+1000 { // a state that was not there counts for a little without being asked
				t.Fatalf("it counts %d of %d", used, most)
			}
		}
		if most == 0 && r.Truncated() {
			t.Fatal("something was left out")
		}
	})
}

func TestReplacedValuesGiveTheirRoomBack(t *testing.T) {
	events := []string{`{"type":"STATE_SNAPSHOT","snapshot":{ "now" : { "k" : [ 1 , 2 ] } }}`}
	for i := range 5000 {
		events = append(events,
			fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/now","value":{ "k" : [ %d ] }},{"op":"add","path":"/now/k/-","value":"%d"}]}`, i, i),
			`{"type":"STATE_DELTA","delta":[{"op":"copy","from":"/now","path":"/was"},{"op":"move","from":"/was","path":"/old"},{"op":"remove","path":"/old"}]}`)
	}
	r := reduced(t, &agui.Reducer{MaxBytes: 4000}, events)
	if r.Truncated() {
		t.Error("something was left out")
	}
	if got, want := string(r.State()), `{"now":{"k":[4999,"4999"]}}`; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
}

func TestReducerKeepsNothingOfItsEvents(t *testing.T) {
	var r agui.Reducer
	for _, text := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"u","role":"user","content":"hi","name":"n"}]}}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m","name":"x","subagentRunId":"s","metadata":{"k":"v"}}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"abc","metadata":{"k":"w","l":[1]}}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"tr","toolCallId":"c","content":"done"}`,
		`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"e"}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"p","content":{"l":[1]}}`,
		`{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"q","patch":[{"op":"add","path":"/l/-","value":{"d":"e"}}]}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"a":{"b":1}}}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a/c","value":"text"}]}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`,
	} {
		event := []byte(text)
		if err := r.Apply(event); err != nil {
			t.Fatal(err)
		}
		for i := range event {
			event[i] = '#'
		}
	}
	if all := string(r.Messages()) + string(r.State()) + string(r.Pending()); strings.Contains(all, "#") {
		t.Errorf("it refers to its events: %s", all)
	}
}

func TestReducerKnowsWhetherARunGoesOn(t *testing.T) {
	var r agui.Reducer
	for _, step := range []struct {
		event   string
		running bool
	}{
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r1"}`, true},
		{`{"type":"CUSTOM","name":"x","value":null}`, true},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`, false},
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r2"}`, true},
		{`{"type":"RUN_ERROR","message":"m"}`, false},
	} {
		if reduced(t, &r, []string{step.event}); r.Running() != step.running {
			t.Errorf("after %s a run goes on: %t", step.event, r.Running())
		}
	}
}

func TestReducerPassesOverWhatItIsNotAskedFor(t *testing.T) {
	events := []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, `{"type":"STATE_SNAPSHOT","snapshot":1}`,
		`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"","value":2}]}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`,
	}
	messages := reduced(t, &agui.Reducer{NoState: true}, events)
	if string(messages.State()) != `{}` || !strings.Contains(string(messages.Messages()), `"m"`) || messages.Pending() == nil {
		t.Errorf("without state: %s %s", messages.Messages(), messages.State())
	}
	state := reduced(t, &agui.Reducer{NoMessages: true}, events)
	if string(state.State()) != `2` || string(state.Messages()) != `[]` || state.Pending() == nil {
		t.Errorf("without messages: %s %s", state.Messages(), state.State())
	}
}
