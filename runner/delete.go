package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Delete stops the thread's run, if there is one, and removes the thread from history and log. Its viewers are told
// by the log. [thread.ErrNotFound] if there is no such thread.
func (r *Runner) Delete(ctx context.Context, id thread.ID, by string) error {
	lease, err := r.clear(ctx, id, by)
	if err != nil {
		return err
	}
	s := r.floor.occupy(id, nil)
	k := startKeeper(r, lease, &holding{lease: lease})
	// History first: if the node dies in between, the abandoned lease makes Reclaim clear the log.
	gone := r.Records.DeleteThread(ctx, lease)
	if err = gone; err == nil || errors.Is(err, thread.ErrNotFound) {
		err = r.forget(ctx, lease) // also what an earlier deletion left, which did not learn that it had succeeded
	}
	lease = k.stop()
	if err != nil && !errors.Is(err, thread.ErrLeaseLost) {
		r.floor.leave(id, s) // the lease stays, for Reclaim to find: the thread may be deleted
		return fmt.Errorf("delete thread %s: %w", id, err)
	}
	r.vacate(lease, s)
	if err = errors.Join(err, gone); err != nil {
		return fmt.Errorf("delete thread %s: %w", id, err)
	}
	r.cfg.Logger.Info("thread deleted", "thread", string(id), "by", by)
	return nil
}

// forget clears the log of a thread, and tries again while the log is away.
func (r *Runner) forget(ctx context.Context, lease thread.Lease) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := r.Log.Forget(ctx, lease)
		if err == nil {
			return nil
		}
		if !passing(err) || !pause(ctx, wait) {
			return fmt.Errorf("clear the log of thread %s: %w", lease.Thread, err)
		}
	}
}

// clear stops runs until it holds the thread's lease.
func (r *Runner) clear(ctx context.Context, id thread.ID, by string) (thread.Lease, error) {
	for {
		lease, err := r.acquire(ctx, thread.Claim{Thread: id, Owner: r.owner})
		if !errors.Is(err, thread.ErrRunning) {
			return lease, err
		}
		if _, err := r.Stop(ctx, id, "", by); err != nil {
			return lease, err
		}
		if s := r.floor.slot(id); s != nil {
			select {
			case <-s.done:
				continue
			case <-ctx.Done():
				return lease, context.Cause(ctx)
			}
		}
		if !pause(ctx, 5*time.Millisecond) {
			return lease, context.Cause(ctx)
		}
	}
}
