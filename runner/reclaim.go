package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How many runs are looked for at a time, and how many are reclaimed at once.
const (
	reclaimPage   = 100
	reclaimAtOnce = 4
)

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

func (h *holding) woken() {}

// lose makes every further use of the lease fail at once.
func (h *holding) lose(error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease.Deadline = time.Time{}
}

// Reclaim ends and saves runs whose owners went away, and clears away what an interrupted deletion left, and
// starts what waits on threads where nothing runs. It looks at a page of what there is, another one each time, in no
// particular order, so that nodes that do it at the same time share the work. It returns how many runs it finished; those
// that somebody holds are passed over. An error of one does not keep it from the others.
func (r *Runner) Reclaim(ctx context.Context) (int, error) {
	skip := int(r.looked.Load())
	limit := reclaimPage + r.Active()
	unfinished, err := r.reclaimer().unfinished(ctx, skip, limit)
	if err != nil {
		return 0, err
	}
	abandoned, err := r.reclaimer().abandoned(ctx)
	n, errReclaim := r.reclaimer().all(ctx, append(abandoned, unfinished...))
	if skip += len(unfinished) - n; len(unfinished) < limit {
		skip = 0 // that was the last page
	}
	r.looked.Store(int64(max(skip, 0)))
	waiting, errIdle := r.Backlog.IdleQueues(ctx, reclaimPage)
	if errIdle != nil {
		errIdle = fmt.Errorf("look for queues: %w", errIdle)
	}
	shuffle(waiting)
	for _, id := range waiting {
		if r.floor.slot(id) == nil {
			r.line().advance(id)
		}
	}
	return n, errors.Join(err, errReclaim, errIdle)
}

// unfinished returns a page of the threads with unfinished runs. Those that this node drives are among them.
func (r reclaimer) unfinished(ctx context.Context, skip, limit int) ([]thread.ID, error) {
	runs, err := r.Backlog.Unfinished(ctx, "", skip, limit)
	if err != nil {
		return nil, fmt.Errorf("look for unfinished runs: %w", err)
	}
	ids := make([]thread.ID, len(runs))
	for i, run := range runs {
		ids[i] = run.Thread
	}
	return ids, nil
}

// abandoned returns threads whose leases expired.
func (r reclaimer) abandoned(ctx context.Context) ([]thread.ID, error) {
	leases, err := r.Owners.Abandoned(ctx, reclaimPage)
	if err != nil {
		return nil, fmt.Errorf("look for abandoned leases: %w", err)
	}
	ids := make([]thread.ID, len(leases))
	for i, lease := range leases {
		ids[i] = lease.Thread
	}
	return ids, nil
}

// all reclaims threads, some at a time, and returns how many runs that finished.
func (r reclaimer) all(ctx context.Context, ids []thread.ID) (int, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	shuffle(ids)
	var mu sync.Mutex
	var errs []error
	n := 0
	next := make(chan thread.ID)
	var workers sync.WaitGroup
	for range min(len(ids), reclaimAtOnce) {
		workers.Go(func() {
			for id := range next {
				done, err := r.reclaim(ctx, id)
				mu.Lock()
				n += done
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	workers.Wait()
	return n, errors.Join(errs...)
}

func shuffle(ids []thread.ID) {
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
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
	defer func() {
		r.vacate(lease, s)
		r.line().advance(id)
	}()
	runs, err := r.Backlog.Unfinished(ctx, id, 0, reclaimPage)
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
		err = r.Log.Forget(ctx, lease)
	}
	if errors.Is(err, thread.ErrNotFound) {
		err = nil
	}
	return len(runs), err
}

// Watch reclaims until ctx is done: threads whose leases expired soon after that, and whatever else there is now and then.
func (r *Runner) Watch(ctx context.Context) {
	soon := min(r.cfg.Lease/4, time.Second)
	var failing, told time.Time
	for due := time.Now().Add(r.cfg.Lease / 2); pause(ctx, soon/2+rand.N(soon)); {
		var err error
		if time.Now().Before(due) {
			err = r.reclaimer().again(ctx)
		} else {
			_, err = r.Reclaim(ctx)
			due = time.Now().Add(r.cfg.Lease / 2)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil && !failing.IsZero():
			r.cfg.Logger.Info("it can be seen again to what others left", "after", time.Since(failing).Round(time.Second).String())
			failing = time.Time{}
		case err != nil && time.Since(told) > time.Minute:
			told = time.Now()
			if failing.IsZero() {
				failing = told
			}
			r.cfg.Logger.Warn("it cannot be seen to what others left; tried again", "err", err)
		}
	}
}

// again reclaims threads whose leases expired.
func (r reclaimer) again(ctx context.Context) error {
	ids, err := r.abandoned(ctx)
	if err == nil {
		_, err = r.all(ctx, ids)
	}
	return err
}
