package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// acceptTimeout bounds what it takes to accept a run, whoever asked for it.
const acceptTimeout = 20 * time.Second

// Run accepts a run: when it returns without an error, the run is recorded in the history and its agent is being
// started. A run id that the thread already had is answered as it was the first time, and starts
// nothing; with another agent than then it is [thread.ErrRunIDUsed]. Other errors: [thread.ErrUnknownAgent],
// [thread.ErrBadInput], a [thread.RunningError] when another run is active, [thread.ErrDraining], and those
// of the stores.
func (r *Runner) Run(ctx context.Context, req thread.Request) (thread.Accepted, error) {
	req.Agent = cmp.Or(req.Agent, r.first)
	if r.agents[req.Agent] == nil {
		return thread.Accepted{}, fmt.Errorf("%w: %q", thread.ErrUnknownAgent, req.Agent)
	}
	req.RunID = cmp.Or(req.RunID, thread.RunID("run_"+rand.Text()))
	if err := thread.CheckID("runId", string(req.RunID)); err != nil {
		return thread.Accepted{}, err
	}
	raw, err := req.Input(req.RunID)
	if err != nil {
		return thread.Accepted{}, err
	}
	input, err := agui.ParseInput(raw)
	if err != nil {
		return thread.Accepted{}, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	if !r.enter() {
		return r.late(ctx, req)
	}
	defer r.running.Done()
	// From here on it is done or not done, whether the caller waits or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	for {
		acc, again, err := r.try(ctx, req, raw, input)
		if !again {
			return acc, err
		}
		if ctx.Err() != nil {
			return thread.Accepted{}, fmt.Errorf("accept run %s: %w", req.RunID, thread.ErrUnavailable)
		}
	}
}

// try is one attempt to accept; again asks for another, since what stood in the way is gone.
func (r *Runner) try(ctx context.Context, req thread.Request, raw []byte, in agui.Input) (acc thread.Accepted, again bool, err error) {
	if acc, err = r.known(ctx, req); err == nil || !errors.Is(err, thread.ErrNotFound) {
		return acc, false, err
	}
	claim := thread.Claim{Thread: req.Thread, RunID: req.RunID, Owner: r.owner}
	asked := time.Now()
	lease, err := r.Leaser.Acquire(ctx, claim, r.cfg.Lease)
	var busy *thread.RunningError
	switch {
	case errors.As(err, &busy):
		return thread.Accepted{}, r.passes(ctx, req, busy), busy
	case err != nil:
		return thread.Accepted{}, false, fmt.Errorf("take the lease of thread %s: %w", req.Thread, err)
	}
	lease.Deadline = asked.Add(r.cfg.Lease)
	run, err := r.record(ctx, &lease, req, raw, in)
	if err != nil {
		err = errors.Join(err, r.Leaser.Release(ctx, lease))
		return thread.Accepted{}, errors.Is(err, thread.ErrRunIDUsed), err
	}
	r.launch(lease, run, raw)
	return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, false, nil
}

// known answers for a run that the thread has had; [thread.ErrNotFound] if it has not.
func (r *Runner) known(ctx context.Context, req thread.Request) (thread.Accepted, error) {
	run, err := r.Records.FindRun(ctx, req.Thread, req.RunID)
	if err != nil {
		return thread.Accepted{}, fmt.Errorf("look up run %s: %w", req.RunID, err)
	}
	if run.Agent != req.Agent {
		return thread.Accepted{}, fmt.Errorf("%w: run %s of this thread was a run of agent %q", thread.ErrRunIDUsed, run.ID, run.Agent)
	}
	return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, nil
}

// passes waits for what holds the thread, if that is over but for its bookkeeping, and tells whether it did.
func (r *Runner) passes(ctx context.Context, req thread.Request, busy *thread.RunningError) bool {
	s := r.slot(req.Thread)
	switch {
	case s == nil && busy.Owner == r.owner, busy.RunID == req.RunID:
		// It is being accepted, or was released in this moment: look again.
		return pause(ctx, 2*time.Millisecond)
	case s == nil:
		return false
	case s.exec != nil && !s.exec.hasEnded():
		return false
	}
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits for d and tells whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// record writes the run into the history, after finishing what an owner that went away left unfinished.
func (r *Runner) record(
	ctx context.Context, lease *thread.Lease, req thread.Request, raw []byte, in agui.Input,
) (thread.Run, error) {
	run := thread.Run{
		Thread: req.Thread, ID: req.RunID, Agent: req.Agent, Parent: in.ParentRunID,
		Owner: r.owner, Token: lease.Token, Title: in.Title(), Accepted: time.Now(),
	}
	for {
		known, err := r.History.Known(ctx, req.Thread, in.MessageIDs)
		if err != nil {
			return run, fmt.Errorf("look up messages of thread %s: %w", req.Thread, err)
		}
		run.Input, err = agui.ReduceInput(raw, func(id string) bool { return known[id] })
		if err != nil {
			return run, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
		}
		run.Messages = in.MessageIDs
		started, err := r.History.StartRun(ctx, run)
		var left *thread.UnfinishedError
		if !errors.As(err, &left) {
			if err != nil {
				err = fmt.Errorf("record run %s: %w", run.ID, err)
			}
			return started, err
		}
		if *lease, err = r.takeOver(ctx, *lease, left.Run); err != nil {
			return run, err
		}
	}
}

// launch starts the run's goroutine.
func (r *Runner) launch(lease thread.Lease, run thread.Run, input []byte) {
	e := newExecution(r, lease, run, input)
	s := r.occupy(run.Thread, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		e.conclude(shutDown)
	}
	r.running.Go(func() { e.drive(s) })
}

// enter counts a caller among what Drain waits for, and tells whether the node still takes runs.
func (r *Runner) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.running.Add(1)
	}
	return !r.draining
}

// late answers a request that comes while the node drains: a run that it already accepted stays accepted.
func (r *Runner) late(ctx context.Context, req thread.Request) (thread.Accepted, error) {
	acc, err := r.known(ctx, req)
	if errors.Is(err, thread.ErrNotFound) {
		err = thread.ErrDraining
	}
	return acc, err
}
