package memlog

import (
	"context"
	"fmt"
	"slices"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Append adds entries of one run, whose seqs follow each other, all or none of them, and wakes the thread's
// tails. Entries that the run already has are passed over. It returns [thread.ErrLeaseLost] if the lease is not the
// thread's current one, [thread.ErrGap] if the first entry does not follow the run's last one,
// [thread.ErrEnded] if an entry would follow the end of its run or belongs to a run before the thread's latest,
// and [thread.ErrBadInput] if the entries are not of one run. The log keeps the data: it must not be changed.
func (l *Log) Append(ctx context.Context, ls thread.Lease, entries []thread.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := l.append(ctx, ls, entries); err != nil {
		return fmt.Errorf("append to run %s: %w", ls.RunID, err)
	}
	return nil
}

func (l *Log) append(ctx context.Context, ls thread.Lease, entries []thread.Entry) error {
	if err := checkBatch(entries); err != nil {
		return err
	}
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	t := l.threads[ls.Thread]
	if t == nil || !t.lease.is(ls.Token) {
		return thread.ErrLeaseLost
	}
	fresh, err := t.fresh(entries)
	if err != nil || len(fresh) == 0 {
		return err
	}
	t.add(fresh)
	t.wake()
	return nil
}

// checkBatch tells whether entries are of one run and follow each other.
func checkBatch(entries []thread.Entry) error {
	first := entries[0]
	if first.Run == 0 || first.Seq == 0 {
		return fmt.Errorf("%w: runs and entries are numbered from 1, got %s", thread.ErrBadInput, first.Cursor())
	}
	for i, e := range entries {
		switch {
		case e.Run != first.Run || e.RunID != first.RunID:
			return fmt.Errorf("%w: entries of several runs in one batch", thread.ErrBadInput)
		case e.Seq != first.Seq+uint64(i):
			return fmt.Errorf("%w: entry %d after entry %d in one batch", thread.ErrGap, e.Seq, entries[i-1].Seq)
		case e.Kind != thread.KindEvent && e.Kind != thread.KindEnd:
			return fmt.Errorf("%w: entry %s is of unknown kind %d", thread.ErrBadInput, e.Cursor(), e.Kind)
		case e.Kind == thread.KindEnd && i < len(entries)-1:
			return fmt.Errorf("%w: entry %d would follow the end", thread.ErrEnded, e.Seq+1)
		}
	}
	return nil
}

// fresh returns those of the entries that the thread does not have, or why they cannot be added.
func (t *topic) fresh(entries []thread.Entry) ([]thread.Entry, error) {
	first, last := entries[0], entries[len(entries)-1].Seq
	var have uint64
	r := t.run(first.Run)
	if r != nil {
		have = r.last()
		if r.id != first.RunID {
			return nil, fmt.Errorf("%w: run %d has the id %q, not %q", thread.ErrBadInput, first.Run, r.id, first.RunID)
		}
	}
	switch {
	case last <= have:
		return nil, nil
	case r != nil && r.ended:
		return nil, fmt.Errorf("%w at entry %d", thread.ErrEnded, have)
	case len(t.runs) > 0 && t.runs[len(t.runs)-1].number > first.Run:
		return nil, fmt.Errorf("%w: a later run of the thread has begun", thread.ErrEnded)
	case first.Seq > have+1:
		return nil, fmt.Errorf("%w: entry %d after entry %d", thread.ErrGap, first.Seq, have)
	}
	return entries[have+1-first.Seq:], nil
}

// add appends entries, which follow what the thread has.
func (t *topic) add(entries []thread.Entry) {
	first := entries[0]
	r := t.run(first.Run)
	if r == nil {
		r = &run{number: first.Run, id: first.RunID}
		t.runs = append(t.runs, r)
	}
	r.entries = append(r.entries, entries...)
	r.ended = entries[len(entries)-1].Kind == thread.KindEnd
}

func (t *topic) run(number uint64) *run {
	if i, ok := t.find(number); ok {
		return t.runs[i]
	}
	return nil
}

// find returns the place of the run with that number, or where it would be.
func (t *topic) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(t.runs, number, func(r *run, n uint64) int {
		switch {
		case r.number < n:
			return -1
		case r.number > n:
			return 1
		}
		return 0
	})
}
