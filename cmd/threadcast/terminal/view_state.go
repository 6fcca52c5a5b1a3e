package terminal

import (
	"encoding/json"
	"strings"
)

func showStateSnapshot(v *view, f fields) { v.labelled("state", dim, v.value(f["snapshot"])) }

func showStateDelta(v *view, f fields) {
	if text := patchText(f["delta"]); text != "" {
		v.labelled("state", dim, v.short(text))
	}
}

func showActivitySnapshot(v *view, f fields) {
	v.shown[f.text("messageId")] = true
	v.labelled("activity", dim, line(f.text("activityType"))+" "+v.value(f["content"]))
}

func showActivityDelta(v *view, f fields) {
	v.labelled("activity", dim, line(f.text("activityType"))+" "+v.short(patchText(f["patch"])))
}

// patchText says what a JSON patch does, such as: replace /done 3, remove /draft.
func patchText(patch json.RawMessage) string {
	var ops []json.RawMessage
	if json.Unmarshal(patch, &ops) != nil {
		return compacted(patch)
	}
	said := make([]string, len(ops))
	for i, op := range ops {
		f := fieldsOf(op)
		words := []string{f.text("op"), f.text("from"), f.text("path")}
		if value := f["value"]; value != nil {
			words = append(words, compacted(value))
		}
		said[i] = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	}
	return strings.Join(said, ", ")
}

// showMessagesSnapshot shows those messages of a snapshot that have not been shown.
func showMessagesSnapshot(v *view, f fields) {
	for _, raw := range f.list("messages") {
		v.message(fieldsOf(raw))
	}
}

// message shows a message as a whole, unless it has been shown.
func (v *view) message(f fields) {
	id := f.text("id")
	if id != "" && v.shown[id] {
		return
	}
	v.shown[id] = true
	switch role := f.text("role"); role {
	case "assistant", "reasoning":
		v.assistant(f)
	case "tool":
		showCallResult(v, fields{"messageId": f["id"], "toolCallId": f["toolCallId"], "content": f["content"]})
	case "activity":
		showActivitySnapshot(v, f)
	default:
		v.labelled(line(role), cyan, strings.TrimRight(contentText(f["content"]), "\n"))
	}
}

func (v *view) assistant(f fields) {
	b := &block{}
	if f.text("role") == "reasoning" {
		b.label, b.style = "thinking", dim
	}
	if text := Inert(contentText(f["content"])); f["content"] != nil && text != "" {
		v.turn(b)
		v.write(v.pen(b), b.style, text)
		v.turn(nil)
	}
	for _, raw := range f.list("toolCalls") {
		call := fieldsOf(raw)
		id := fields{"toolCallId": call["id"]}
		showCallStart(v, fields{"toolCallId": call["id"], "toolCallName": call.object("function")["name"]})
		showCallArgs(v, fields{"toolCallId": call["id"], "delta": call.object("function")["arguments"]})
		showCallEnd(v, id)
	}
}
