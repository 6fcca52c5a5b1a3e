package terminal

import (
	"encoding/json"
	"strings"
)

func showCallStart(v *view, f fields) {
	name := line(f.text("toolCallName"))
	v.calls[f.text("toolCallId")] = &call{name: name}
	v.status(pad("tool", labelled) + name + " …")
}

func showCallArgs(v *view, f fields) {
	if c := v.calls[f.text("toolCallId")]; c != nil {
		c.args.WriteString(c.add(f["delta"]))
	}
}

// showCallEnd shows a call, now that its arguments are complete.
func showCallEnd(v *view, f fields) {
	if c := v.calls[f.text("toolCallId")]; c != nil {
		v.labelled("tool", cyan, strings.TrimSpace(c.name+" "+v.arguments(c.args.String())))
		c.args.Reset()
	}
}

// arguments are normally JSON, but need not be.
func (v *view) arguments(text string) string {
	if json.Valid([]byte(text)) {
		text = compacted(json.RawMessage(text))
	}
	return v.short(text)
}

func showCallResult(v *view, f fields) {
	v.shown[f.text("messageId")] = true
	name := ""
	if c := v.calls[f.text("toolCallId")]; c != nil {
		name = c.name + " "
	}
	v.labelled("result", dim, name+v.content(f["content"]))
}

// content is what a message or a result holds: a string, or parts of which some are no text.
func (v *view) content(raw json.RawMessage) string {
	text := contentText(raw)
	if v.full {
		return strings.TrimRight(text, "\n")
	}
	return v.short(text)
}

func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return compacted(raw)
	}
	var pieces []string
	for _, part := range parts {
		f := fieldsOf(part)
		source := f.object("source")
		switch kind := f.text("type"); {
		case kind == "text":
			pieces = append(pieces, f.text("text"))
		case source.text("type") == "data":
			pieces = append(pieces, "["+strings.TrimSpace(kind+" "+source.text("mimeType"))+"]")
		default:
			pieces = append(pieces, "["+strings.TrimSpace(kind+" "+source.text("value"))+"]")
		}
	}
	return strings.Join(pieces, " ")
}
