package memlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Drop removes a run's entries after keep has passed, at once if keep is not positive. A repeated call replaces
// the earlier one. Dropping what is not there is no error.
func (l *Log) Drop(ctx context.Context, id thread.ID, number uint64, keep time.Duration) error {
	if err := l.enter(ctx); err != nil {
		return fmt.Errorf("drop run %d of thread %s: %w", number, id, err)
	}
	defer l.mu.Unlock()
	t := l.threads[id]
	if t == nil {
		return nil
	}
	r := t.run(number)
	if r == nil {
		return nil
	}
	r.cancelDrop()
	if keep <= 0 {
		l.remove(id, t, r)
		return nil
	}
	r.drop = time.AfterFunc(keep, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(id, t, r)
	})
	return nil
}

// remove takes a run out of the log, unless it has left it already.
func (l *Log) remove(id thread.ID, t *topic, r *run) {
	if i, ok := t.find(r.number); ok && t.runs[i] == r && l.threads[id] == t {
		t.runs = slices.Delete(t.runs, i, i+1)
		l.tidy(id)
	}
}

// Forget removes all entries of the lease's thread at once, and ends its tails with [thread.ErrDeleted]. The lease stays:
// who deletes a thread holds it meanwhile, so that no run begins. [thread.ErrLeaseLost] if it is not the current one.
func (l *Log) Forget(ctx context.Context, ls thread.Lease) error {
	id := ls.Thread
	if err := l.enter(ctx); err != nil {
		return fmt.Errorf("forget thread %s: %w", id, err)
	}
	defer l.mu.Unlock()
	t := l.threads[id]
	if t == nil || !t.lease.is(ls.Token) {
		return fmt.Errorf("forget thread %s: %w", id, thread.ErrLeaseLost)
	}
	for _, r := range t.runs {
		r.cancelDrop()
	}
	close(t.deleted)
	delete(l.threads, id)
	if t.lease != nil {
		l.topic(id).lease = t.lease
	}
	return nil
}
