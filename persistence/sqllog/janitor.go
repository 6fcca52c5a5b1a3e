package sqllog

import (
	"container/heap"
	"database/sql"
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
	dues    dues
	garbage bool      // there may be some
	paused  time.Time // it could not be deleted: not before this, by the system's clock
}

// due says when a run is to be dropped.
type due struct {
	at     time.Time
	thread thread.ID
	run    uint64
}

func (j *janitor) note(d due) { heap.Push(&j.dues, d) }

func (j *janitor) litter() { j.garbage = true }

// reset makes the janitor know what is in the contents, and nothing else.
func (j *janitor) reset(contents map[thread.ID]*content, garbage bool) {
	*j = janitor{garbage: garbage, paused: j.paused}
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
	if j.garbage {
		wait = 0
	}
	if len(j.dues) > 0 {
		wait = min(wait, j.dues[0].at.Sub(now))
	}
	return max(wait, time.Until(j.paused), 0)
}

// clean drops what is due, and deletes one chunk of garbage.
func (l *Log) clean() {
	j := &l.janitor
	now := l.opts.Now()
	if time.Now().Before(j.paused) || j.wait(now) > 0 {
		return
	}
	var taken []due
	for len(j.dues) > 0 && !j.dues[0].at.After(now) && len(taken) < groupRequests {
		taken = append(taken, heap.Pop(&j.dues).(due))
	}
	more := false
	err := l.try([]*request{{op: func(g *group) error {
		for _, d := range taken {
			g.dropDue(d)
		}
		more = g.sweep()
		return nil
	}}}, make([]error, 1))
	if err != nil {
		l.opts.Logger.Warn("cannot delete dropped runs from the live log; trying again", "err", err)
		for _, d := range taken {
			j.note(d)
		}
		j.paused = time.Now().Add(chunkRetry)
		return
	}
	j.garbage = more
}

// dropDue removes a run unless it is gone, or its time was changed.
func (g *group) dropDue(d due) {
	c := g.view(d.thread)
	if i, found := c.find(d.run); found && c.runs[i].dropAt.Equal(d.at) {
		g.remove(d.thread, i)
	}
}

// sweep deletes a chunk of garbage, and tells whether there may be more.
func (g *group) sweep() bool {
	var id string
	var number, to int64
	if err := g.query(selectGarbage, nil, &id, &number); err != nil {
		return err != sql.ErrNoRows
	}
	var last sql.NullInt64
	if err := g.query(selectChunk, []any{id, number, chunkEntries, chunkBytes}, &last); err != nil {
		return true
	}
	if to = last.Int64; !last.Valid {
		g.exec(deleteGarbage, id, number)
		return true
	}
	g.exec(deleteEntries, id, number, to)
	return true
}

// sweepBefore deletes what is left of a run of this number that was dropped, all of it, before another begins.
func (g *group) sweepBefore(id thread.ID, number uint64) {
	if g.exec(deleteGarbage, string(id), int64(number)) > 0 {
		g.flush() // the run that was dropped may have been added to by the same group
		g.exec(deleteEntries, string(id), int64(number), int64(math.MaxInt64))
	}
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
