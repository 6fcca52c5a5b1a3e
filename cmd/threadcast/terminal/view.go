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
var showers = map[string]func(*view, fields){
	"RUN_STARTED": showRunStarted, "RUN_FINISHED": showRunFinished, "RUN_ERROR": showRunError,
	"STEP_STARTED": showStep, "STEP_FINISHED": silent,
	"TEXT_MESSAGE_START": showTextStart, "TEXT_MESSAGE_CONTENT": showTextContent, "TEXT_MESSAGE_END": showTextEnd,
	"REASONING_START": silent, "REASONING_END": silent, "REASONING_ENCRYPTED_VALUE": silent,
	"REASONING_MESSAGE_START": showThought, "REASONING_MESSAGE_CONTENT": showTextContent, "REASONING_MESSAGE_END": showTextEnd,
	"TOOL_CALL_START": showCallStart, "TOOL_CALL_ARGS": showCallArgs, "TOOL_CALL_END": showCallEnd, "TOOL_CALL_RESULT": showCallResult,
	"STATE_SNAPSHOT": showStateSnapshot, "STATE_DELTA": showStateDelta, "MESSAGES_SNAPSHOT": showMessagesSnapshot,
	"ACTIVITY_SNAPSHOT": showActivitySnapshot, "ACTIVITY_DELTA": showActivityDelta,
	"SUBAGENT_STARTED": showSubagentStarted, "SUBAGENT_FINISHED": silent, "SUBAGENT_ERROR": showSubagentError,
	"CUSTOM": showCustom, "RAW": showRaw,
}

func silent(*view, fields) {}

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

func showStep(v *view, f fields) { v.labelled("step", dim, line(f.text("stepName"))) }

func showCustom(v *view, f fields) {
	v.labelled("custom", dim, line(f.text("name"))+" "+v.value(f["value"]))
}

func showRaw(v *view, f fields) {
	if v.full {
		v.labelled("raw", dim, v.value(f["event"]))
	}
}

func showSubagentStarted(v *view, f fields) {
	name := line(f.text("name"))
	v.agents[f.text("subagentRunId")] = name
	v.labelled("agent", dim, strings.TrimSpace(name+" "+v.short(f.text("description"))))
}

func showSubagentError(v *view, f fields) {
	v.labelled("agent", red, v.agents[f.text("subagentRunId")]+" failed: "+line(f.text("message")))
}
