package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// errStopped is the cause with which a stopped run's context ends.
var errStopped = errors.New("the run was stopped")

func stopped(by string) conclusion {
	return conclusion{end: thread.End{Outcome: thread.OutcomeStopped, By: by}, cause: errStopped}
}

// Stop ends the thread's active run: the one named, or any if run is empty. When it returns Stopped, the agent's
// context is done and its agent has returned or was abandoned, the run's terminal event is durable, nothing
// of the run is published any more, and the thread takes a new run.
func (r *Runner) Stop(ctx context.Context, id thread.ID, run thread.RunID, by string) (thread.Stopped, error) {
	e := r.execution(id)
	if e == nil {
		return r.stopElsewhere(ctx, id, thread.StopRequest{RunID: run, By: by})
	}
	if run != "" && e.run.ID != run {
		return thread.Stopped{}, nil
	}
	e.conclude(stopped(by))
	select {
	case <-e.ended:
	case <-ctx.Done():
		return thread.Stopped{}, context.Cause(ctx)
	}
	return thread.Stopped{
		Stopped: e.final.end.Outcome == thread.OutcomeStopped,
		RunID:   e.run.ID,
		Cursor:  e.endCursor(),
	}, nil
}

func (e *execution) endCursor() thread.Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head
}

// stopElsewhere asks the node that holds the thread, and waits until the run has ended.
func (r *Runner) stopElsewhere(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Stopped, error) {
	lease, err := r.Owners.AskStop(ctx, id, req)
	if errors.Is(err, thread.ErrNotFound) || (err == nil && lease.RunID == "") {
		return thread.Stopped{}, nil
	}
	if err != nil {
		return thread.Stopped{}, fmt.Errorf("ask for a stop on thread %s: %w", id, err)
	}
	for {
		run, err := r.Records.FindRun(ctx, id, lease.RunID)
		switch {
		case errors.Is(err, thread.ErrNotFound):
			return thread.Stopped{}, nil
		case err != nil:
			return thread.Stopped{}, err
		case !run.Ended.IsZero():
			return thread.Stopped{
				Stopped: run.End.Outcome == thread.OutcomeStopped, RunID: run.ID, Cursor: run.Cursor(),
			}, nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return thread.Stopped{}, context.Cause(ctx)
		}
	}
}

// Delete stops the thread's run, if there is one, and removes the thread from history and log. Its viewers are told
// by the log. [thread.ErrNotFound] if there is no such thread.
func (r *Runner) Delete(ctx context.Context, id thread.ID, by string) error {
	lease, err := r.clear(ctx, id, by)
	if err != nil {
		return err
	}
	s := r.occupy(id, nil)
	defer r.vacate(context.WithoutCancel(ctx), lease, s)
	// History first: if the node dies in between, the abandoned lease makes Reclaim clear the log.
	if err := r.Records.DeleteThread(ctx, id); err != nil {
		return fmt.Errorf("delete thread %s: %w", id, err)
	}
	if err := r.Log.Forget(ctx, id); err != nil {
		return fmt.Errorf("clear the log of thread %s: %w", id, err)
	}
	r.cfg.Logger.Info("thread deleted", "thread", string(id))
	return nil
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
		if s := r.slot(id); s != nil {
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
