package agui

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Why a patch was not applied; the document is then as before. errPatch is certain: no consumer applies it. With
// errUnsure consumers differ: the standard refuses the patch, while the JavaScript that most of them run makes something
// of it, such as an index with a leading zero. What is unsure must be left to them. With errBulk the patch would apply,
// but it makes more of the document than its limit or its room allows.
var (
	errPatch  = errors.New("patch does not apply")
	errUnsure = errors.New("consumers differ on this patch")
	errBulk   = errors.New("patch makes too much")
)

// operation is one operation of a JSON Patch.
type operation struct {
	name       string
	path, from []string
	value      []byte // JSON text
}

// parsePatch reads a JSON Patch and judges its structure, AG-UI 1.0, section 5.5. Operations of unknown name are left
// out, as every consumer does; anything else that is wrong makes the patch malformed and ok false.
func parsePatch(raw []byte) (ops []operation, ok bool) {
	if !isArray(raw) {
		return nil, false
	}
	for w := walk(raw); w.next(); {
		op, known, ok := parseOperation(w.value)
		if !ok {
			return nil, false
		}
		if known {
			ops = append(ops, op)
		}
	}
	return ops, true
}

func parseOperation(raw []byte) (op operation, known, ok bool) {
	name := member(raw, "op")
	if !isString(name) {
		return op, false, false
	}
	op.name, op.value = text(name), member(raw, "value")
	switch op.name {
	case "add", "replace", "test":
		ok = op.value != nil
	case "move", "copy":
		op.from, ok = parsePointer(member(raw, "from"))
	case "remove":
		ok = true
	default:
		return op, false, true
	}
	if !ok {
		return op, true, false
	}
	op.path, ok = parsePointer(member(raw, "path"))
	return op, true, ok
}

// parsePointer splits a JSON Pointer into its names, of which the whole document has none.
func parsePointer(raw []byte) ([]string, bool) {
	if !isString(raw) {
		return nil, false
	}
	p := text(raw)
	if p == "" {
		return nil, true
	}
	if p[0] != '/' {
		return nil, false
	}
	names := strings.Split(p[1:], "/")
	for i, name := range names {
		if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(name, "~0", ""), "~1", ""), "~") {
			return nil, false
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names, true
}

// document is a value under patches.
type document struct {
	root   *node
	undo   []func()
	copied int // bytes that copies took so far, in text and in memory, whether or not they lasted
	limit  int // of copied; 0 if there is none
	toiled int // parts that were moved to make room or close a gap, or had to be found anew
	toil   int // the limit of that; 0 if there is none

	bounded bool // by room
	room    int  // how much the document may grow in the next patch
	grown   int  // by how much it grew in the last one
}

// patch applies all operations or none (RFC 6902). The values of ops become part of the document.
func (d *document) patch(ops []operation) error {
	d.undo = d.undo[:0]
	for _, op := range ops {
		if err := d.apply(op); err != nil {
			for _, undo := range slices.Backward(d.undo) {
				undo()
			}
			return err
		}
	}
	return nil
}

func (d *document) apply(op operation) error {
	switch op.name {
	case "add":
		n := newNode(op.value)
		return d.add(op.path, n, d.bulk(n))
	case "replace":
		n := newNode(op.value)
		return d.replace(op.path, n, d.bulk(n))
	case "remove":
		if len(op.path) == 0 {
			null := newNode([]byte("null"))
			return d.replace(nil, null, d.bulk(null))
		}
		gone, err := d.remove(op.path)
		if err == nil {
			err = d.grow(-d.bulk(gone))
		}
		return err
	case "test":
		return d.test(op)
	}
	// A move or copy.
	n, err := d.at(op.from)
	switch {
	case err != nil && len(op.path) == 0:
		return errUnsure // JavaScript clients then replace the document by nothing
	case err != nil:
		return err
	case op.name == "copy":
		return d.copy(op.path, n)
	}
	return d.move(op)
}

// test compares. What it compares with is looked into for that, and needs room as long.
func (d *document) test(op operation) error {
	n, err := d.at(op.path)
	if err != nil {
		return err
	}
	with := newNode(op.value)
	if size := d.bulk(with); size > 0 && d.grown+size > d.room {
		return errBulk
	}
	if !n.equal(with) {
		return errPatch
	}
	return nil
}

// bulk is what a value counts for where room is limited.
func (d *document) bulk(n *node) int {
	if !d.bounded {
		return 0
	}
	return n.bulk()
}

// grow notes that the document grows by n bytes, or shrinks, unless there is no room for that.
func (d *document) grow(n int) error {
	if !d.bounded {
		return nil
	}
	if n > 0 && d.grown+n > d.room {
		return errBulk
	}
	d.grown += n
	return nil
}

// copy puts a clone of n in its place, unless the document's limit does not leave room for it. Only copies need a
// limit: the rest of a document was spelled out in the events.
func (d *document) copy(path []string, n *node) error {
	if d.limit > 0 {
		if d.copied > d.limit {
			return errBulk
		}
		if d.copied += n.weight(); d.copied > d.limit {
			return errBulk
		}
	}
	return d.put(path, n.clone(), d.bulk(n))
}

func (d *document) move(op operation) error {
	if len(op.from) == 0 {
		return errUnsure
	}
	if len(op.path) > len(op.from) && slices.Equal(op.from, op.path[:len(op.from)]) {
		return errPatch // a value cannot move into itself
	}
	n, err := d.remove(op.from)
	if err != nil {
		return err
	}
	return d.put(op.path, n, 0)
}

