package agui

import (
	"bytes"
	"slices"
	"strconv"
)

// node is a JSON value that can be changed in places. What is not looked into stays the text that it was, and
// the names of members keep their spelling too.
type node struct {
	raw   []byte         // the text; nil once the value has been opened
	list  bool           // opened as an array
	parts []part         // members or elements, once opened
	own   bool           // raw belongs to the node alone and may grow
	full  bool           // no more is added to raw
	index map[string]int // where the members are, if there are many; nil when it is not up to date
}

// part is a member of an object, or an element of an array, which has no name.
type part struct {
	key   string
	name  []byte // the key's JSON text
	value *node
}

// manyMembers is the number of members from which an index pays.
const manyMembers = 16

func newNode(raw []byte) *node { return &node{raw: raw} }

func (n *node) isObject() bool {
	if n.raw != nil {
		return isObject(n.raw)
	}
	return !n.list
}

func (n *node) isArray() bool {
	if n.raw != nil {
		return isArray(n.raw)
	}
	return n.list
}

// open makes the parts of n accessible, and reports whether n can have any.
func (n *node) open() bool {
	if n.raw == nil {
		return true
	}
	if !n.isObject() && !n.isArray() {
		return false
	}
	raw := n.raw
	n.raw, n.list = nil, isArray(raw)
	for w := walk(raw); w.next(); {
		if n.list {
			n.parts = append(n.parts, part{value: newNode(w.value)})
			continue
		}
		key := text(w.key)
		if i := n.find(key); i >= 0 {
			n.parts[i].value = newNode(w.value) // of two, the last counts
			continue
		}
		n.put(len(n.parts), part{key, w.key, newNode(w.value)})
	}
	return true
}

// find returns the place of a member of an opened object, or -1.
func (n *node) find(key string) int {
	if len(n.parts) < manyMembers {
		return slices.IndexFunc(n.parts, func(p part) bool { return p.key == key })
	}
	if n.index == nil {
		n.index = make(map[string]int, 2*len(n.parts))
		for i, p := range n.parts {
			n.index[p.key] = i
		}
	}
	if i, ok := n.index[key]; ok {
		return i
	}
	return -1
}

// get returns a member of an object, or nil.
func (n *node) get(key string) *node {
	if !n.isObject() {
		return nil
	}
	n.open()
	if i := n.find(key); i >= 0 {
		return n.parts[i].value
	}
	return nil
}

// set gives an object a member.
func (n *node) set(key string, value *node) {
	n.open()
	if i := n.find(key); i >= 0 {
		n.parts[i].value = value
		return
	}
	n.put(len(n.parts), part{key, quoted(key), value})
}

// put inserts a part at a place of an opened value.
func (n *node) put(at int, p part) {
	if at < len(n.parts) {
		n.index = nil
	} else if n.index != nil {
		n.index[p.key] = at
	}
	n.parts = slices.Insert(n.parts, at, p)
}

// cut takes out the part at a place of an opened value, and returns it.
func (n *node) cut(at int) part {
	p := n.parts[at]
	n.parts = slices.Delete(n.parts, at, at+1)
	n.index = nil
	return p
}

// append appends the text of n.
func (n *node) append(dst []byte) []byte {
	if n.raw != nil {
		return append(dst, n.raw...)
	}
	brackets := "{}"
	if n.list {
		brackets = "[]"
	}
	dst = append(dst, brackets[0])
	for i, p := range n.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !n.list {
			dst = append(append(dst, p.name...), ':')
		}
		dst = p.value.append(dst)
	}
	return append(dst, brackets[1])
}

// bytes is the text of n.
func (n *node) bytes() []byte {
	if n.raw != nil {
		return n.raw
	}
	return n.append(nil)
}

// textOf is the text of a string member; empty if there is none.
func (n *node) textOf(key string) string {
	if v := n.get(key); v != nil && isString(v.raw) {
		return text(v.raw)
	}
	return ""
}

// clone copies n as deep as it was opened; text is never changed and may be shared.
func (n *node) clone() *node {
	c := &node{raw: n.raw, list: n.list, parts: slices.Clone(n.parts)}
	for i, p := range c.parts {
		c.parts[i].value = p.value.clone()
	}
	return c
}

// nodeBytes is about what a node takes in memory, with its place among the parts of another.
const nodeBytes = 128

// weight is about what a clone of n costs in bytes: its text, and memory for the nodes.
func (n *node) weight() int {
	w := nodeBytes + len(n.raw)
	for _, p := range n.parts {
		w += len(p.name) + p.value.weight()
	}
	return w
}

// equal compares as JavaScript clients do: numbers by value in double precision, objects without order.
func (n *node) equal(m *node) bool {
	switch {
	case n.isObject() && m.isObject():
		n.open()
		m.open()
		return len(n.parts) == len(m.parts) && !slices.ContainsFunc(n.parts, func(p part) bool {
			other := m.get(p.key)
			return other == nil || !p.value.equal(other)
		})
	case n.isArray() && m.isArray():
		n.open()
		m.open()
		return slices.EqualFunc(n.parts, m.parts, func(a, b part) bool { return a.value.equal(b.value) })
	case n.raw == nil || m.raw == nil:
		return false
	}
	return equalScalars(n.raw, m.raw)
}

func equalScalars(a, b []byte) bool {
	switch {
	case isString(a) && isString(b):
		return bytes.Equal(decode(a), decode(b))
	case isNumber(a) && isNumber(b):
		x, _ := strconv.ParseFloat(string(a), 64) // out of range is an infinity, as in JavaScript
		y, _ := strconv.ParseFloat(string(b), 64)
		return x == y
	}
	return bytes.Equal(a, b)
}

func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}
