package agui_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

// Random legal streams: events are made up from a few names, so that they meet, and those that the tracker refuses
// are left out. That the tracker refuses the right ones is shown against the rules by themselves.

// records draws the events of up to three runs of one thread.
func records(t *rapid.T) []json.RawMessage {
	var events []json.RawMessage
	for run := range rapid.IntRange(1, 3).Draw(t, "runs") {
		events = append(events, record(t, fmt.Sprintf("r%d", run))...)
	}
	return events
}

// record draws the events of one run, which ends in order.
func record(t *rapid.T, run string) []json.RawMessage {
	tracker := agui.NewTracker("thread-1", run)
	events := []json.RawMessage{json.RawMessage(fmt.Sprintf(
		`{"type":"RUN_STARTED","threadId":"thread-1","runId":%q,"input":%s}`, run, input(t, run)))}
	for range rapid.IntRange(0, 60).Draw(t, "length") {
		events = append(events, candidate(t))
	}
	var legal []json.RawMessage
	for _, e := range events {
		if _, err := tracker.Observe(e); err == nil {
			legal = append(legal, e)
		}
	}
	for _, e := range tracker.Closers() {
		legal = append(legal, e)
	}
	if rapid.Bool().Draw(t, "fails") {
		return append(legal, agui.RunError("It broke.", "broken"))
	}
	return append(legal, agui.RunCancelled("thread-1", run))
}

func input(t *rapid.T, run string) string {
	var messages []string
	for range rapid.IntRange(0, 2).Draw(t, "messages") {
		messages = append(messages, message(t))
	}
	return fmt.Sprintf(`{"threadId":"thread-1","runId":%q,"messages":[%s],"tools":[],"context":[]}`,
		run, strings.Join(messages, ","))
}

func message(t *rapid.T) string {
	id := pick(t, "m1", "m2", "m3", "u1", "u2")
	switch rapid.IntRange(0, 3).Draw(t, "role") {
	case 0:
		return fmt.Sprintf(`{"id":%q,"role":"user","content":"question"}`, id)
	case 1:
		return fmt.Sprintf(`{"id":%q,"role":"reasoning","content":"thought"%s}`, id, tag(t))
	case 2:
		return fmt.Sprintf(`{"id":%q,"role":"activity","activityType":"plan","content":{"n":1}}`, id)
	}
	return fmt.Sprintf(`{"id":%q,"role":"assistant","content":"answer","toolCalls":[{"id":%q,"type":"function",`+
		`"function":{"name":"f","arguments":"{"}}]%s}`, id, pick(t, "c1", "c2", "c3"), tag(t))
}

// candidate draws an event that may be legal or not.
func candidate(t *rapid.T) json.RawMessage {
	return json.RawMessage(`{"type":` + rapid.SampledFrom(makers).Draw(t, "event")(t) + `}`)
}

var makers = []func(*rapid.T) string{
	text("TEXT_MESSAGE_START"), textStart, textDelta, textDelta, textDelta, text("TEXT_MESSAGE_END"),
	text("REASONING_START"), text("REASONING_END"),
	reasoningStart, reasoningDelta, reasoningDelta, text("REASONING_MESSAGE_END"),
	callStart, callStart, callDelta, callDelta, call("TOOL_CALL_END"), callResult,
	textChunk, textChunk, textChunk, reasoningChunk, callChunk, callChunk,
	stateSnapshot, stateDelta, stateDelta, stateDelta, messagesSnapshot,
	stepStarted, stepFinished, activitySnapshot, activityDelta, encryptedValue,
	subagentStarted, subagentEnded, other, other,
}

func pick(t *rapid.T, from ...string) string { return rapid.SampledFrom(from).Draw(t, "pick") }

// tag draws who produced an event.
func tag(t *rapid.T) string {
	return pick(t, "", "", "", `,"subagentRunId":"s1"`, `,"subagentRunId":"s2"`)
}

