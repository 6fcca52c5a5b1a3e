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
// nothing; with another agent than then it is [thread.ErrRunIDUsed]. When another run is active, req.OnBusy decides.
// Other errors: [thread.ErrUnknownAgent], [thread.ErrBadInput], a [thread.RunningError], a [thread.AnsweredError] when
// something that the input answers has its answer, [thread.ErrQueueFull], [thread.ErrDraining], and those of the stores.
func (r *Runner) Run(ctx context.Context, req thread.Request) (thread.Accepted, error) {
	o, err := r.acceptor().examine(req)
	if err != nil {
		return thread.Accepted{}, err
	}
	if !r.floor.enter() {
		return r.acceptor().late(ctx, o)
	}
	defer r.floor.running.Done()
	// From here on it is done or not done, whether the caller waits or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	for {
		acc, again, err := r.acceptor().try(ctx, o)
		if busy, ok := errors.AsType[*thread.RunningError](err); ok && !again {
			acc, again, err = r.acceptor().whenBusy(ctx, o, busy)
		}
		if again {
			continue
		}
		if err != nil && ctx.Err() != nil {
			//nolint:errorlint // what stood in the way is told, but is not what the caller has to deal with
			err = fmt.Errorf("accept run %s: %w: %v", o.RunID, thread.ErrUnavailable, err)
		}
		return acc, err
	}
}

// order is a request that was examined.
type order struct {
	thread.Request
	raw   []byte // the whole input
	in    agui.Input
	since uint64       // number of the first run that the author of the input may not have seen to its end; 0 for none
	queue bool         // it comes from the queue: it was judged when it entered that
	gone  thread.RunID // the run that is discarded for it; empty for none
	last  uint64       // number that the thread's last run has to have; 0 for any
	over  *conclusion  // how the run ends before it begins; nil for a run that has an agent
}

