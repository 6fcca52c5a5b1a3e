package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// reclaimPage is how many runs are looked for at a time.
const reclaimPage = 100

// holding keeps the latest form of a lease that is held for no run of this node.
type holding struct {
	mu    sync.Mutex
	lease thread.Lease
}

func (h *holding) current() thread.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

func (h *holding) renewed(l thread.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease = l
}

func (h *holding) asked(thread.StopRequest) {}

// lose makes every further use of the lease fail at once.
func (h *holding) lose(error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease.Deadline = time.Time{}
}

// Reclaim ends and saves the runs whose owners went away, and clears away what an interrupted deletion left, and
// starts what waits on threads where nothing runs. It returns how many it finished; runs that somebody holds are passed over. An error of one does not keep it
// from the others.
func (r *Runner) Reclaim(ctx context.Context) (int, error) {
	var errs []error
	n := 0
	// Those that this node drives are listed too.
	runs, err := r.Backlog.Unfinished(ctx, "", reclaimPage+r.Active())
	if err != nil {
		return 0, fmt.Errorf("look for unfinished runs: %w", err)
	}
	for _, run := range runs {
		done, err := r.reclaimer().reclaim(ctx, run.Thread)
		n += done
		errs = append(errs, err)
	}
	leases, err := r.Owners.Abandoned(ctx, reclaimPage)
	if err != nil {
		errs = append(errs, fmt.Errorf("look for abandoned leases: %w", err))
	}
	for _, lease := range leases {
		done, err := r.reclaimer().reclaim(ctx, lease.Thread)
		n += done
		errs = append(errs, err)
	}
	waiting, err := r.Backlog.IdleQueues(ctx, reclaimPage)
	if err != nil {
		errs = append(errs, fmt.Errorf("look for queues: %w", err))
	}
	for _, id := range waiting {
		if r.floor.slot(id) == nil {
			r.line().advance(id)
		}
	}
	return n, errors.Join(errs...)
}

// reclaim finishes what is unfinished on a thread that nobody holds.
func (r reclaimer) reclaim(ctx context.Context, id thread.ID) (int, error) {
	if r.floor.slot(id) != nil {
		return 0, nil
	}
	lease, err := r.acquire(ctx, thread.Claim{Thread: id, Owner: r.owner})
	if errors.Is(err, thread.ErrRunning) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s := r.floor.occupy(id, nil)
	defer func() { r.vacate(lease, s) }()
	runs, err := r.Backlog.Unfinished(ctx, id, reclaimPage)
	if err != nil {
		return 0, fmt.Errorf("look for unfinished runs of thread %s: %w", id, err)
	}
	for i, run := range runs {
		if lease, err = r.takeOver(ctx, lease, run); err != nil {
			return i, err
		}
	}
	th, err := r.Records.Thread(ctx, id)
	if err == nil && th.Deleted {
		err = r.Log.Forget(ctx, id)
	}
	if errors.Is(err, thread.ErrNotFound) {
		err = nil
	}
	return len(runs), err
}

// Watch reclaims, again and again, until ctx is done.
func (r *Runner) Watch(ctx context.Context) {
	for pause(ctx, r.cfg.Lease/2) {
		if _, err := r.Reclaim(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("some runs could not be reclaimed; tried again later", "err", err)
		}
	}
}
