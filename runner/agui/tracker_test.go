package agui_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

const started = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`

// track observes events, all of which must be legal, on a run that has started.
func track(t *testing.T, events ...string) *agui.Tracker {
	t.Helper()
	tracker := agui.NewTracker("t", "r")
	for _, e := range append([]string{started}, events...) {
		if _, err := tracker.Observe([]byte(e)); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	return tracker
}

// refused observes an event that must be refused by a rule.
func refused(t *testing.T, tracker *agui.Tracker, event, rule string) {
	t.Helper()
	_, err := tracker.Observe([]byte(event))
	var m *agui.MalformedError
	if !errors.As(err, &m) || m.Rule != rule {
		t.Fatalf("%s: error %v, want one by %s", event, err, rule)
	}
}

func TestTrackerWantsRunStartedFirst(t *testing.T) {
	tracker := agui.NewTracker("t", "r")
	refused(t, tracker, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, "V1")
	refused(t, tracker, `{"type":"FUTURE"}`, "V1")
	if tracker.Started() {
		t.Error("started by what was refused")
	}
	if _, err := tracker.Observe([]byte(started)); err != nil || !tracker.Started() {
		t.Errorf("started = %v, error %v", tracker.Started(), err)
	}
	refused(t, tracker, started, "V4")
}

func TestTrackerComparesIds(t *testing.T) {
	for _, c := range []struct{ name, start, event string }{
		{"OfTheThreadAtTheStart", "", `{"type":"RUN_STARTED","threadId":"other","runId":"r"}`},
		{"OfTheRunAtTheStart", "", `{"type":"RUN_STARTED","threadId":"t","runId":"other"}`},
		{"OfTheThreadAtTheEnd", started, `{"type":"RUN_FINISHED","threadId":"other","runId":"r"}`},
		{"OfTheRunAtTheEnd", started, `{"type":"RUN_FINISHED","threadId":"t","runId":"R"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracker := agui.NewTracker("t", "r")
			if c.start != "" {
				tracker = track(t)
			}
			refused(t, tracker, c.event, "section 11")
		})
	}
}

func TestTrackerTellsHowARunEnds(t *testing.T) {
	finished := func(outcome string) string {
		return `{"type":"RUN_FINISHED","threadId":"t","runId":"r"` + outcome + `}`
	}
	for _, c := range []struct {
		name, event string
		want        agui.Step
	}{
		{"Success", finished(``), agui.Step{Outcome: "success"}},
		{"SuccessInWords", finished(`,"outcome":{"type":"success","pendingToolCallIds":["c"]}`),
			agui.Step{Outcome: "success", Pending: []string{"c"}}},
		{"SuccessForAnUnknownOutcome", finished(`,"outcome":{"type":"someday"}`), agui.Step{Outcome: "success"}},
		{"SuccessForTheRetiredNull", finished(`,"outcome":null`), agui.Step{Outcome: "success"}},
		{"Cancelled", finished(`,"outcome":{"type":"cancelled"}`), agui.Step{Outcome: "cancelled"}},
		{"Interrupt", finished(`,"outcome":{"type":"interrupt","interrupts":[{"id":"i", "n":1e400}]}`),
			agui.Step{Outcome: "interrupt", Interrupts: []byte(`[{"id":"i", "n":1e400}]`)}},
		{"SuccessWithUsage", finished(`,"usage":[ {"inputTokens":1.0} ]`),
			agui.Step{Outcome: "success", Usage: []byte(`[ {"inputTokens":1.0} ]`)}},
		{"UsageThatIsNoList", finished(`,"usage":{"inputTokens":1}`), agui.Step{Outcome: "success"}},
		{"ErrorWithUsage", `{"type":"RUN_ERROR","message":"m","usage":[]}`,
			agui.Step{Type: "RUN_ERROR", Message: "m", Usage: []byte(`[]`)}},
		{"Error", `{"type":"RUN_ERROR","message":"No\u0020luck.","code":"bad"}`,
			agui.Step{Type: "RUN_ERROR", Message: "No luck.", Code: "bad"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Terminal = true
			if c.want.Type == "" {
				c.want.Type = "RUN_FINISHED"
			}
			tracker := track(t)
			got, err := tracker.Observe([]byte(c.event))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if tracker.Closers() != nil {
				t.Error("closers after the end")
			}
		})
	}
}