// examine fills in what the request leaves open, and refuses what could never become a run.
func (r acceptor) examine(req thread.Request) (order, error) {
	req.Agent = cmp.Or(req.Agent, r.first)
	if r.agents[req.Agent] == nil {
		return order{}, fmt.Errorf("%w: %q", thread.ErrUnknownAgent, req.Agent)
	}
	req.RunID = cmp.Or(req.RunID, thread.RunID("run_"+rand.Text()))
	if err := thread.CheckID("threadId", string(req.Thread)); err != nil {
		return order{}, err
	}
	if err := thread.CheckID("runId", string(req.RunID)); err != nil {
		return order{}, err
	}
	raw, err := req.Input(req.RunID)
	if err != nil {
		return order{}, err
	}
	in, err := agui.ParseInput(raw)
	if err != nil {
		return order{}, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	// A run whose beginning cannot be written could not be ended either.
	started, err := agui.RunStarted(raw)
	if err == nil {
		_, err = agui.NewTracker(string(req.Thread), string(req.RunID)).Observe(started)
	}
	if err != nil {
		return order{}, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	return order{Request: req, raw: raw, in: in}, nil
}

// try is one attempt to accept; again asks for another, since what stood in the way is gone.
func (r acceptor) try(ctx context.Context, o order) (acc thread.Accepted, again bool, err error) {
	if acc, err = r.known(ctx, o); err == nil || !errors.Is(err, thread.ErrNotFound) {
		return acc, false, err
	}
	lease, err := r.acquire(ctx, thread.Claim{Thread: o.Thread, RunID: o.RunID, Owner: r.owner})
	if busy, ok := errors.AsType[*thread.RunningError](err); ok {
		return thread.Accepted{}, r.passes(ctx, o, busy), busy
	}
	if err != nil {
		return thread.Accepted{}, false, err
	}
	run, raw, err := r.record(ctx, &lease, o)
	if err != nil {
		err = errors.Join(err, r.release(lease))
		if errors.Is(err, thread.ErrQueued) && !o.queue {
			// Whoever waits goes first: then this one meets an active run, or nobody.
			r.Runner.line().advance(o.Thread)
			return thread.Accepted{}, pause(ctx, 2*time.Millisecond), err
		}
		return thread.Accepted{}, errors.Is(err, thread.ErrRunIDUsed), err
	}
	o.raw = raw
	r.launch(lease, run, o)
	return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, false, nil
}

// known answers for a run that the thread has had; [thread.ErrNotFound] if it has not.
func (r acceptor) known(ctx context.Context, o order) (thread.Accepted, error) {
	run, err := r.Records.FindRun(ctx, o.Thread, o.RunID)
	if err != nil {
		return thread.Accepted{}, fmt.Errorf("look up run %s: %w", o.RunID, err)
	}
	if run.Agent != o.Agent {
		return thread.Accepted{}, fmt.Errorf("%w: run %s of this thread was a run of agent %q", thread.ErrRunIDUsed, run.ID, run.Agent)
	}
	return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, nil
}

// passes waits for what holds the thread, if that is over but for its bookkeeping, and tells whether it did.
func (r acceptor) passes(ctx context.Context, o order, busy *thread.RunningError) bool {
	s := r.floor.slot(o.Thread)
	switch {
	case busy.RunID == o.RunID, busy.RunID == "", s == nil && busy.Owner == r.owner:
		// It is being accepted, reclaimed or deleted, or was released in this moment: look again.
		return pause(ctx, 2*time.Millisecond)
	case s == nil:
		return r.passesElsewhere(ctx, o.Thread, busy.RunID) && pause(ctx, 5*time.Millisecond)
	case s.exec != nil && !s.exec.concluded():
		return false
	}
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// passesElsewhere tells whether a run of another node is about to begin, when what it answers is not recorded yet, or has
// ended: its end is recorded before its lease is given up.
func (r acceptor) passesElsewhere(ctx context.Context, id thread.ID, run thread.RunID) bool {
	found, err := r.Records.FindRun(ctx, id, run)
	if err != nil || !found.Ended.IsZero() {
		return err == nil || errors.Is(err, thread.ErrNotFound)
	}
	tip, err := r.Runner.scribe().tip(ctx, id)
	return err == nil && tip.endedAs(run)
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

// record writes the run into the history, after finishing what an owner that went away left unfinished. Meanwhile the lease
// is renewed, however long that takes, and left in its latest form.
func (r acceptor) record(ctx context.Context, lease *thread.Lease, o order) (thread.Run, []byte, error) {
	for {
		k := startDeafKeeper(r.Runner, *lease)
		run, raw, err := r.start(ctx, *lease, o)
		*lease = k.stop()
		left, ok := errors.AsType[*thread.UnfinishedError](err)
		if !ok {
			return run, raw, err
		}
		if *lease, err = r.Runner.reclaimer().takeOver(ctx, *lease, left.Run); err != nil {
			return run, nil, err
		}
	}
}

// start is one attempt to record. It returns the run and the input that its agent gets. Should another
// have taken the lease by then, since it could not be renewed, one of the two finds the other's run unfinished, and only the
// greater token may finish it.
func (r acceptor) start(ctx context.Context, lease thread.Lease, o order) (run thread.Run, raw []byte, err error) {
	run = thread.Run{
		Thread: o.Thread, ID: o.RunID, Agent: o.Agent, Parent: o.in.ParentRunID, Messages: o.in.MessageIDs,
		Owner: r.owner, Token: lease.Token, Title: o.in.Title(), Accepted: time.Now(), Queued: o.queue, Follows: o.last,
		User: o.User,
	}
	if err := r.discardFor(ctx, o); err != nil {
		return run, nil, err
	}
	known, err := r.History.Known(ctx, o.Thread, o.in.MessageIDs)
	if err != nil {
		return run, nil, fmt.Errorf("look up messages of thread %s: %w", o.Thread, err)
	}
	seen := func(id string) bool { return known[id] }
	run.Answers = o.answers(seen)
	if err := r.checkExpiry(ctx, o); err != nil {
		return run, nil, err
	}
	if raw, seen, err = r.rebased(ctx, o, seen); err != nil {
		return run, nil, err
	}
	if run.Input, err = agui.ReduceInput(raw, seen); err != nil {
		return run, nil, fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	started, err := r.History.StartRun(ctx, run)
	if err != nil {
		return run, nil, fmt.Errorf("record run %s: %w", run.ID, err)
	}
	return started, raw, r.clean(ctx, lease, started)
}

// clean removes from the log what a deletion that was interrupted left of the thread's earlier runs.
func (r acceptor) clean(ctx context.Context, lease thread.Lease, run thread.Run) error {
	if run.Number == 1 || run.Previous != "" {
		return nil
	}
	first, err := r.Log.Read(ctx, run.Thread, thread.Cursor{}, 1)
	if err == nil && len(first) > 0 && first[0].Run < run.Number {
		err = r.Log.Forget(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("clear the log of thread %s: %w", run.Thread, err)
	}
	return nil
}

// launch starts the run's goroutine.
func (r acceptor) launch(lease thread.Lease, run thread.Run, o order) {
	e := newExecution(r.Runner, lease, run, o)
	if lease.Stop != nil {
		e.asked(*lease.Stop)
	}
	if o.over != nil {
		e.conclude(*o.over)
	}
	r.floor.begin(e, r.floor.occupy(run.Thread, e))
}

// late answers a request that comes while the node drains: a run that it already accepted stays accepted.
func (r acceptor) late(ctx context.Context, o order) (thread.Accepted, error) {
	acc, err := r.known(ctx, o)
	if errors.Is(err, thread.ErrNotFound) {
		err = thread.ErrDraining
	}
	return acc, err
}
