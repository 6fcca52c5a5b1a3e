package agui

import "bytes"

// Event is one event of a record, which stands for the entries First to Last of the run, both included. Where nothing
// was compacted yet both are the same number.
type Event struct {
	First uint64
	Last  uint64
	Data  []byte
}

// Compact returns fewer events that mean the same: a replay gives the messages and the state that the events gave,
// and is legal where they were. It is the order-preserving compaction of AG-UI 1.0, section 14.3. Chunks are expanded
// (P1), deltas of one item join the first of them (P3), state events fold into the last snapshot (P5), and everything
// else stays where it is, byte for byte (P2). A snapshot stays apart from its deltas where their copies would make far
// more of it than the events hold. Numbers and strings keep their spelling; halves of a surrogate
// pair that two deltas brought meet again.
//
// The events are those of one run or of several, in order. First and Last of a result are the least First and the
// greatest Last of the events that went into it, so results can overlap, and a folded snapshot or the END of a stream of
// chunks can begin before the event in front of it. Somebody who has seen the events up to a number n goes on
// with exactly the results whose First is greater than n, unless some result has First <= n < Last: then there is no way
// to go on but from the start of the run.
//
// Compacting again changes nothing. What is not an event of AG-UI stays as it is, and so does the whole of a run whose
// chunks break the rules of section 12.
func Compact(events []Event) []Event {
	out := make([]Event, 0, min(len(events), 64))
	for len(events) > 0 {
		n := 1
		for n < len(events) && !startsRun(events[n].Data) {
			n++
		}
		out = append(out, compactRun(events[:n])...)
		events = events[n:]
	}
	return out
}

// startsRun tells whether an event is a RUN_STARTED.
func startsRun(data []byte) bool {
	if !bytes.Contains(data, []byte("RUN_STARTED")) && !bytes.Contains(data, []byte(`\u`)) {
		return false // it cannot be spelled without one of the two
	}
	e, err := scanned(data)
	return err == nil && e.typ == runStarted
}

func compactRun(events []Event) []Event {
	var (
		chunks expander
		c      compaction
	)
	for _, source := range events {
		e, err := parsed(source.Data)
		if err != nil {
			c.barrier()
			c.keep(source)
			continue
		}
		err = chunks.expand(&e, source, func(made Event) {
			if &made.Data[0] == &source.Data[0] {
				c.add(&e, source)
				return
			}
			m, _ := scanned(made.Data)
			c.add(&m, made)
		})
		if err != nil {
			return events
		}
	}
	for _, o := range chunks.openers { // no END came that would cover them
		c.cover(len(c.out)-1, o.sources)
	}
	return c.finish()
}

// compaction builds the record of one run.
type compaction struct {
	out    []entry
	joins  joins
	states states
	// begun are the messages that are certainly there. The deltas of another one (a snapshot may have dropped it, or
	// it never began) count only once a call makes it its holder, which is a barrier for it.
	begun map[string]bool
	// activities are messages that are certainly activities, which hold no calls.
	activities map[string]bool
}

// entry is an event of the record, or one that went into another.
type entry struct {
	Event
	gone bool
}

// keep puts an event where it is, and returns its place.
func (c *compaction) keep(ev Event) int {
	c.out = append(c.out, entry{Event: ev})
	return len(c.out) - 1
}

// cover notes that the event at a place stands for ev too.
func (c *compaction) cover(place int, ev Event) {
	at := &c.out[place]
	at.First, at.Last = min(at.First, ev.First), max(at.Last, ev.Last)
}

// fold puts the event at one place into the event at another.
func (c *compaction) fold(from, into int) {
	c.out[from].gone = true
	c.cover(into, c.out[from].Event)
}

func (c *compaction) add(e *event, ev Event) {
	switch e.typ {
	case textContent, thoughtContent, callArgs:
		c.join(e, ev)
	case stateSnapshot:
		c.snapshot(e, ev)
	case stateDelta:
		c.patch(e, ev)
	case unknownType, runStarted, runFinished, runError, messagesSnapshot: // P4
		c.barrier()
		c.keep(ev)
		if e.typ == messagesSnapshot {
			clear(c.begun)
			clear(c.activities)
		}
	case textStart, thoughtStart:
		c.joins.part(messageKind, e.text(fMessageID))
		c.begin(e.text(fMessageID))
		c.keep(ev)
	case activitySnapshot:
		c.joins.part(messageKind, e.text(fMessageID))
		c.activity(e)
		c.keep(ev)
	case textEnd, thoughtEnd, callResult, activityDelta:
		c.joins.part(messageKind, e.text(fMessageID))
		c.keep(ev)
	case callStart, callEnd:
		c.joins.part(callKind, e.text(fToolCallID))
		if e.typ == callStart {
			c.holder(e.text(fToolCallID))
			c.holder(e.text(fParentMessageID))
		}
		c.keep(ev)
	default:
		c.keep(ev)
	}
}

// activity is a barrier for all calls if the activity may take the place of a message that holds some: what comes for them
// after it goes elsewhere, or nowhere.
func (c *compaction) activity(e *event) {
	id := string(e.text(fMessageID))
	if c.activities[id] {
		return
	}
	c.joins.partAll(callKind)
	if string(e.raw(fReplace)) == "false" {
		return // what is there stays
	}
	if c.activities == nil {
		c.activities = map[string]bool{}
	}
	c.activities[id] = true
}

// begin notes that a message is there.
func (c *compaction) begin(id []byte) {
	delete(c.activities, string(id))
	if c.begun == nil {
		c.begun = map[string]bool{}
	}
	c.begun[string(id)] = true
}

// holder is a barrier for the message that a call may bring into being.
func (c *compaction) holder(id []byte) {
	if !c.begun[string(id)] {
		c.joins.part(messageKind, id)
	}
}

// barrier writes down what was gathered since the last one.
func (c *compaction) barrier() {
	c.writeJoins()
	c.writeState()
}

func (c *compaction) finish() []Event {
	c.barrier()
	events := make([]Event, 0, len(c.out))
	for _, at := range c.out {
		if !at.gone {
			events = append(events, at.Event)
		}
	}
	return events
}
