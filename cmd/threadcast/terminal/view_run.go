package terminal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// showRunStarted shows which run begins, and what was asked.
func showRunStarted(v *view, f fields) {
	v.forget()
	input := f.object("input")
	if !v.solo {
		if v.runs > 0 {
			v.note("")
		}
		v.runs++
		v.labelled("run", bold, line(f.text("runId")))
	}
	for _, raw := range input.list("messages") {
		m := fieldsOf(raw)
		if v.solo {
			v.shown[m.text("id")] = true
			continue
		}
		v.message(m)
	}
	for _, raw := range input.list("resume") {
		if !v.solo {
			v.labelled("answer", cyan, v.answer(fieldsOf(raw)))
		}
	}
}

// answer is what somebody answered to an interrupt.
func (v *view) answer(f fields) string {
	if f.text("status") == "cancelled" {
		return "declined"
	}
	switch payload := f.object("payload"); string(payload["approved"]) {
	case "true":
		return "approved"
	case "false":
		return "declined"
	}
	return v.value(f["payload"])
}

func showRunFinished(v *view, f fields) {
	v.turn(nil)
	outcome := f.object("outcome")
	switch outcome.text("type") {
	case "interrupt":
		for _, raw := range outcome.list("interrupts") {
			v.labelled("asks", yellow, question(fieldsOf(raw)))
		}
	case "cancelled":
		v.labelled("stopped", dim, "")
	default:
		for _, id := range outcome.list("pendingToolCallIds") {
			v.labelled("waits", yellow, "for the application's answer to "+v.callName(id))
		}
		if !v.solo {
			v.labelled("finished", dim, usage(f.list("usage")))
		}
	}
	v.forget()
}

func (v *view) callName(id json.RawMessage) string {
	name := fields{"id": id}.text("id")
	if c := v.calls[name]; c != nil {
		return c.name
	}
	return line(name)
}

func showRunError(v *view, f fields) {
	v.turn(nil)
	text := f.text("message")
	if code := f.text("code"); code != "" {
		text = strings.TrimSpace(text + " (" + code + ")")
	}
	v.labelled("error", red, text)
	v.forget()
}

// question is what an interrupt asks.
func question(f fields) string {
	if text := f.text("message"); text != "" {
		return text
	}
	if f.text("reason") == "input_required" {
		return "The agent asks for an answer."
	}
	return "The agent asks for your approval."
}

// usage is how many tokens a run took, if that was told.
func usage(list []json.RawMessage) string {
	var in, out int64
	for _, raw := range list {
		var u struct {
			InputTokens  int64 `json:"inputTokens"`
			OutputTokens int64 `json:"outputTokens"`
		}
		if json.Unmarshal(raw, &u) == nil {
			in, out = in+u.InputTokens, out+u.OutputTokens
		}
	}
	if in+out == 0 {
		return ""
	}
	return fmt.Sprintf("%d tokens in, %d out", in, out)
}
