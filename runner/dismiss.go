package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// dismiss cancels what waits for an answer on an idle thread, by a run without an agent whose input says so and which is
// stopped before it begins: so every viewer and every replay agrees that nothing waits any more (AG-UI 1.0, section 9).
// It does nothing if nothing waits, or if run is not the one that asked.
func (r *Runner) dismiss(ctx context.Context, id thread.ID, run thread.RunID, by string) (thread.Stopped, error) {
	th, err := r.Records.Thread(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return thread.Stopped{}, nil
	}
	if err != nil {
		return thread.Stopped{}, fmt.Errorf("look up what waits on thread %s: %w", id, err)
	}
	if th.Latest == nil || th.Latest.Ended.IsZero() || (th.Pending == nil && th.Calls == nil) || (run != "" && run != th.Latest.ID) {
		return thread.Stopped{}, nil
	}
	o := order{Request: thread.Request{
		Thread: id, RunID: thread.RunID("run_" + rand.Text()), Agent: th.Latest.Agent, By: by,
	}, last: th.LastRun}
	// By RUN_FINISHED in any case: RUN_ERROR would leave what waits as it is.
	over := conclusion{end: thread.End{Outcome: thread.OutcomeStopped, By: by}, cause: errStopped}
	o.over, o.raw = &over, agui.Dismissal(string(id), string(o.RunID), th.Pending)
	if o.in, err = agui.ParseInput(o.raw); err != nil {
		return thread.Stopped{}, fmt.Errorf("dismiss what waits on thread %s: %w", id, err)
	}
	if !r.floor.enter() {
		return thread.Stopped{}, thread.ErrDraining
	}
	defer r.floor.running.Done()
	err = r.line().place(ctx, o)
	if errors.Is(err, thread.ErrRunning) || errors.Is(err, thread.ErrAnswered) || errors.Is(err, thread.ErrGap) {
		return thread.Stopped{}, nil // another run has come meanwhile
	}
	if err != nil {
		return thread.Stopped{}, err
	}
	ended, err := r.acceptor().recorded(ctx, id, o.RunID)
	if err != nil {
		return thread.Stopped{}, err
	}
	return thread.Stopped{Stopped: true, RunID: th.Latest.ID, Cursor: ended.Cursor()}, nil
}
