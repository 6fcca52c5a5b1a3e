package sqllog

import (
	"github.com/threadcast/threadcast/persistence/thread"
)

// Entries go to log_recent first, where those of all runs that write at the same time share pages: an entry of its
// own costs a hundredth of a page, and not the page that its run would have in log_entries. Once a run has this
// much there, all of it is written to log_entries, where it can be read in order; until then it is in memory as well.
const (
	settleEntries = 32
	settleBytes   = 8 << 10
)

// When log_recent has recentMost rows, those that are settled or dropped are deleted from its beginning. A run that
// has not settled its rows among the older half of them does so then, since it would hold up the rest.
const (
	recentMost = 16384
	recentKeep = recentMost / 2
	trimChunk  = 2000 // rows to be deleted in one transaction
)

// store adds entries to a run.
func (g *group) store(r *run, fresh []thread.Entry) {
	last := fresh[len(fresh)-1]
	r.last, r.ended = last.Seq, last.Kind == thread.KindEnd
	for _, e := range fresh {
		r.bytes += len(e.Data)
	}
	if len(r.recent)+len(fresh) >= settleEntries || r.bytes >= settleBytes {
		g.settle(r, fresh)
		return
	}
	if len(r.recent) == 0 {
		r.firstID = g.given.id + 1
	}
	for _, e := range fresh {
		g.given.id++
		g.recent = append(g.recent, int64(g.given.id), int64(r.ref), int64(e.Seq), int64(e.Kind), blob(e.Data))
	}
	// Other versions of the run share the array, and look at their own part of it.
	r.recent = append(r.recent, fresh...)
}

// settle writes the run's recent entries, and others that follow them, to log_entries.
func (g *group) settle(r *run, more []thread.Entry) {
	for _, part := range [][]thread.Entry{r.recent, more} {
		for _, e := range part {
			g.entries = append(g.entries, int64(r.ref), int64(e.Seq), int64(e.Kind), blob(e.Data))
		}
	}
	r.settled, r.recent, r.bytes = r.last, nil, 0
}

// blob is data as SQLite wants it: nil would be NULL.
func blob(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// trim deletes a chunk from the beginning of log_recent, and returns where that is from now on and whether there is
// more to delete.
func (g *group) trim(first uint64) (from uint64, more bool) {
	var keep uint64
	if g.given.id > recentKeep {
		keep = g.given.id - recentKeep
	}
	bound := g.given.id + 1
	for _, at := range g.c.index.unsettled() {
		c := g.edit(at.thread)
		i, found := c.find(at.run)
		if !found || len(c.runs[i].recent) == 0 {
			continue
		}
		if c.runs[i].firstID < keep {
			g.settle(&c.runs[i], nil)
		} else {
			bound = min(bound, c.runs[i].firstID)
		}
	}
	from = min(bound, first+trimChunk)
	g.exec(deleteRecent, int64(from))
	return from, from < bound
}

// place says where a run is.
type place struct {
	thread thread.ID
	run    uint64
}

// unsettled returns the runs that have recent entries.
func (x *index) unsettled() []place {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []place
	for id, t := range x.topics {
		for _, r := range t.content.runs {
			if len(r.recent) > 0 {
				found = append(found, place{thread: id, run: r.number})
			}
		}
	}
	return found
}
