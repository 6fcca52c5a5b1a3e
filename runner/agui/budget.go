package agui

import (
	"bytes"
	"errors"
)

// DefaultMaxBytes is what a [Reducer] may hold unless it is told otherwise: enough for a conversation of many
// megabytes of text, whose every value counts for more than its text.
const DefaultMaxBytes = 128 << 20

const (
	heldBytes = 512 // about what a message takes in memory beside its values
	copyRatio = 16  // how many times the bytes of its events a Reducer copies, beyond its budget
)

// budget is what a Reducer may hold, and holds. Everything counts for its text and for the memory that it takes once it has
// been looked into, so that looking into it needs no room.
type budget struct {
	max, used int
	copied    int  // by patches, whether or not it lasted
	toiled    int  // parts that patches moved
	taken     int  // bytes of events so far
	exceeded  bool // something was left out
}

// spend takes n bytes, or gives them back. It reports false, and takes none, if they are not there.
func (b *budget) spend(n int) bool {
	if n > 0 && b.used+n > b.max {
		b.exceeded = true
		return false
	}
	b.used += n
	return true
}

// patch applies a JSON Patch to a document, as far as there is room for what comes of it, and returns by how much the
// document grew. What the document keeps of the patch is its own.
func (b *budget) patch(d *document, raw []byte) (grown int, ok bool) {
	ops, ok := parsePatch(raw)
	if !ok {
		return 0, false
	}
	for i := range ops {
		if ops[i].name != "test" {
			ops[i].value = own(ops[i].value)
		}
	}
	d.bounded, d.room, d.grown = true, b.max-b.used, 0
	d.copied, d.limit = b.copied, b.max+copyRatio*b.taken
	d.toiled, d.toil = b.toiled, toilRoom+toilRatio*b.taken
	err := d.patch(ops)
	b.copied, b.toiled = d.copied, d.toiled
	if errors.Is(err, errBulk) {
		b.exceeded = true
	}
	if err != nil {
		return 0, false
	}
	b.used += d.grown
	return d.grown, true
}

// own copies a JSON text, and leaves out the space between its tokens: what a Reducer keeps must not keep the event
// that it came in, and must not be larger than it counts for. nil stays nil.
func own(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	if !bytes.ContainsAny(raw, " \t\r\n") {
		return bytes.Clone(raw)
	}
	return bytes.Clone(compacted(raw))
}

// bulk is what a JSON text counts for: each value, names and scalars for their text besides.
func bulk(raw []byte) int {
	values, text := 1, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end := stringEnd(raw, i)
			text += end - i
			i = end - 1
		case ',':
			values++
		case '{', '[':
			values++ // the first member, if there is one
			if s := (scanner{data: raw, pos: i + 1}); emptyAfter(&s) {
				values--
			}
		case '}', ']', ':', ' ', '\t', '\r', '\n':
		default:
			text++
		}
	}
	return nodeBytes*values + text
}

// stringEnd returns the place behind the JSON string that begins at i.
func stringEnd(raw []byte, i int) int {
	s := scanner{data: raw, pos: i}
	if !s.str() {
		return len(raw)
	}
	return s.pos
}

// emptyAfter tells whether the composite whose bracket was passed has nothing in it.
func emptyAfter(s *scanner) bool {
	s.space()
	return s.at() == '}' || s.at() == ']'
}

// bulk is what a value counts for, whether or not it has been looked into.
func (n *node) bulk() int {
	if n.raw != nil {
		return bulk(n.raw)
	}
	size := nodeBytes
	for _, p := range n.parts {
		size += len(p.name) + p.value.bulk()
	}
	return size
}
