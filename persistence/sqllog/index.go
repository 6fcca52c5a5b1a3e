package sqllog

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// index is what is committed, as far as decisions need it. The committer alone changes it, after each commit.
type index struct {
	mu     sync.RWMutex
	topics map[thread.ID]*topic
	given  counters
}

// counters are the latest numbers that were given. Each only grows.
type counters struct {
	token uint64 // to a lease
	ref   uint64 // to a run
	id    uint64 // to a row of log_recent
}

// topic is what the process knows of one thread. It is there while there is anything to know.
type topic struct {
	content *content // never nil
	tails   map[*tail]struct{}
}

// content is what the log holds of one thread. A content that is in the index does not change any more.
type content struct {
	runs  []run // by number
	lease *lease
}

var noContent = &content{}

// run is one run that is in the log.
type run struct {
	number uint64
	id     thread.RunID
	ref    uint64 // tells a run from one of the same number that was dropped before
	ended  bool
	dropAt time.Time // zero while nobody asked to drop it

	last    uint64         // seq of its last entry
	settled uint64         // seq of its last entry in log_entries
	recent  []thread.Entry // those after: they are in log_recent
	bytes   int            // of recent
	firstID uint64         // in log_recent, of the first of them
}

// content returns what is committed of a thread.
func (x *index) content(id thread.ID) *content {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if t := x.topics[id]; t != nil {
		return t.content
	}
	return noContent
}

// topic returns what is known of a thread, which it creates if need be. The caller holds the lock, and calls tidy
// once it is through.
func (x *index) topic(id thread.ID) *topic {
	t := x.topics[id]
	if t == nil {
		t = &topic{content: noContent, tails: make(map[*tail]struct{})}
		x.topics[id] = t
	}
	return t
}

// tidy lets go of a thread of which nothing is known.
func (x *index) tidy(id thread.ID) {
	if t := x.topics[id]; t != nil && len(t.content.runs) == 0 && t.content.lease == nil && len(t.tails) == 0 {
		delete(x.topics, id)
	}
}

// publish makes known what a group has committed, and hands its entries to the tails.
func (x *index) publish(g *group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.given = g.given
	for _, id := range g.forgotten {
		if t := x.topics[id]; t != nil {
			for tl := range t.tails {
				tl.end(thread.ErrDeleted)
				delete(t.tails, tl)
			}
		}
	}
	for id, c := range g.contents {
		x.topic(id).content = c
		x.tidy(id)
	}
	for _, b := range g.batches {
		if t := x.topics[b.thread]; t != nil {
			for tl := range t.tails {
				tl.put(b.entries)
			}
		}
	}
}

// replace makes all of the contents known in place of what was, and tells all tails to look for themselves.
func (x *index) replace(contents map[thread.ID]*content, given counters) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.given = given
	for id, t := range x.topics {
		if contents[id] == nil {
			t.content = noContent
		}
		for tl := range t.tails {
			tl.fallBehind()
		}
		x.tidy(id)
	}
	for id, c := range contents {
		x.topic(id).content = c
	}
}

func (x *index) endTails(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.topics {
		for tl := range t.tails {
			tl.end(err)
		}
	}
}

// abandoned returns the leases that have expired.
func (x *index) abandoned(now time.Time) []thread.Lease {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []thread.Lease
	for _, t := range x.topics {
		if ls := t.content.lease; ls != nil && !ls.held(now) {
			found = append(found, ls.forOthers())
		}
	}
	slices.SortFunc(found, func(a, b thread.Lease) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Token, b.Token))
	})
	return found
}

func (c *content) clone() *content {
	return &content{runs: slices.Clone(c.runs), lease: c.lease}
}

// find returns the place of the run with that number, or where it would be.
func (c *content) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(c.runs, number, func(r run, n uint64) int { return cmp.Compare(r.number, n) })
}

// next returns the run in which the entry after a cursor is, and how many entries of it come before.
func (c *content) next(after thread.Cursor) (r run, before uint64, ok bool) {
	i, found := c.find(after.Run)
	if found && after.Seq < c.runs[i].last {
		return c.runs[i], after.Seq, true
	}
	if found {
		i++
	}
	if i == len(c.runs) {
		return run{}, 0, false
	}
	return c.runs[i], 0, true
}

func (c *content) head() thread.Cursor {
	if len(c.runs) == 0 {
		return thread.Cursor{}
	}
	r := c.runs[len(c.runs)-1]
	return thread.Cursor{Run: r.number, Seq: r.last}
}
