package hub

import "github.com/threadcast/threadcast/persistence/thread"

// Kind tells batches apart.
type Kind uint8

const (
	// Events carries events of one run.
	Events Kind = iota
	// Reset says that the reader must forget the run (or, with an empty RunID, the whole thread). What follows comes
	// after From: the run again from the start, or, where it was discarded, whatever comes after it.
	Reset
	// CaughtUp says that what there was when the subscription began has been returned.
	CaughtUp
	// Changed says that something about the thread has changed besides its events.
	Changed
)

// Batch is what [Subscription.Next] returns: a step from From to To.
type Batch struct {
	Kind   Kind
	RunID  thread.RunID
	From   thread.Cursor // the position that the batch continues; its own events come after it
	To     thread.Cursor // the reader's position once it has taken the batch
	Replay bool          // the events were there when the subscription began
	Events [][]byte      // of one run, in order; shared, never to be changed; may be empty

	single bool // each event is one entry of the live log
}

// After returns the position after the i-th event, where a reader who takes a batch event by event may break off. There is
// none between events that stand for several entries each: ok is false then, but for the last one.
func (b Batch) After(i int) (c thread.Cursor, ok bool) {
	switch {
	case b.single:
		return thread.Cursor{Run: b.To.Run, Seq: b.From.Seq + uint64(i) + 1}, true
	case i == len(b.Events)-1:
		return b.To, true
	}
	return thread.Cursor{}, false
}

// limits bound a batch, so that a reader far behind takes many of them.
type limits struct {
	events int
	bytes  int
}

// fits tells how many of n items, whose sizes size returns, make up one batch: at least one.
func (l limits) fits(n int, size func(int) int) int {
	bytes := 0
	for i := range n {
		bytes += size(i)
		if i > 0 && (i >= l.events || bytes > l.bytes) {
			return i
		}
	}
	return n
}

// entryBatch makes a batch of entries of one run; what follows of other runs is left out.
func entryBatch(from thread.Cursor, entries []thread.Entry) Batch {
	first := entries[0]
	if first.Run != from.Run {
		from = thread.Cursor{Run: first.Run}
	}
	b := Batch{RunID: first.RunID, From: from, Events: make([][]byte, 0, len(entries)), single: true}
	for _, e := range entries {
		if e.Run != first.Run {
			break
		}
		b.To = e.Cursor()
		if e.Kind == thread.KindEvent {
			b.Events = append(b.Events, e.Data)
		}
	}
	return b
}

// compacted is a run's compacted events on their way to a reader.
type compacted struct {
	run    uint64
	runID  thread.RunID
	last   uint64 // the position in the run once all events are taken
	ended  bool   // and whether that is the run's end
	from   uint64 // the position in the run now
	events []thread.Event
}

// take returns the next batch. A batch ends only at a cut: a position that no event of the run reaches
// across, so that a reader who comes back with it has everything up to it and nothing beyond.
func (c *compacted) take(l limits) Batch {
	n := cutAfter(c.events, l.fits(len(c.events), func(i int) int { return len(c.events[i].Data) }))
	b := Batch{
		RunID:  c.runID,
		From:   thread.Cursor{Run: c.run, Seq: c.from},
		Events: make([][]byte, 0, n),
	}
	for _, e := range c.events[:n] {
		b.Events = append(b.Events, e.Data)
		c.from = max(c.from, e.Last)
	}
	c.events = c.events[n:]
	if len(c.events) == 0 {
		c.from = c.last
	}
	b.To = thread.Cursor{Run: c.run, Seq: c.from}
	return b
}

// cutAfter returns the least number of events, n or more, after which there is a cut.
func cutAfter(events []thread.Event, n int) int {
	if n >= len(events) {
		return len(events)
	}
	// least[i] is the least First of the events from i on; only the tail from n is needed.
	least := make([]uint64, len(events)+1)
	least[len(events)] = ^uint64(0)
	for i := len(events) - 1; i >= n; i-- {
		least[i] = min(least[i+1], events[i].First)
	}
	var reached uint64
	for i, e := range events {
		if i >= n && reached < least[i] {
			return i
		}
		reached = max(reached, e.Last)
	}
	return len(events)
}

// rest returns the events after seq, and whether seq is a cut: no event begins at or before it and ends
// after it.
func rest(events []thread.Event, seq uint64) ([]thread.Event, bool) {
	var after []thread.Event
	for _, e := range events {
		if e.First <= seq && seq < e.Last {
			return nil, false
		}
		if e.First > seq {
			after = append(after, e)
		}
	}
	return after, true
}
