package terminal

import (
	"encoding/json"
	"strings"
)

// labelled is the width of the labels before what is not an agent's text.
const labelled = 9

// view shows the events of runs on a screen: text as it comes, everything else in lines of their own.
type view struct {
	*screen
	full bool // results, arguments and states are not shortened
	solo bool // what is asked for is one answer: neither its question nor the beginning and the end of its run are shown

	block  *block            // the text that is being written
	blocks map[string]*block // the texts that have been begun, by the ids of their messages
	chunks chunks            // what was begun by chunks
	calls  map[string]*call  // tool calls by their ids
	agents map[string]string // the names of subagents by their ids
	shown  map[string]bool   // the ids of messages that have been shown
	runs   int               // how many have begun
}

// call is a tool call.
type call struct {
	deltas
	name string
	args strings.Builder
}

func newView(s *screen) *view {
	v := &view{screen: s}
	v.reset()
	return v
}

// forget makes the view ready for a run that begins, or begins anew.
func (v *view) forget() {
	v.turn(nil)
	v.blocks, v.chunks = map[string]*block{}, nil
	v.calls, v.agents = map[string]*call{}, map[string]string{}
}

// reset makes the view ready to show again what it has shown.
func (v *view) reset() {
	v.forget()
	v.shown = map[string]bool{}
}

// event shows an event. What it does not know is shown as it is.
func (v *view) event(raw json.RawMessage) {
	for _, f := range v.chunks.expand(fieldsOf(raw)) {
		v.show(f)
	}
}

// show shows an event that is no chunk.
func (v *view) show(f fields) {
	kind := f.text("type")
	if showers[kind] == nil {
		v.labelled("event", dim, kind+" "+v.value(f.rest("type", "timestamp")))
		return
	}
	showers[kind](v, f)
}

// showers show the events of AG-UI 1.0, section 4.
var showers map[string]func(*view, fields)

func init() { //nolint:gochecknoinits // the table holds what uses it
	silent := func(*view, fields) {}
	showers = map[string]func(*view, fields){
		"RUN_STARTED": (*view).runStarted, "RUN_FINISHED": (*view).runFinished, "RUN_ERROR": (*view).runError,
		"STEP_STARTED": (*view).step, "STEP_FINISHED": silent,
		"TEXT_MESSAGE_START": (*view).textStart, "TEXT_MESSAGE_CONTENT": (*view).textContent, "TEXT_MESSAGE_END": (*view).textEnd,
		"REASONING_START": silent, "REASONING_END": silent, "REASONING_ENCRYPTED_VALUE": silent,
		"REASONING_MESSAGE_START": (*view).thought, "REASONING_MESSAGE_CONTENT": (*view).textContent, "REASONING_MESSAGE_END": (*view).textEnd,
		"TOOL_CALL_START": (*view).callStart, "TOOL_CALL_ARGS": (*view).callArgs, "TOOL_CALL_END": (*view).callEnd,
		"TOOL_CALL_RESULT": (*view).callResult,
		"STATE_SNAPSHOT":   (*view).stateSnapshot, "STATE_DELTA": (*view).stateDelta, "MESSAGES_SNAPSHOT": (*view).messagesSnapshot,
		"ACTIVITY_SNAPSHOT": (*view).activitySnapshot, "ACTIVITY_DELTA": (*view).activityDelta,
		"SUBAGENT_STARTED": (*view).subagentStarted, "SUBAGENT_FINISHED": silent, "SUBAGENT_ERROR": (*view).subagentError,
		"CUSTOM": (*view).custom, "RAW": (*view).raw,
	}
}

// labelled writes a note with a label before it, its further lines below its first. The text is made inert here.
func (v *view) labelled(label string, st style, text string) {
	if text == "" {
		v.note(v.paint(st, label))
		return
	}
	text = strings.ReplaceAll(Inert(text), "\n", "\n"+strings.Repeat(" ", labelled))
	v.note(v.paint(st, pad(label, labelled)) + v.paint(secondary(st), text))
}

// secondary is the style of what stands behind a label.
func secondary(label style) style {
	switch label {
	case cyan, bold:
		return plain
	case red, yellow:
		return label
	}
	return dim
}

// value is a value on one line, shortened unless all of it is wanted.
func (v *view) value(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	return v.short(compacted(raw))
}

func (v *view) short(text string) string {
	text = line(text)
	if v.full {
		return text
	}
	return v.fit(text, 2*labelled)
}

func (v *view) step(f fields) { v.labelled("step", dim, line(f.text("stepName"))) }

func (v *view) custom(f fields) {
	v.labelled("custom", dim, line(f.text("name"))+" "+v.value(f["value"]))
}

func (v *view) raw(f fields) {
	if v.full {
		v.labelled("raw", dim, v.value(f["event"]))
	}
}

func (v *view) subagentStarted(f fields) {
	name := line(f.text("name"))
	v.agents[f.text("subagentRunId")] = name
	v.labelled("agent", dim, strings.TrimSpace(name+" "+v.short(f.text("description"))))
}

func (v *view) subagentError(f fields) {
	v.labelled("agent", red, v.agents[f.text("subagentRunId")]+" failed: "+line(f.text("message")))
}
