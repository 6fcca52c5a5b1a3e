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

// Limits of a fold. A few copies can make any size of document out of a few bytes, each doubling it. Past a limit the
// snapshot and its deltas stay as they came, so that compacting again meets the same events and leaves them too.
const (
	copyRoom  = 1 << 20 // bytes that copies may take while a fold is made, however small its events
	foldRoom  = 4 << 10 // bytes that a folded snapshot may have, however small its events
	foldRatio = 2       // beyond that, how many times the bytes of its events either may reach
	toilRoom  = 4 << 10 // parts that patches may move, however small their events
	toilRatio = 32      // beyond that, how many parts for each byte of the events: a few bytes can move any number
)

// stateFold is a snapshot with the deltas that go into it.
type stateFold struct {
	place  int
	head   event
	before metadataMerge // of the state events that the snapshot made pointless, and its own
	own    bool          // before is the snapshot's own metadata, or nothing
	deltas []stateEvent
	doc    document
	source int  // bytes of the snapshot and the patches that went into doc
	closed bool // a delta came that must be left to the consumers, so later ones must stay behind it
}

// unfold gives the fold up: the snapshot stays as it was, and all deltas stay behind it.
func (f *stateFold) unfold() {
	f.doc = document{root: newNode(f.head.raw(fSnapshot))}
	f.deltas, f.closed = nil, true
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
	f.doc.root, f.source = newNode(e.raw(fSnapshot)), len(e.raw(fSnapshot))
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
	f.source += len(e.raw(fDelta))
	f.doc.limit, f.doc.toil = max(copyRoom, foldRatio*f.source), max(toilRoom, toilRatio*f.source)
	switch err := f.doc.patch(ops); {
	case errors.Is(err, errBulk):
		f.unfold()
	case errors.Is(err, errUnsure):
		f.closed = true
	default:
		f.deltas = append(f.deltas, s)
	}
}

// writeState writes the snapshot down with its deltas. If they nest values deeper than JSON readers
// allow, or copied more than a record should grow by, they stay where they are.
func (c *compaction) writeState() {
	f := c.states.fold
	c.states = states{}
	if f == nil || f.own && len(f.deltas) == 0 {
		return
	}
	f.doc.root = newNode(f.doc.root.bytes())
	data := f.folded()
	if len(f.deltas) > 0 && (len(f.doc.root.raw) > max(foldRoom, foldRatio*f.source) || !valid(data)) {
		f.unfold()
		data = f.folded()
	}
	c.out[f.place].Data = data
	for _, d := range f.deltas {
		c.fold(d.place, f.place)
	}
}

// folded is the snapshot event with the document and the metadata of all that went into it.
func (f *stateFold) folded() []byte {
	var merged metadataMerge
	merged.add(f.before.bytes())
	for _, d := range f.deltas {
		merged.add(d.metadata)
	}
	changes := []change{{fSnapshot, f.doc.root.bytes()}}
	if m := merged.bytes(); m != nil {
		changes = append(changes, change{fMetadata, m})
	}
	return splice(&f.head, changes...)
}
