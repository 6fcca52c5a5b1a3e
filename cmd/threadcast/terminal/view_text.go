package terminal

import "strings"

// block is a text that comes bit by bit: an answer, or with a label what is thought and what others say.
type block struct {
	deltas
	id    string
	label string
	style style
}

// showTextStart begins a message.
func showTextStart(v *view, f fields) {
	b := &block{id: f.text("messageId")}
	if role := f.text("role"); role != "" && role != "assistant" {
		b.label, b.style = role, cyan
	}
	v.begin(b)
}

func showThought(v *view, f fields) {
	v.begin(&block{id: f.text("messageId"), label: "thinking", style: dim})
}

func (v *view) begin(b *block) {
	v.shown[b.id], v.blocks[b.id] = true, b
	v.turn(b)
}

func showTextContent(v *view, f fields) {
	id := f.text("messageId")
	b := v.blocks[id]
	if b == nil { // its beginning is not here
		b = &block{id: id}
		v.blocks[id] = b
	}
	if v.block != b {
		v.turn(b)
	}
	text := Inert(b.add(f["delta"]))
	if b.label != "" {
		text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", labelled))
	}
	v.write(v.pen(b), b.style, text)
}

func showTextEnd(v *view, f fields) {
	b := v.blocks[f.text("messageId")]
	if b != nil && v.block == b {
		v.turn(nil)
	}
	delete(v.blocks, f.text("messageId"))
}

// turn goes from the block that is being written to another one, or to none.
func (v *view) turn(b *block) {
	if v.block != nil {
		v.endLine(v.pen(v.block))
	}
	if v.block = b; b != nil && b.label != "" {
		v.endLine(v.notes)
		v.write(v.notes, b.style, pad(line(b.label), labelled))
	}
}

// pen writes a block where it belongs: an answer to Out, the rest where the notes go.
func (v *view) pen(b *block) pen {
	if b.label == "" {
		return v.out
	}
	return v.notes
}
