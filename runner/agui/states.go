package agui

import "errors"

// Folding of state events: P5.

// states are the state events since the last barrier that still stand in the record.
type states struct {
	events []stateEvent
	fold   *stateFold // into the snapshot among them; nil if there is none
}

type stateEvent struct {
	place    int // in the record
	metadata []byte
}

// stateFold is a snapshot with the deltas that go into it.
type stateFold struct {
	place  int
	head   event
	before metadataMerge // of the state events that the snapshot made pointless, and its own
	own    bool          // before is the snapshot's own metadata, or nothing
	deltas []stateEvent
	doc    document
	closed bool // a delta came that must be left to the consumers, so later ones must stay behind it
}

// snapshot keeps a STATE_SNAPSHOT and takes away the state events before it.
func (c *compaction) snapshot(e *event, ev Event) {
	f := &stateFold{place: c.keep(ev), head: *e, own: true}
	for _, s := range c.states.events {
		c.fold(s.place, f.place)
		f.before.add(s.metadata)
		f.own = f.own && s.metadata == nil
	}
	f.before.add(e.raw(fMetadata))
	f.doc.root = newNode(e.raw(fSnapshot))
	c.states = states{events: []stateEvent{{f.place, f.before.bytes()}}, fold: f}
}

// patch keeps a STATE_DELTA, and applies it to the snapshot before it if there is one.
func (c *compaction) patch(e *event, ev Event) {
	ops, ok := parsePatch(e.raw(fDelta))
	if !ok { // consumers give the run up here
		c.barrier()
		c.keep(ev)
		return
	}
	s := stateEvent{c.keep(ev), e.raw(fMetadata)}
	c.states.events = append(c.states.events, s)
	f := c.states.fold
	if f == nil || f.closed {
		return
	}
	if err := f.doc.patch(ops); errors.Is(err, errUnsure) {
		f.closed = true
		return
	}
	f.deltas = append(f.deltas, s)
}

// writeState writes the snapshot down with its deltas. If they nest values deeper than JSON readers
// allow, they stay where they are.
func (c *compaction) writeState() {
	f := c.states.fold
	c.states = states{}
	if f == nil || f.own && len(f.deltas) == 0 {
		return
	}
	merged := f.before
	for _, d := range f.deltas {
		merged.add(d.metadata)
	}
	changes := []change{{fSnapshot, f.doc.root.bytes()}}
	if m := merged.bytes(); m != nil {
		changes = append(changes, change{fMetadata, m})
	}
	data := splice(&f.head, changes...)
	if len(f.deltas) > 0 && !valid(data) {
		return
	}
	c.out[f.place].Data = data
	for _, d := range f.deltas {
		c.fold(d.place, f.place)
	}
}
