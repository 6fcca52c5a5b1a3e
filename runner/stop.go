package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// stopPatience is how long a caller of Stop waits, beside what the agent is given, for the end of a run of this node to be
// written.
const stopPatience = 3500 * time.Millisecond

// errEndNotWritten tells that the run is concluded, while the log does not take its end. That goes on being tried.
var errEndNotWritten = fmt.Errorf("the end of the run cannot be written yet: %w", thread.ErrUnavailable)

// errStopped is the cause with which a stopped run's context ends.
var errStopped = errors.New("the run was stopped")

// StopTerminal is a form of the terminal event of stopped runs.
type StopTerminal string

const (
	// StopFinished ends them with RUN_FINISHED and the cancelled outcome, as AG-UI 1.0 has it (section 8). It clears
	// the interrupts that wait for an answer.
	StopFinished StopTerminal = "finished"
	// StopError ends them with RUN_ERROR, whose code is "stopped": for clients from before 1.0, which read every
	// RUN_FINISHED as success. It leaves the interrupts that wait as they are (section 9).
	StopError StopTerminal = "error"
)

// stoppedError is how runs end that are stopped, where they end with RUN_ERROR.
var stoppedError = thread.End{
	Outcome: thread.OutcomeStopped, Code: "stopped",
	Message: "The run was stopped.",
}

// stopped concludes a run for somebody. In either form its outcome is [thread.OutcomeStopped].
func (r *Runner) stopped(by string) conclusion {
	end := thread.End{Outcome: thread.OutcomeStopped}
	if r.cfg.StopTerminal == StopError {
		end = stoppedError
	}
	end.By = by
	return conclusion{end: end, cause: errStopped}
}

// Stop ends the thread's active run: the one named, or any if run is empty. When it returns Stopped, the agent's
// context is done and its agent has returned or was abandoned, the run's terminal event is durable, nothing
// of the run is published any more, and the thread takes a new run. A run that waits in the queue is stopped by taking
// it out, and a thread that waits for an answer by an answer of its own: whatever waits is cancelled. While the log is away
// the run's end cannot be written: then [thread.ErrUnavailable] comes within five seconds, for an agent that returns when it
// is told to, and the run ends all the same as soon as the log is back.
func (r *Runner) Stop(ctx context.Context, id thread.ID, run thread.RunID, by string) (thread.Stopped, error) {
	e := r.floor.execution(id)
	if e != nil && (run != "" && run != e.run.ID || run == "" && e.hasEnded()) {
		e = nil // its lease may have been given up, and another node have the next run
	}
	if run != "" && e == nil {
		if out, err := r.line().dequeue(ctx, id, run); out || err != nil {
			return thread.Stopped{Stopped: out, RunID: run}, err
		}
	}
	if e == nil {
		st, err := r.stopElsewhere(ctx, id, thread.StopRequest{RunID: run, By: by})
		if err != nil || st.RunID != "" {
			return st, err
		}
		return r.dismiss(ctx, id, run, by)
	}
	e.conclude(r.stopped(by))
	late := time.NewTimer(r.cfg.StopGrace + stopPatience)
	defer late.Stop()
	select {
	case <-e.ended:
	case <-late.C:
		return thread.Stopped{}, fmt.Errorf("stop run %s: %w", e.run.ID, errEndNotWritten)
	case <-ctx.Done():
		return thread.Stopped{}, context.Cause(ctx)
	}
	if e.final.lost {
		return r.stopElsewhere(ctx, id, thread.StopRequest{RunID: e.run.ID, By: by})
	}
	return thread.Stopped{
		Stopped: e.final.end.Outcome == thread.OutcomeStopped,
		RunID:   e.run.ID,
		Cursor:  e.endCursor(),
	}, nil
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
	again := time.Now().Add(time.Second)
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		st, over, err := r.stoppedElsewhere(ctx, lease)
		if over || err != nil {
			return st, err
		}
		if time.Now().After(again) { // the log may have lost the wish; asking twice is asking once
			again = time.Now().Add(time.Second)
			req.RunID = lease.RunID
			if _, err := r.Owners.AskStop(ctx, id, req); err != nil && !errors.Is(err, thread.ErrNotFound) {
				return thread.Stopped{}, fmt.Errorf("ask for a stop on thread %s: %w", id, err)
			}
		}
		if !pause(ctx, wait) {
			return thread.Stopped{}, context.Cause(ctx)
		}
	}
}

// stoppedElsewhere tells how a run ended that another node has or had, once it has: from the log, where its end is
// durable, or from the history, should it have left the log.
func (r *Runner) stoppedElsewhere(ctx context.Context, lease thread.Lease) (st thread.Stopped, over bool, err error) {
	tip, err := r.scribe().tip(ctx, lease.Thread)
	if err != nil {
		return st, false, fmt.Errorf("look for the end of run %s: %w", lease.RunID, err)
	}
	if tip.endedAs(lease.RunID) {
		return thread.Stopped{
			Stopped: tip.end.Outcome == thread.OutcomeStopped, RunID: tip.RunID, Cursor: tip.Cursor(),
		}, true, nil
	}
	if held, err := r.holds(ctx, lease); held || err != nil {
		return st, false, err // it goes on, or is being accepted
	}
	run, err := r.Records.FindRun(ctx, lease.Thread, lease.RunID)
	if errors.Is(err, thread.ErrNotFound) {
		return st, true, nil // it never became a run
	}
	if err != nil {
		return st, false, fmt.Errorf("look up run %s: %w", lease.RunID, err)
	}
	return thread.Stopped{
		Stopped: run.End.Outcome == thread.OutcomeStopped, RunID: run.ID, Cursor: run.Cursor(),
	}, !run.Ended.IsZero(), nil
}

// holds tells whether the lease of a thread is still held for the same run.
func (r *Runner) holds(ctx context.Context, lease thread.Lease) (bool, error) {
	now, err := r.Owners.Holder(ctx, lease.Thread)
	if errors.Is(err, thread.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find who holds thread %s: %w", lease.Thread, err)
	}
	return now.Token == lease.Token, nil
}
