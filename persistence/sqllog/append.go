package sqllog

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/threadcast/threadcast/persistence/thread"
)

// maxData is the greatest length of an entry's data, in bytes.
const maxData = 256 << 20

// Append adds entries of one run, whose seqs follow each other, all or none of them, and returns when they are
// committed. Entries that the run already has are passed over. It returns [thread.ErrLeaseLost] if the lease is not
// the thread's current one, [thread.ErrGap] if the first entry does not follow the run's last one, [thread.ErrEnded] if
// an entry would follow the end of its run or belongs to a run before the thread's latest, [thread.ErrBadInput] if
// the entries are not of one run, and [thread.ErrUnavailable] if they could not be written. It blocks while too
// much waits to be committed. If ctx is done meanwhile, the entries may have been added or not. The log keeps the
// data: it must not be changed.
func (l *Log) Append(ctx context.Context, ls thread.Lease, entries []thread.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	size, err := checkBatch(entries)
	if err != nil {
		return fmt.Errorf("append to run %s: %w", ls.RunID, err)
	}
	own := slices.Clone(entries) // for a caller that does not wait for the end
	err = l.do(ctx, &request{entries: len(own), bytes: size, op: func(g *group) error { return g.append(ls, own) }})
	if err != nil {
		return fmt.Errorf("append to run %s: %w", ls.RunID, err)
	}
	return nil
}

// checkBatch tells whether entries are of one run and follow each other, and how many bytes they have.
func checkBatch(entries []thread.Entry) (int, error) {
	first, size := entries[0], 0
	if first.Run == 0 || first.Seq == 0 || first.Run > math.MaxInt64 || first.Seq > math.MaxInt64-uint64(len(entries)) {
		return 0, fmt.Errorf("%w: there is no entry %s", thread.ErrBadInput, first.Cursor())
	}
	for i, e := range entries {
		switch {
		case e.Run != first.Run || e.RunID != first.RunID:
			return 0, fmt.Errorf("%w: entries of several runs in one batch", thread.ErrBadInput)
		case e.Seq != first.Seq+uint64(i):
			return 0, fmt.Errorf("%w: entry %d after entry %d in one batch", thread.ErrGap, e.Seq, entries[i-1].Seq)
		case e.Kind != thread.KindEvent && e.Kind != thread.KindEnd:
			return 0, fmt.Errorf("%w: entry %s is of unknown kind %d", thread.ErrBadInput, e.Cursor(), e.Kind)
		case e.Kind == thread.KindEnd && i < len(entries)-1:
			return 0, fmt.Errorf("%w: entry %d would follow the end", thread.ErrEnded, e.Seq+1)
		case len(e.Data) > maxData:
			return 0, fmt.Errorf("%w: entry %s has %d bytes", thread.ErrTooLarge, e.Cursor(), len(e.Data))
		}
		size += len(e.Data)
	}
	return size, nil
}

func (g *group) append(ls thread.Lease, entries []thread.Entry) error {
	c := g.view(ls.Thread)
	if !c.lease.is(ls.Token) {
		return thread.ErrLeaseLost
	}
	fresh, err := c.fresh(entries)
	if err != nil || len(fresh) == 0 {
		return err
	}
	g.store(g.run(ls.Thread, fresh[0]), fresh)
	g.batches = append(g.batches, batch{thread: ls.Thread, entries: fresh})
	return nil
}

// run returns the run that the entry goes to, which it creates if need be.
func (g *group) run(id thread.ID, e thread.Entry) *run {
	c := g.edit(id)
	i, found := c.find(e.Run)
	if !found {
		g.given.ref++
		g.exec(insertRun, int64(g.given.ref), string(id), int64(e.Run), string(e.RunID))
		c.runs = slices.Insert(c.runs, i, run{number: e.Run, id: e.RunID, ref: g.given.ref})
	}
	return &c.runs[i]
}

// fresh returns those of the entries that the thread does not have, or why they cannot be added.
func (c *content) fresh(entries []thread.Entry) ([]thread.Entry, error) {
	first, last := entries[0], entries[len(entries)-1].Seq
	var have run
	if i, ok := c.find(first.Run); ok {
		have = c.runs[i]
		if have.id != first.RunID {
			return nil, fmt.Errorf("%w: run %d has the id %q, not %q", thread.ErrBadInput, first.Run, have.id, first.RunID)
		}
	}
	switch {
	case last <= have.last:
		return nil, nil
	case have.ended:
		return nil, fmt.Errorf("%w at entry %d", thread.ErrEnded, have.last)
	case c.head().Run > first.Run:
		return nil, fmt.Errorf("%w: a later run of the thread has begun", thread.ErrEnded)
	case first.Seq > have.last+1:
		return nil, fmt.Errorf("%w: entry %d after entry %d", thread.ErrGap, first.Seq, have.last)
	}
	return entries[have.last+1-first.Seq:], nil
}