func more(t *rapid.T) string {
	return tag(t) + pick(t, "", "", "", "", `,"metadata":{"a":1}`, `,"metadata":{"a":2,"b":null}`, `,"metadata":{}`,
		`,"timestamp":7`, `,"rawEvent":{"p":1}`, `,"future":[1]`)
}

func messageID(t *rapid.T) string { return pick(t, "m1", "m2", "m3") }

// delta draws a piece of text, halves of surrogate pairs included.
func delta(t *rapid.T) string {
	return pick(t, `""`, `"a"`, `"b c"`, `"\ud83d"`, `"\ude00"`, `"\n\"q\\"`, `"é\u00e9"`, `"{"`)
}

func text(name string) func(*rapid.T) string {
	return func(t *rapid.T) string { return fmt.Sprintf(`%q,"messageId":%q%s`, name, messageID(t), more(t)) }
}

func textStart(t *rapid.T) string {
	return text("TEXT_MESSAGE_START")(t) + pick(t, `,"role":"assistant"`, `,"role":"user"`, `,"name":"Ann"`)
}

func textDelta(t *rapid.T) string {
	return text("TEXT_MESSAGE_CONTENT")(t) + `,"delta":` + delta(t)
}

func reasoningStart(t *rapid.T) string {
	return text("REASONING_MESSAGE_START")(t) + `,"role":"reasoning"`
}

func reasoningDelta(t *rapid.T) string {
	return text("REASONING_MESSAGE_CONTENT")(t) + `,"delta":` + delta(t)
}

func call(name string) func(*rapid.T) string {
	return func(t *rapid.T) string {
		return fmt.Sprintf(`%q,"toolCallId":%q%s`, name, pick(t, "c1", "c2", "c3"), more(t))
	}
}

func parent(t *rapid.T) string {
	return pick(t, "", "", `,"parentMessageId":"m1"`, `,"parentMessageId":"m2"`, `,"parentMessageId":"u1"`)
}

func callStart(t *rapid.T) string {
	return call("TOOL_CALL_START")(t) + fmt.Sprintf(`,"toolCallName":%q`, pick(t, "f", "g")) + parent(t)
}

func callDelta(t *rapid.T) string { return call("TOOL_CALL_ARGS")(t) + `,"delta":` + delta(t) }

func callResult(t *rapid.T) string {
	return call("TOOL_CALL_RESULT")(t) + fmt.Sprintf(`,"messageId":%q,"content":"ok"`, pick(t, "x1", "x2", "m3"))
}

func textChunk(t *rapid.T) string {
	return `"TEXT_MESSAGE_CHUNK"` + pick(t, "", `,"messageId":"m1"`, `,"messageId":"m4"`, `,"messageId":"m5"`) +
		pick(t, "", "", `,"role":"assistant"`, `,"name":"Bob"`) + chunkDelta(t) + more(t)
}

func reasoningChunk(t *rapid.T) string {
	return `"REASONING_MESSAGE_CHUNK"` + pick(t, "", `,"messageId":"m4"`, `,"messageId":"m6"`) + chunkDelta(t) + more(t)
}

func callChunk(t *rapid.T) string {
	return `"TOOL_CALL_CHUNK"` + pick(t, "", `,"toolCallId":"c4","toolCallName":"f"`, `,"toolCallId":"c1","toolCallName":"g"`) +
		parent(t) + chunkDelta(t) + more(t)
}

func chunkDelta(t *rapid.T) string {
	if rapid.IntRange(0, 3).Draw(t, "delta") == 0 {
		return ""
	}
	return `,"delta":` + delta(t)
}

func stateSnapshot(t *rapid.T) string {
	return `"STATE_SNAPSHOT","snapshot":` + pick(t, `{"n":1,"l":[1,2,{"x":0}]}`, `{ "l" : [ 1.0, 2e3 ] ,"o":{"k":"v"}}`,
		`{}`, `null`, `[1]`, `"text"`, `{"n":12345678901,"l":[]}`) + more(t)
}

