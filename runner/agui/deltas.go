package agui

import (
	"maps"
	"slices"
	"strings"
)

// Joining of delta events: P3 and P4.

// kinds of names that deltas go by. Text and reasoning messages share theirs: where both stream under one id, each
// appends to the same message, and their order must stay.
const (
	messageKind = iota
	callKind
	kindCount
)

// joins are the delta events since the last barrier that could take another.
type joins struct {
	latest [kindCount]map[string]*join // by id
	grown  []*join
}

// join is a delta event with those that it took.
type join struct {
	place    int // in the record
	head     event
	others   string // what has to agree
	delta    joined // nil while nothing was taken
	metadata metadataMerge
}

// part is a barrier for one name: its START or END, or another event that may put a message of that name in its place.
func (j *joins) part(kind int, id []byte) { delete(j.latest[kind], string(id)) }

// partAll is a barrier for all names of a kind.
func (j *joins) partAll(kind int) { clear(j.latest[kind]) }

// join takes a delta event into the one before it with the same name, if the two agree (P3).
func (c *compaction) join(e *event, ev Event) {
	kind, id := messageKind, e.text(fMessageID)
	if e.typ == callArgs {
		kind, id = callKind, e.text(fToolCallID)
	}
	j, rest := c.joins.latest[kind][string(id)], others(e)
	if j == nil || j.head.typ != e.typ || j.others != rest {
		if c.joins.latest[kind] == nil {
			c.joins.latest[kind] = map[string]*join{}
		}
		c.joins.latest[kind][string(id)] = &join{place: c.keep(ev), head: *e, others: rest}
		return
	}
	if j.delta == nil {
		j.delta = joined(nil).add(j.head.raw(fDelta))
		j.metadata.add(j.head.raw(fMetadata))
		c.joins.grown = append(c.joins.grown, j)
	}
	j.delta = j.delta.add(e.raw(fDelta))
	j.metadata.add(e.raw(fMetadata))
	c.cover(j.place, ev)
}

func (c *compaction) writeJoins() {
	for _, j := range c.joins.grown {
		changes := []change{{fDelta, j.delta}}
		if m := j.metadata.bytes(); m != nil {
			changes = append(changes, change{fMetadata, m})
		}
		c.out[j.place].Data = splice(&j.head, changes...)
	}
	c.joins = joins{}
}

// others spells out the members of a delta event in which two must agree: all but delta, metadata, timestamp and
// rawEvent, and but the type and the id, which are compared by themselves. It is empty for most.
func others(e *event) string {
	own := setOf(fType, fMessageID, fDelta, fMetadata, fTimestamp, fRawEvent)
	if e.typ == callArgs {
		own = setOf(fType, fToolCallID, fDelta, fMetadata, fTimestamp, fRawEvent)
	}
	if !e.extra && e.has&^own == 0 {
		return ""
	}
	members := map[string]string{}
	for w := walkObject(e.data); w.next(); {
		f, known := fieldsByName[string(decode(w.key))]
		if !known || own&(1<<f) == 0 {
			key := string(quoted(text(w.key)))
			members[key] = key + ":" + string(w.value)
		}
	}
	lines := make([]string, 0, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		lines = append(lines, members[key])
	}
	return strings.Join(lines, ",")
}