func TestTrackerIsUnchangedByWhatItRefuses(t *testing.T) {
	open := []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"k","delta":"a"}`,
		`{"type":"STEP_STARTED","stepName":"s"}`, // closes the chunks
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f"}`,
	}
	tracker := track(t, open...)
	before := closers(tracker)
	refused(t, tracker, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`, "V20")
	refused(t, tracker, `{"type":"STEP_STARTED","stepName":"s"}`, "V11")
	refused(t, tracker, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`, "V6")
	refused(t, tracker, `{"type":"TEXT_MESSAGE_END","messageId":"k"}`, "V7")
	refused(t, tracker, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"user"},{"id":"b","role":"user","subagentRunId":null}]}`, "V19")
	if diff := cmp.Diff(before, closers(tracker)); diff != "" {
		t.Errorf("closers changed:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m", "k", "c"}, tracker.Created()); diff != "" {
		t.Errorf("created:\n%s", diff)
	}
	if _, err := tracker.Observe([]byte(`{"type":"TOOL_CALL_CHUNK","delta":"{"}`)); err != nil {
		t.Errorf("the stream of chunks does not go on: %v", err)
	}
}

func closers(tracker *agui.Tracker) []string {
	var out []string
	for _, e := range tracker.Closers() {
		out = append(out, string(e))
	}
	return out
}

func TestClosersFollowTheOrderOfTheProtocol(t *testing.T) {
	tracker := track(t,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"outer","name":"n"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"inner","name":"n","parentSubagentRunId":"outer"}`,
		`{"type":"STEP_STARTED","stepName":"one"}`,
		`{"type":"STEP_STARTED","stepName":"one","subagentRunId":""}`,
		`{"type":"REASONING_START","messageId":"span"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c\ud83d","toolCallName":"f","subagentRunId":"inner"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"thought","role":"reasoning"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"text","subagentRunId":"outer"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"chunk","delta":"x"}`,
	)
	want := []string{
		`{"type":"REASONING_MESSAGE_END","messageId":"thought"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"text"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c\ud83d"}`,
		`{"type":"REASONING_END","messageId":"span"}`,
		`{"type":"STEP_FINISHED","stepName":"one"}`,
		`{"type":"STEP_FINISHED","stepName":"one","subagentRunId":""}`,
		`{"type":"SUBAGENT_ERROR","subagentRunId":"inner","message":"The run ended before this subagent did.","code":"cancelled"}`,
		`{"type":"SUBAGENT_ERROR","subagentRunId":"outer","message":"The run ended before this subagent did.","code":"cancelled"}`,
	}
	if diff := cmp.Diff(want, closers(tracker)); diff != "" {
		t.Error(diff)
	}
}

func TestTrackerNotesTheMessagesOfARun(t *testing.T) {
	tracker := track(t,
		`{"type":"TEXT_MESSAGE_START","messageId":"a"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"a"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"a"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"a"}`,
		`{"type":"REASONING_START","messageId":"span"}`,
		`{"type":"REASONING_MESSAGE_CHUNK","messageId":"b","delta":"x"}`,
		`{"type":"REASONING_MESSAGE_CHUNK","delta":"x"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f","parentMessageId":"c"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f"}`,
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"e","toolCallName":"f"}`,
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"e","delta":"{"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"f","toolCallId":"d","content":""}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"g","activityType":"x","content":{}}`,
		`{"type":"ACTIVITY_DELTA","messageId":"h","activityType":"x","patch":[]}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"i","role":"user","content":""},{"id":"a","role":"user","content":""}]}`,
		`{"type":"FUTURE","messageId":"z"}`,
	)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, tracker.Created()); diff != "" {
		t.Error(diff)
	}
}

// What a stream of chunks holds must stay in its hands: the protocol ends the stream with an END of its own, and if
// that is not legal, neither is any terminal event.
func TestTrackerKeepsChunksClosable(t *testing.T) {
	chunk := `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x","subagentRunId":"s"}`
	for _, c := range []struct{ name, event string }{
		{"AgainstAnEnd", `{"type":"TEXT_MESSAGE_END","messageId":"m"}`},
		{"AgainstAnotherOwner", `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, track(t, chunk), c.event, "section 12")
			out, err := agui.Expand([][]byte{[]byte(started), []byte(chunk), []byte(c.event), agui.RunError("m", "")})
			if err != nil {
				t.Fatal(err)
			}
			var v agui.Verifier
			for _, e := range out {
				if err = v.Verify(e); err != nil {
					break
				}
			}
			if err == nil {
				t.Error("the rules would have allowed it")
			}
		})
	}
}

func TestTrackerPassesOnWhatItDoesNotKnow(t *testing.T) {
	track(t,
		`{"type":"FUTURE","subagentRunId":null,"messageId":7}`,
		`{"type":"THINKING_START","title":"t"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n","future":1}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"s","outcome":{"type":"someday"}}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"future","subagentRunId":null}]}`,
	)
}

func TestTrackerAgreesWithTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := agui.NewTracker("thread-1", "r")
		sent := [][]byte{[]byte(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"r"}`)}
		if _, err := tracker.Observe(sent[0]); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			e := candidate(t)
			want := legal(append(sent[:len(sent):len(sent)], e))
			_, got := tracker.Observe(e)
			var m *agui.MalformedError
			if errors.As(got, &m) && m.Rule == "section 12" {
				continue
			}
			if (got == nil) != (want == nil) {
				t.Fatalf("%s\nafter %s\ntracker: %v\nrules: %v", e, sent, got, want)
			}
			if got == nil {
				sent = append(sent, e)
			}
		}
		for _, e := range append(tracker.Closers(), agui.RunCancelled("thread-1", "r")) {
			if _, err := tracker.Observe(e); err != nil {
				t.Fatalf("%s after %s: %v", e, sent, err)
			}
			sent = append(sent, e)
		}
		if err := legal(sent); err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
	})
}

// legal tells why a stream is not legal by expansion and rules.
func legal(events [][]byte) error {
	out, err := agui.Expand(events)
	if err != nil {
		return err
	}
	var v agui.Verifier
	for _, e := range out {
		if err := v.Verify(e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}
