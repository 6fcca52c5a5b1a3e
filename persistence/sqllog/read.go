package sqllog

import (
	"context"
	"fmt"
	"math"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Read returns up to limit entries after the given cursor, in order, crossing runs; none if there are none.
func (l *Log) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	if err := l.enter(ctx); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	var all []thread.Entry
	for len(all) < limit {
		part, err := l.readRun(ctx, id, after, bound{entries: limit - len(all), bytes: math.MaxInt})
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", id, err)
		}
		if len(part) == 0 {
			break
		}
		if all == nil {
			all = part
		} else {
			all = append(all, part...)
		}
		after = part[len(part)-1].Cursor()
	}
	return all, nil
}

// Head returns the position of the thread's last entry in the log; the zero cursor if there is none.
func (l *Log) Head(ctx context.Context, id thread.ID) (thread.Cursor, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Cursor{}, fmt.Errorf("find the head of thread %s: %w", id, err)
	}
	return l.index.content(id).head(), nil
}

// bound says how much to read: so many entries, and no more after so many bytes.
type bound struct{ entries, bytes int }

// readRun returns the entries after a cursor that are of one run, the first that has any.
func (l *Log) readRun(ctx context.Context, id thread.ID, after thread.Cursor, b bound) ([]thread.Entry, error) {
	var suspect uint64 // ref of a run of which something was missing
	for {
		if err := l.enter(ctx); err != nil {
			return nil, err
		}
		r, before, ok := l.index.content(id).next(after)
		if !ok {
			return nil, nil
		}
		if before >= r.settled {
			recent := r.recent[before-r.settled:]
			n := min(len(recent), b.entries)
			return recent[:n:n], nil
		}
		p := page{run: r, before: before, entries: int(min(uint64(b.entries), r.settled-before)), bytes: b.bytes}
		entries, err := l.readPage(ctx, p)
		if err != nil || entries != nil {
			return entries, err
		}
		// They are not there. That is right only if the run was dropped since.
		c := l.index.content(id)
		if i, found := c.find(r.number); !found || c.runs[i].ref != r.ref {
			continue
		}
		if suspect == r.ref {
			return nil, fmt.Errorf("%w: entries after %d of run %d are missing", thread.ErrCorrupt, before, r.number)
		}
		suspect = r.ref
		if err := l.publishAll(ctx); err != nil {
			return nil, err
		}
	}
}

// publishAll returns when all that was committed before the call is in the index.
func (l *Log) publishAll(ctx context.Context) error {
	return l.do(ctx, &request{op: func(*group) error { return nil }})
}

// page is a part of a run to be read.
type page struct {
	run     run
	before  uint64 // how many entries come before it
	entries int    // how many there are in it
	bytes   int    // after so many bytes it may end before
}

// readPage reads a page from log_entries; nil if it is not all there.
func (l *Log) readPage(ctx context.Context, p page) ([]thread.Entry, error) {
	rows, err := l.page.QueryContext(ctx, int64(p.run.ref), int64(p.before), p.entries)
	if err != nil {
		return nil, l.readError(ctx, err)
	}
	defer rows.Close()
	entries, size := make([]thread.Entry, 0, p.entries), 0
	for len(entries) < p.entries && size < p.bytes && rows.Next() {
		e := thread.Entry{Run: p.run.number, RunID: p.run.id}
		if err := rows.Scan(&e.Seq, &e.Kind, &e.Data); err != nil {
			return nil, l.readError(ctx, err)
		}
		if e.Seq != p.before+uint64(len(entries))+1 {
			return nil, nil
		}
		size += len(e.Data)
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, l.readError(ctx, err)
	}
	if len(entries) < p.entries && size < p.bytes {
		return nil, nil
	}
	return entries, nil
}

// readError says why a read failed: its context first, then the database.
func (l *Log) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return classify(err)
}
