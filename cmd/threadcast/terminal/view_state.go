package terminal

import (
	"encoding/json"
	"strings"
)

func (v *view) stateSnapshot(f fields) { v.labelled("state", dim, v.value(f["snapshot"])) }

func (v *view) stateDelta(f fields) {
	if text := patchText(f["delta"]); text != "" {
		v.labelled("state", dim, v.short(text))
	}
}

func (v *view) activitySnapshot(f fields) {
	v.shown[f.text("messageId")] = true
	v.labelled("activity", dim, line(f.text("activityType"))+" "+v.value(f["content"]))
}

func (v *view) activityDelta(f fields) {
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

// messagesSnapshot shows those messages of a snapshot that have not been shown.
func (v *view) messagesSnapshot(f fields) {
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
		v.callResult(fields{"messageId": f["id"], "toolCallId": f["toolCallId"], "content": f["content"]})
	case "activity":
		v.activitySnapshot(f)
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
		v.callStart(fields{"toolCallId": call["id"], "toolCallName": call.object("function")["name"]})
		v.callArgs(fields{"toolCallId": call["id"], "delta": call.object("function")["arguments"]})
		v.callEnd(id)
	}
}