func stateDelta(t *rapid.T) string { return `"STATE_DELTA","delta":` + patch(t) + more(t) }

func patch(t *rapid.T) string {
	var ops []string
	for range rapid.IntRange(0, 3).Draw(t, "operations") {
		ops = append(ops, operation(t))
	}
	return "[" + strings.Join(ops, ",") + "]"
}

var pointers = []string{"", "/n", "/l", "/l/0", "/l/1", "/l/-", "/l/01", "/l/7", "/o", "/o/k", "/o/k/z", "/l/2/x", "/a~1b", "/0", "/toString"}

func operation(t *rapid.T) string {
	path, from := rapid.SampledFrom(pointers).Draw(t, "path"), rapid.SampledFrom(pointers[1:]).Draw(t, "from")
	value := pick(t, "1", "1.0", "null", `"s"`, `{"k":1}`, "[3]", "2e3")
	switch op := pick(t, "add", "add", "replace", "test", "remove", "move", "copy", "frob"); op {
	case "move", "copy":
		return fmt.Sprintf(`{"op":%q,"from":%q,"path":%q}`, op, from, path)
	case "remove":
		return fmt.Sprintf(`{"op":"remove","path":%q}`, path)
	default:
		return fmt.Sprintf(`{"op":%q,"path":%q,"value":%s}`, op, path, value)
	}
}

func messagesSnapshot(t *rapid.T) string {
	var messages []string
	for range rapid.IntRange(0, 3).Draw(t, "messages") {
		messages = append(messages, message(t))
	}
	return `"MESSAGES_SNAPSHOT","messages":[` + strings.Join(messages, ",") + `]` +
		pick(t, "", "", `,"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":["plan"]}}`)
}

func stepStarted(t *rapid.T) string  { return `"STEP_STARTED","stepName":"plan"` + tag(t) }
func stepFinished(t *rapid.T) string { return `"STEP_FINISHED","stepName":"plan"` + tag(t) }

func activitySnapshot(t *rapid.T) string {
	return fmt.Sprintf(`"ACTIVITY_SNAPSHOT","messageId":%q,"activityType":%q,"content":{"n":0,"l":[1]}%s%s`,
		pick(t, "p1", "p2", "m1", "m3"), pick(t, "plan", "search"), pick(t, "", "", `,"replace":false`), more(t))
}

func activityDelta(t *rapid.T) string {
	return fmt.Sprintf(`"ACTIVITY_DELTA","messageId":%q,"activityType":%q,"patch":%s%s`,
		pick(t, "p1", "p2", "m1", "m3"), pick(t, "plan", "search"), patch(t), more(t))
}

func encryptedValue(t *rapid.T) string {
	return `"REASONING_ENCRYPTED_VALUE","encryptedValue":"b64==",` +
		pick(t, `"subtype":"message","entityId":"m1"`, `"subtype":"tool-call","entityId":"c1"`) + more(t)
}

func subagentStarted(t *rapid.T) string {
	return fmt.Sprintf(`"SUBAGENT_STARTED","subagentRunId":%q,"name":"n"%s`, pick(t, "s1", "s2", "s3"),
		pick(t, "", "", `,"parentSubagentRunId":"s1"`))
}

func subagentEnded(t *rapid.T) string {
	return pick(t, `"SUBAGENT_FINISHED"`, `"SUBAGENT_ERROR","message":"m"`) +
		fmt.Sprintf(`,"subagentRunId":%q`, pick(t, "s1", "s2", "s3")) +
		pick(t, "", `,"outcome":{"type":"suspended"}`)
}

func other(t *rapid.T) string {
	return pick(t, `"CUSTOM","name":"x","value":null`, `"RAW","event":{"n":1}`, `"FUTURE_EVENT","a":[1]`) + tag(t)
}
