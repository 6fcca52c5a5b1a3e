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
func (r acceptor) whenBusy(ctx context.Context, o order, busy *thread.RunningError) (acc thread.Accepted, again bool, err error) {
	known, err := r.History.Known(ctx, o.Thread, o.in.MessageIDs)
	if err != nil {
		return acc, false, fmt.Errorf("look up messages of thread %s: %w", o.Thread, err)
	}
	q := thread.Queued{
		Thread: o.Thread, RunID: o.RunID, Agent: o.Agent, Input: o.raw, Title: o.in.Title(), By: o.By,
		Answers: o.answers(func(id string) bool { return known[id] }),
	}
	switch o.OnBusy {
	case thread.Enqueue:
		if err := r.checkExpiry(ctx, o); err != nil {
			return acc, false, err
		}
		return r.Runner.line().enqueue(ctx, q)
	case thread.Interrupt, thread.Replace:
		if busy.RunID == "" {
			return acc, true, nil // it is being reclaimed or deleted
		}
		if err := r.checkExpiry(ctx, o); err != nil {
			return acc, false, err
		}
		if q.Front = true; o.OnBusy == thread.Replace {
			q.Replaces = busy.RunID
		}
		return r.Runner.line().jump(ctx, q, busy.RunID)
	}
	if len(q.Answers) > 0 {
		// Rather than that the thread is busy with just that.
		if err := r.Story.Answered(ctx, o.Thread, q.Answers); err != nil {
			return acc, false, err
		}
	}
	return acc, false, busy
}

// discardFor discards the run that the order replaces. One that has not been saved is finished first: the error asks for
// that.
func (r acceptor) discardFor(ctx context.Context, o order) error {
	if o.gone == "" {
		return nil
	}
	// Nothing is discarded for a request that was taken out of the queue meanwhile.
	next, err := r.Line.NextQueued(ctx, o.Thread)
	if err == nil && next.RunID != o.RunID {
		err = thread.ErrQueued
	}
	if err != nil {
		return fmt.Errorf("look whether run %s is next: %w", o.RunID, err)
	}
	run, err := r.Records.FindRun(ctx, o.Thread, o.gone)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return nil // it never became a run
	case err != nil:
		return fmt.Errorf("look up run %s: %w", o.gone, err)
	case run.Ended.IsZero():
		return &thread.UnfinishedError{Run: run}
	case run.Discarded:
		return nil
	}
	return r.discard(ctx, run)
}

// discardEnded discards a run that was stopped to be replaced, once its end is recorded.
func (r acceptor) discardEnded(ctx context.Context, id thread.ID, run thread.RunID) error {
	ended, err := r.recorded(ctx, id, run)
	if errors.Is(err, thread.ErrNotFound) || err == nil && ended.Discarded {
		return nil
	}
	if err != nil {
		return err
	}
	return r.discard(ctx, ended)
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
	// The log first: without it nobody gets the run from there, once it is marked.
	if err := r.Log.Drop(ctx, run.Thread, run.Number, 0); err != nil {
		return fmt.Errorf("discard run %s: %w", run.ID, err)
	}
	if err := r.Story.Discard(ctx, run.Thread, run.ID, messages); err != nil {
		return fmt.Errorf("discard run %s: %w", run.ID, err)
	}
	r.log(run.Thread, run.ID).Info("run discarded")
	r.board(func(b Board) { b.Discarded(run.Thread, run) })
	return nil
}

// rebased returns the order's input as its author would have written it at this moment, and which messages the thread has
// seen.
func (r acceptor) rebased(ctx context.Context, o order, seen func(id string) bool) ([]byte, func(id string) bool, error) {
	if o.since == 0 {
		return o.raw, seen, nil
	}
	past, err := r.past(ctx, o)
	if err != nil || len(past.Events) == 0 {
		return o.raw, seen, err
	}
	raw, err := agui.Rebase(ctx, o.raw, seen, past)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("%w: it takes too long to put its conversation together", thread.ErrBadInput)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	in, err := agui.ParseInput(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	known, err := r.History.Known(ctx, o.Thread, in.MessageIDs)
	if err != nil {
		return nil, nil, fmt.Errorf("look up messages of thread %s: %w", o.Thread, err)
	}
	return raw, func(id string) bool { return known[id] }, nil
}

// past is what happened on the thread since the author of the order knew it.
func (r acceptor) past(ctx context.Context, o order) (past agui.Past, err error) {
	for after, first := o.since-1, true; ; {
		run, err := r.Story.NextRun(ctx, o.Thread, after)
		if errors.Is(err, thread.ErrNotFound) {
			return past, nil
		}
		if err != nil && !errors.Is(err, thread.ErrCorrupt) {
			return past, fmt.Errorf("read what happened on thread %s: %w", o.Thread, err)
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
}
