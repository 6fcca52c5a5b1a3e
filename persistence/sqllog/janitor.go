package sqllog

import (
	"container/heap"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// What one transaction deletes at most, so that appends are not held up, and how long the janitor waits when it
// could not delete.
const (
	chunkEntries = 1000
	chunkBytes   = 4 << 20
	chunkRetry   = time.Second
)

// never is a wait that does not end.
const never = time.Duration(math.MaxInt64)

// janitor knows what is to be dropped, and whether there is garbage. It belongs to the committer.
type janitor struct {
	dues     dues
	garbage  bool      // there may be some
	first    uint64    // id before which log_recent has no rows
	trimming bool      // there is more to delete from the beginning of log_recent
	paused   time.Time // something could not be deleted: not before this, by the system's clock
}

// due says when a run is to be dropped.
type due struct {
	at     time.Time
	thread thread.ID
	run    uint64
}

func (j *janitor) note(d due) { heap.Push(&j.dues, d) }

func (j *janitor) litter() { j.garbage = true }

// reset makes the janitor know what is in the contents, that log_recent begins with first, and nothing else.
func (j *janitor) reset(contents map[thread.ID]*content, first uint64) {
	*j = janitor{garbage: true, first: first, paused: j.paused}
	for id, c := range contents {
		for _, r := range c.runs {
			if !r.dropAt.IsZero() {
				j.note(due{at: r.dropAt, thread: id, run: r.number})
			}
		}
	}
}

// wait tells how long there is nothing to do.
func (j *janitor) wait(now time.Time) time.Duration {
	wait := never
	if j.garbage || j.trimming {
		wait = 0
	}
	if len(j.dues) > 0 {
		wait = min(wait, j.dues[0].at.Sub(now))
	}
	return max(wait, time.Until(j.paused), 0)
}

// clean drops what is due, and deletes one chunk of what is not needed any more.
func (c *committer) clean() {
	j := &c.janitor
	now := c.opts.Now()
	if c.index.given.id-j.first >= recentMost {
		j.trimming = true
	}
	if time.Now().Before(j.paused) || j.wait(now) > 0 {
		return
	}
	var taken []due
	for len(j.dues) > 0 && !j.dues[0].at.After(now) && len(taken) < groupRequests {
		taken = append(taken, heap.Pop(&j.dues).(due))
	}
	next := *j
	err := c.try([]*request{{op: func(g *group) error {
		// First of all, so that it deletes nothing of what this group drops: until the group is published, readers
		// look for that, and would take it for lost.
		next.garbage = j.garbage && g.sweep() || len(taken) > 0
		for _, d := range taken {
			g.dropDue(d)
		}
		if j.trimming {
			next.first, next.trimming = g.trim(j.first)
		}
		return nil
	}}}, make([]error, 1))
	if err != nil {
		c.opts.Logger.Warn("cannot delete dropped runs from the live log; trying again", "err", err)
		for _, d := range taken {
			j.note(d)
		}
		j.paused = time.Now().Add(chunkRetry)
		return
	}
	j.first, j.trimming, j.garbage = next.first, next.trimming, next.garbage
}

// dropDue removes a run unless it is gone, or its time was changed.
func (g *group) dropDue(d due) {
	c := g.view(d.thread)
	if i, found := c.find(d.run); found && c.runs[i].dropAt.Equal(d.at) {
		g.remove(d.thread, i)
	}
}

// sweep deletes a chunk of the garbage of earlier groups, and tells whether there may be more.
func (g *group) sweep() bool {
	var ref int64
	if err := g.query(selectGarbage, nil, &ref); err != nil {
		return !errors.Is(err, sql.ErrNoRows)
	}
	var last sql.NullInt64
	if err := g.query(selectChunk, []any{ref, chunkEntries, chunkBytes}, &last); err != nil {
		return true
	}
	if last.Valid {
		g.exec(deleteEntries, ref, last.Int64)
	} else {
		g.exec(deleteGarbage, ref)
	}
	return true
}

// dues is a heap, the earliest first.
type dues []due

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push is for package heap.
func (d *dues) Push(x any) { *d = append(*d, x.(due)) }

// Pop is for package heap.
func (d *dues) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}
