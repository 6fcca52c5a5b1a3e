package memlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// lease is a lease as the log keeps it.
type lease struct {
	thread.Lease
	asked chan struct{}
}

func (h *lease) is(token uint64) bool { return h != nil && h.Token == token }

func (h *lease) held(now time.Time) bool { return h != nil && now.Before(h.Deadline) }

// poke makes the holder look.
func (h *lease) poke() {
	select {
	case h.asked <- struct{}{}:
	default:
	}
}

// forHolder is the lease as its holder sees it.
func (h *lease) forHolder() thread.Lease {
	shown := h.forOthers()
	shown.Asked = h.asked
	return shown
}

// forOthers is the lease as anybody else sees it: only the holder is woken.
func (h *lease) forOthers() thread.Lease {
	shown := h.Lease
	if h.Stop != nil {
		stop := *h.Stop
		shown.Stop = &stop
	}
	return shown
}

// Acquire takes the thread's lease for ttl. A [thread.RunningError] tells who holds it; its owner is no exception.
// An expired lease is taken over, with a greater token, and its former holder is woken.
func (l *Log) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Lease{}, fmt.Errorf("acquire thread %s: %w", claim.Thread, err)
	}
	defer l.mu.Unlock()
	now := time.Now()
	t := l.topic(claim.Thread)
	if h := t.lease; h.held(now) {
		return thread.Lease{}, fmt.Errorf("acquire thread %s: %w", claim.Thread,
			&thread.RunningError{RunID: h.RunID, Owner: h.Owner, Since: h.Acquired})
	}
	if t.lease != nil {
		t.lease.poke()
	}
	l.token++
	t.lease = &lease{
		Lease: thread.Lease{Claim: claim, Token: l.token, Acquired: now, Deadline: now.Add(ttl)},
		asked: make(chan struct{}, 1),
	}
	return t.lease.forHolder(), nil
}

// Renew prolongs the lease by ttl from now and brings the wish to stop, if there is one. A lease that expired and
// that nobody took is renewed like any other; [thread.ErrLeaseLost] if another holds the thread or nobody does.
func (l *Log) Renew(ctx context.Context, ls thread.Lease, ttl time.Duration) (thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Lease{}, fmt.Errorf("renew the lease of thread %s: %w", ls.Thread, err)
	}
	defer l.mu.Unlock()
	t := l.threads[ls.Thread]
	if t == nil || !t.lease.is(ls.Token) {
		return thread.Lease{}, fmt.Errorf("renew the lease of thread %s: %w", ls.Thread, thread.ErrLeaseLost)
	}
	t.lease.Deadline = time.Now().Add(ttl)
	return t.lease.forHolder(), nil
}

// Release gives the lease up. Releasing a lease that is no longer held changes nothing and is no error.
func (l *Log) Release(ctx context.Context, ls thread.Lease) error {
	if err := l.enter(ctx); err != nil {
		return fmt.Errorf("release the lease of thread %s: %w", ls.Thread, err)
	}
	defer l.mu.Unlock()
	if t := l.threads[ls.Thread]; t != nil && t.lease.is(ls.Token) {
		t.lease = nil
		l.tidy(ls.Thread)
	}
	return nil
}

// Holder returns the thread's lease while it has not expired, else [thread.ErrNotFound].
func (l *Log) Holder(ctx context.Context, id thread.ID) (thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Lease{}, fmt.Errorf("find the holder of thread %s: %w", id, err)
	}
	defer l.mu.Unlock()
	if t := l.threads[id]; t != nil && t.lease.held(time.Now()) {
		return t.lease.forOthers(), nil
	}
	return thread.Lease{}, fmt.Errorf("find the holder of thread %s: %w", id, thread.ErrNotFound)
}

// AskStop notes the wish to stop with the lease and wakes its holder; [thread.ErrNotFound] if the thread's lease
// is not held or is for another run. An empty RunID means any. Of several wishes the first one stays.
func (l *Log) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return thread.Lease{}, fmt.Errorf("ask to stop thread %s: %w", id, err)
	}
	defer l.mu.Unlock()
	t := l.threads[id]
	if t == nil || !t.lease.held(time.Now()) || (req.RunID != "" && req.RunID != t.lease.RunID) {
		return thread.Lease{}, fmt.Errorf("ask to stop thread %s: %w", id, thread.ErrNotFound)
	}
	if t.lease.Stop == nil {
		t.lease.Stop = &thread.StopRequest{RunID: t.lease.RunID, By: req.By}
	}
	t.lease.poke()
	return t.lease.forOthers(), nil
}

// Abandoned returns up to limit leases that expired and were neither released nor taken over, the longest expired
// first.
func (l *Log) Abandoned(ctx context.Context, limit int) ([]thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return nil, fmt.Errorf("list abandoned leases: %w", err)
	}
	defer l.mu.Unlock()
	now := time.Now()
	var found []thread.Lease
	for _, t := range l.threads {
		if t.lease != nil && !t.lease.held(now) {
			found = append(found, t.lease.forOthers())
		}
	}
	slices.SortFunc(found, func(a, b thread.Lease) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Token, b.Token))
	})
	return found[:min(len(found), max(limit, 0))], nil
}
