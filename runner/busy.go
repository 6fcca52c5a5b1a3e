package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// whenBusy does about an active run what the order wants; again asks for another attempt.
func (r acceptor) whenBusy(ctx context.Context, o *order, busy *thread.RunningError) (acc thread.Accepted, again bool, err error) {
	if err := r.checkAnswered(ctx, *o); err != nil {
		return acc, false, err
	}
	switch o.OnBusy {
	case thread.Enqueue:
		if len(o.in.Resume) > 0 {
			return acc, false, busy // an answer does not wait: what it answers may be gone by then
		}
		return r.Runner.line().enqueue(ctx, *o)
	case thread.Interrupt, thread.Replace:
		return acc, true, r.makeRoom(ctx, o, busy)
	}
	return acc, false, busy
}

// makeRoom stops the active run, and discards it if it is to be replaced.
func (r acceptor) makeRoom(ctx context.Context, o *order, busy *thread.RunningError) error {
	if _, err := r.Stop(ctx, o.Thread, busy.RunID, o.By); err != nil {
		return fmt.Errorf("stop run %s: %w", busy.RunID, err)
	}
	run, err := r.recorded(ctx, o.Thread, busy.RunID)
	if errors.Is(err, thread.ErrNotFound) {
		return nil // it never became a run, or its thread was deleted
	}
	if err != nil {
		return err
	}
	if o.OnBusy == thread.Interrupt {
		if o.since == 0 {
			o.since = run.Number
		}
		return nil
	}
	return r.discard(ctx, run)
}

// recorded waits until the end of a run is recorded.
func (r acceptor) recorded(ctx context.Context, id thread.ID, run thread.RunID) (thread.Run, error) {
	for {
		found, err := r.Records.FindRun(ctx, id, run)
		if err != nil {
			return found, fmt.Errorf("look up run %s: %w", run, err)
		}
		if !found.Ended.IsZero() {
			return found, nil
		}
		if !pause(ctx, 2*time.Millisecond) {
			return found, context.Cause(ctx)
		}
	}
}

// discard makes a run that has ended as if it had not been.
func (r acceptor) discard(ctx context.Context, run thread.Run) error {
	whole, err := r.Story.NextRun(ctx, run.Thread, run.Number-1)
	if err != nil && !errors.Is(err, thread.ErrCorrupt) {
		return fmt.Errorf("read run %s: %w", run.ID, err)
	}
	tracker := agui.NewTracker(string(run.Thread), string(run.ID))
	for _, e := range whole.Events {
		_, _ = tracker.Observe(e.Data) // it was checked before it was written
	}
	messages := tracker.Created()
	if in, err := agui.ParseInput(run.Input); err == nil {
		messages = append(messages, in.MessageIDs...)
	}
	if err := r.Story.Discard(ctx, run.Thread, run.ID, messages); err != nil {
		return fmt.Errorf("discard run %s: %w", run.ID, err)
	}
	if err := r.Log.Drop(ctx, run.Thread, run.Number, 0); err != nil {
		return fmt.Errorf("discard run %s: %w", run.ID, err)
	}
	r.log(run.Thread, run.ID).Info("run discarded")
	r.board(func(b Board) { b.Discarded(run.Thread, run) })
	return nil
}

// rebased returns the order's input as its author would have written it at this moment.
func (r acceptor) rebased(ctx context.Context, o order, seen func(id string) bool) ([]byte, error) {
	if o.since == 0 {
		return o.raw, nil
	}
	var past agui.Past
	for after, first := o.since-1, true; ; {
		run, err := r.Story.NextRun(ctx, o.Thread, after)
		if errors.Is(err, thread.ErrNotFound) {
			break
		}
		if err != nil && !errors.Is(err, thread.ErrCorrupt) {
			return nil, fmt.Errorf("read what happened on thread %s: %w", o.Thread, err)
		}
		after = run.Number
		if run.Discarded {
			continue
		}
		if first {
			past.State, first = agui.InputState(run.Input), false
		}
		for _, e := range run.Events {
			past.Events = append(past.Events, e.Data)
		}
	}
	if len(past.Events) == 0 {
		return o.raw, nil
	}
	raw, err := agui.Rebase(o.raw, seen, past)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	return raw, nil
}
