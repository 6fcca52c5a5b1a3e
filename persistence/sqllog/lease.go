package sqllog

import (
	"context"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// lease is a lease as the log keeps it. One that is in the index does not change any more.
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

// Acquire takes the thread's lease for ttl. A [thread.RunningError] tells who holds it; its owner is no exception. An
// expired lease is taken over, with a greater token, and its former holder is woken.
func (l *Log) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	var got *lease
	err := l.do(ctx, &request{op: func(g *group) error {
		now := l.opts.Now()
		old := g.view(claim.Thread).lease
		if old.held(now) {
			return &thread.RunningError{RunID: old.RunID, Owner: old.Owner, Since: old.Acquired}
		}
		if old != nil {
			g.after = append(g.after, old.poke)
		}
		g.given.token++
		got = &lease{
			Lease: thread.Lease{Claim: claim, Token: g.given.token, Acquired: now, Deadline: now.Add(ttl)},
			asked: make(chan struct{}, 1),
		}
		g.exec(updateToken, int64(g.given.token))
		g.exec(insertLease, string(claim.Thread), string(claim.RunID), claim.Owner, int64(g.given.token), now.UnixMilli())
		g.edit(claim.Thread).lease = got
		return nil
	}})
	if err != nil {
		return thread.Lease{}, fmt.Errorf("acquire thread %s: %w", claim.Thread, err)
	}
	return got.forHolder(), nil
}

// Renew prolongs the lease by ttl from now and brings the wish to stop, if there is one. A lease that expired and
// that nobody took is renewed like any other; [thread.ErrLeaseLost] if another holds the thread or nobody does. It
// writes nothing: a deadline does not outlive the process.
func (l *Log) Renew(ctx context.Context, ls thread.Lease, ttl time.Duration) (thread.Lease, error) {
	var got lease
	err := l.do(ctx, &request{op: func(g *group) error {
		known := g.view(ls.Thread).lease
		if !known.is(ls.Token) {
			return thread.ErrLeaseLost
		}
		got = *known
		got.Deadline = l.opts.Now().Add(ttl)
		renewed := got
		g.edit(ls.Thread).lease = &renewed
		return nil
	}})
	if err != nil {
		return thread.Lease{}, fmt.Errorf("renew the lease of thread %s: %w", ls.Thread, err)
	}
	return got.forHolder(), nil
}

// Release gives the lease up. Releasing a lease that is no longer held changes nothing and is no error.
func (l *Log) Release(ctx context.Context, ls thread.Lease) error {
	err := l.do(ctx, &request{op: func(g *group) error {
		if g.view(ls.Thread).lease.is(ls.Token) {
			g.exec(deleteLease, string(ls.Thread))
			g.edit(ls.Thread).lease = nil
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("release the lease of thread %s: %w", ls.Thread, err)
	}
	return nil
}

// Holder returns the thread's lease while it has not expired, else [thread.ErrNotFound].
func (l *Log) Holder(ctx context.Context, id thread.ID) (thread.Lease, error) {
	err := l.enter(ctx)
	if err == nil {
		if ls := l.index.content(id).lease; ls.held(l.opts.Now()) {
			return ls.forOthers(), nil
		}
		err = thread.ErrNotFound
	}
	return thread.Lease{}, fmt.Errorf("find the holder of thread %s: %w", id, err)
}

// AskStop notes the wish to stop with the lease and wakes its holder; [thread.ErrNotFound] if the thread's lease
// is not held or is for another run. An empty RunID means any. Of several wishes the first one stays.
func (l *Log) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error) {
	var got lease
	err := l.do(ctx, &request{op: func(g *group) error {
		known := g.view(id).lease
		if !known.held(l.opts.Now()) || (req.RunID != "" && req.RunID != known.RunID) {
			return thread.ErrNotFound
		}
		g.after = append(g.after, known.poke)
		got = *known
		if got.Stop == nil {
			got.Stop = &thread.StopRequest{RunID: known.RunID, By: req.By}
			asked := got
			g.exec(updateStopBy, req.By, string(id))
			g.edit(id).lease = &asked
		}
		return nil
	}})
	if err != nil {
		return thread.Lease{}, fmt.Errorf("ask to stop thread %s: %w", id, err)
	}
	return got.forOthers(), nil
}

// Abandoned returns up to limit leases that expired and were neither released nor taken over, the longest expired
// first.
func (l *Log) Abandoned(ctx context.Context, limit int) ([]thread.Lease, error) {
	if err := l.enter(ctx); err != nil {
		return nil, fmt.Errorf("list abandoned leases: %w", err)
	}
	found := l.index.abandoned(l.opts.Now())
	return found[:min(len(found), max(limit, 0))], nil
}
