package memlog

import (
	"context"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Read returns up to limit entries after the given cursor, in order, crossing runs; none if there are none.
func (l *Log) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	if err := l.enter(ctx); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	defer l.mu.Unlock()
	var found []thread.Entry
	for len(found) < limit {
		part := l.threads[id].after(after, limit-len(found))
		if len(part) == 0 {
			break
		}
		if found == nil {
			found = part
		} else {
			found = append(found, part...)
		}
		after = part[len(part)-1].Cursor()
	}
	return found, nil
}

// Head returns the position of the thread's last entry in the log; the zero cursor if there is none.
func (l *Log) Head(ctx context.Context, id thread.ID) (thread.Cursor, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Cursor{}, fmt.Errorf("find the head of thread %s: %w", id, err)
	}
	defer l.mu.Unlock()
	t := l.threads[id]
	if t == nil || len(t.runs) == 0 {
		return thread.Cursor{}, nil
	}
	r := t.runs[len(t.runs)-1]
	return thread.Cursor{Run: r.number, Seq: r.last()}, nil
}

// after returns up to limit entries of the first run that has any after the given cursor. The slice is
// shared, and full to its capacity.
func (t *topic) after(c thread.Cursor, limit int) []thread.Entry {
	if t == nil {
		return nil
	}
	i, found := t.find(c.Run)
	if found && c.Seq >= t.runs[i].last() {
		i, found = i+1, false
	}
	if i == len(t.runs) {
		return nil
	}
	var from uint64
	if found {
		from = c.Seq
	}
	all := t.runs[i].entries
	to := min(from+uint64(limit), uint64(len(all)))
	return all[from:to:to]
}

// tailBatch is the greatest number of entries that a tail hands out in one call, so that a long replay does not
// keep its reader from noticing that it should stop.
const tailBatch = 1024

// Tail calls fn once with no entries, as soon as nothing that happens from then on escapes it, a [Log.Forget]
// included; after that with the entries after the given cursor, first those that are there, then others as they are
// appended, each once, in order, in non-empty batches of one run. It returns the cause of ctx when that is done,
// the error of fn, [thread.ErrDeleted] when the thread is forgotten and [thread.ErrUnavailable] when the log is
// closed.
func (l *Log) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	t := tail{log: l, id: id, topic: l.topic(id)}
	t.topic.tails++
	l.mu.Unlock()
	defer t.leave()
	if err := fn(nil); err != nil {
		return err
	}
	for {
		batch, changed := t.next(after)
		if len(batch) == 0 {
			if err := t.await(ctx, changed); err != nil {
				return err
			}
			continue
		}
		if err := t.over(ctx); err != nil {
			return err
		}
		if err := fn(batch); err != nil {
			return err
		}
		after = batch[len(batch)-1].Cursor()
	}
}

// tail is one call of Tail.
type tail struct {
	log   *Log
	id    thread.ID
	topic *topic
}

func (t tail) leave() {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.topic.tails--
	if t.log.threads[t.id] == t.topic {
		t.log.tidy(t.id)
	}
}

// next returns the entries after a cursor, or what is closed when there are more.
func (t tail) next(after thread.Cursor) ([]thread.Entry, <-chan struct{}) {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	if batch := t.topic.after(after, tailBatch); len(batch) > 0 {
		return batch, nil
	}
	if t.topic.changed == nil {
		t.topic.changed = make(chan struct{})
	}
	return nil, t.topic.changed
}

// await blocks until changed is closed, or returns why the tail is over.
func (t tail) await(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.topic.deleted:
		return thread.ErrDeleted
	case <-t.log.done:
		return errClosed
	}
}

// over returns why the tail must not go on, or nil.
func (t tail) over(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.topic.deleted:
		return thread.ErrDeleted
	case <-t.log.done:
		return errClosed
	default:
		return nil
	}
}
