package agui

import (
	"bytes"
	"cmp"
	"slices"
)

// Joining of JSON texts: pieces of a string, and metadata.

// joined gathers the deltas of one item as JSON text, so that the halves of a surrogate pair that two deltas brought
// meet again.
type joined []byte

// add appends a JSON string, quotes included.
func (j joined) add(raw []byte) joined {
	if j == nil {
		return append(make(joined, 0, 4*len(raw)), raw...)
	}
	return append(j[:len(j)-1], raw[1:]...)
}

// metadataMerge merges metadata objects by AG-UI 1.0, section 5.1: key by key, without recursion, the last one wins.
type metadataMerge struct {
	raw    []byte // the only operand so far, as it came
	merged *node  // of two or more
}

// add merges the JSON text of one more object; nil is an absent operand.
func (m *metadataMerge) add(raw []byte) {
	switch {
	case raw == nil:
		return
	case m.merged == nil && m.raw == nil:
		m.raw = raw
		return
	case m.merged == nil:
		m.merged = newNode(m.raw)
	}
	for w := walkObject(raw); w.next(); {
		m.merged.set(text(w.key), newNode(w.value))
	}
}

// bytes is the result; nil if every operand was absent.
func (m *metadataMerge) bytes() []byte {
	if m.merged == nil {
		return m.raw
	}
	return m.merged.bytes()
}

// change is a new value of a member, as JSON text.
type change struct {
	field field
	value []byte
}

// splice returns the text of e with some members changed, or added where e does not have them. Every other byte stays.
func splice(e *event, changes ...change) []byte {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(e.spans[a.field].from, e.spans[b.field].from) })
	size := len(e.data)
	for _, c := range changes {
		size += len(c.value) + 32
	}
	out, pos := make(builder, 0, size), int32(0)
	for _, c := range changes {
		if e.present(c.field) {
			out = append(append(out, e.data[pos:e.spans[c.field].from]...), c.value...)
			pos = e.spans[c.field].to
		}
	}
	end := bytes.LastIndexByte(e.data, '}')
	out = append(out, e.data[pos:end]...)
	for _, c := range changes {
		if !e.present(c.field) {
			out = out.raw(fieldNames[c.field], c.value)
		}
	}
	return append(out, e.data[end:]...)
}