// put is add for the target of a move or copy, which JavaScript clients append where an index lies too far out.
func (d *document) put(path []string, value *node, size int) error {
	err := d.add(path, value, size)
	if err == nil || len(path) == 0 {
		return err
	}
	if n, name, _ := d.parent(path); n != nil && n.list && isIndex(name) {
		return errUnsure
	}
	return err
}

// at returns the value that a pointer leads to.
func (d *document) at(path []string) (*node, error) {
	n := d.root
	for i := range path {
		at, err := place(n, path[:i+1])
		if err != nil {
			return nil, err
		}
		n = n.parts[at].value
	}
	return n, nil
}

// place opens n and returns where in it the value stands that the last name of path names.
func place(n *node, path []string) (int, error) {
	if err := enter(n, path); err != nil {
		return 0, err
	}
	name := path[len(path)-1]
	if !n.list {
		if i := n.find(name); i >= 0 {
			return i, nil
		}
		if inherited[name] {
			return 0, errUnsure
		}
		return 0, errPatch
	}
	i, err := index(name)
	if err == nil && i >= len(n.parts) {
		err = errPatch
	}
	return i, err
}

// enter opens n for the last name of path. What JavaScript clients refuse for the sake of their prototypes is refused
// here too, so that all agree on the result.
func enter(n *node, path []string) error {
	last := len(path) - 1
	if path[last] == "__proto__" || last > 0 && path[last] == "prototype" && path[last-1] == "constructor" {
		return errPatch
	}
	if n.open() {
		return nil
	}
	if last == 0 && !isNull(n.raw) {
		return errUnsure // for JavaScript a document that is a number or a string just stays what it is
	}
	return errPatch
}

// inherited are the members that every JavaScript object seems to have.
var inherited = map[string]bool{
	"constructor": true, "hasOwnProperty": true, "isPrototypeOf": true, "propertyIsEnumerable": true,
	"toLocaleString": true, "toString": true, "valueOf": true, "__defineGetter__": true, "__defineSetter__": true,
	"__lookupGetter__": true, "__lookupSetter__": true,
}

// index reads an array index: digits without a leading zero. JavaScript clients read other digits too, or none.
func index(name string) (int, error) {
	if !isIndex(name) {
		return 0, errPatch
	}
	i, err := strconv.ParseInt(name, 10, 32)
	if err != nil || len(name) > 1 && name[0] == '0' {
		return 0, errUnsure
	}
	return int(i), nil
}

// isIndex tells whether name consists of digits, or of nothing.
func isIndex(name string) bool { return strings.Trim(name, "0123456789") == "" }

// parent returns the opened value in which a pointer's last name stands or can be put, and that name.
func (d *document) parent(path []string) (*node, string, error) {
	last := len(path) - 1
	n, err := d.at(path[:last])
	if err == nil {
		err = enter(n, path)
	}
	if err != nil {
		return nil, "", err
	}
	return n, path[last], nil
}

// add puts a value where path leads, and makes room for it there. The value counts for size; 0 if it stood elsewhere
// in the document before.
func (d *document) add(path []string, value *node, size int) error {
	if len(path) == 0 {
		return d.replace(nil, value, size)
	}
	n, name, err := d.parent(path)
	if err != nil {
		return err
	}
	if !n.list {
		if i := n.find(name); i >= 0 {
			return d.swap(n, i, value, size)
		}
		return d.insert(n, len(n.parts), part{name, quoted(name), value}, size)
	}
	i := len(n.parts)
	if name != "-" {
		i, err = index(name)
	}
	if err == nil && i > len(n.parts) {
		err = errPatch
	}
	if err != nil {
		return err
	}
	return d.insert(n, i, part{value: value}, size)
}

func (d *document) replace(path []string, value *node, size int) error {
	if len(path) == 0 {
		old := d.root
		if err := d.grow(size - d.bulk(old)); err != nil {
			return err
		}
		d.root = value
		d.undo = append(d.undo, func() { d.root = old })
		return nil
	}
	n, i, err := d.existing(path)
	if err != nil {
		return err
	}
	return d.swap(n, i, value, size)
}

func (d *document) remove(path []string) (*node, error) {
	n, i, err := d.existing(path)
	if err != nil {
		return nil, err
	}
	if err := d.shift(n, i); err != nil {
		return nil, err
	}
	old := n.cut(i)
	d.undo = append(d.undo, func() { n.put(i, old) })
	return old.value, d.grow(-len(old.name))
}

// existing returns the opened value in which a pointer's target stands, and its place there.
func (d *document) existing(path []string) (*node, int, error) {
	n, _, err := d.parent(path)
	if err != nil {
		return nil, 0, err
	}
	i, err := place(n, path)
	return n, i, err
}

// indexToil is what finding a member anew costs, in parts that are moved.
const indexToil = 8

// shift notes that the parts from a place on are moved, unless there was too much of that.
func (d *document) shift(n *node, at int) error {
	moved := len(n.parts) - at
	if !n.list && moved > 0 && len(n.parts) >= manyMembers {
		moved += indexToil * len(n.parts)
	}
	if d.toiled += moved; d.toil > 0 && d.toiled > d.toil {
		return errBulk
	}
	return nil
}

func (d *document) insert(n *node, at int, p part, size int) error {
	if err := d.grow(size + len(p.name)); err != nil {
		return err
	}
	if err := d.shift(n, at); err != nil {
		return err
	}
	n.put(at, p)
	d.undo = append(d.undo, func() { n.cut(at) })
	return nil
}

func (d *document) swap(n *node, at int, value *node, size int) error {
	old := n.parts[at].value
	if err := d.grow(size - d.bulk(old)); err != nil {
		return err
	}
	n.parts[at].value = value
	d.undo = append(d.undo, func() { n.parts[at].value = old })
	return nil
}
