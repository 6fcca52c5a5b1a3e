package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// enqueue lets the order wait for its turn.
func (r line) enqueue(ctx context.Context, o order) (acc thread.Accepted, again bool, err error) {
	q, err := r.Line.Enqueue(ctx, thread.Queued{
		Thread: o.Thread, RunID: o.RunID, Agent: o.Agent, Input: o.raw, Title: o.in.Title(), By: o.By,
	}, r.cfg.MaxQueue)
	if errors.Is(err, thread.ErrRunIDUsed) || errors.Is(err, thread.ErrNotFound) {
		return acc, true, err // it has been started, or the run in the way is gone
	}
	if err != nil {
		return acc, false, fmt.Errorf("enqueue run %s: %w", o.RunID, err)
	}
	r.log(o.Thread, o.RunID).Info("run enqueued", "place", q.Place)
	r.board(func(b Board) { b.Changed(o.Thread) })
	// The run that was in the way may have looked for what comes next just before.
	r.advance(o.Thread)
	if run, err := r.Records.FindRun(ctx, o.Thread, o.RunID); err == nil {
		return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, false, nil
	}
	return thread.Accepted{RunID: q.RunID, Cursor: thread.Cursor{Run: q.After}, Queued: q.Place}, false, nil
}

// dequeue takes a request out of the queue, and tells whether it was there.
func (r line) dequeue(ctx context.Context, id thread.ID, run thread.RunID) (bool, error) {
	err := r.Line.Dequeue(ctx, id, run)
	if errors.Is(err, thread.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.log(id, run).Info("run taken out of the queue")
	r.board(func(b Board) { b.Changed(id) })
	return true, nil
}

// advance starts what waits on a thread, if nothing runs there. What cannot be started for now stays where it is:
// whoever ends the run in the way looks again, and Reclaim does so now and then.
func (r line) advance(id thread.ID) {
	if !r.floor.enter() {
		return
	}
	defer r.floor.running.Done()
	ctx, cancel := context.WithTimeout(context.Background(), acceptTimeout)
	defer cancel()
	for {
		q, err := r.Line.NextQueued(ctx, id)
		if errors.Is(err, thread.ErrNotFound) {
			return
		}
		if err == nil {
			err = r.startQueued(ctx, q)
		}
		switch {
		case err == nil, errors.Is(err, thread.ErrRunning):
			return
		case errors.Is(err, thread.ErrNotFound):
			continue // it was taken out of the queue, or its thread was deleted
		}
		r.log(id, q.RunID).Warn("run stays in the queue", "err", err)
		return
	}
}

// startQueued starts a request whose turn it is. One that cannot become a run any more becomes one that fails.
func (r line) startQueued(ctx context.Context, q thread.Queued) error {
	o := order{
		Request: thread.Request{Thread: q.Thread, RunID: q.RunID, Agent: q.Agent, By: q.By}, raw: q.Input, since: q.After,
		queue: true,
	}
	var err error
	if o.in, err = agui.ParseInput(q.Input); err == nil && r.agents[q.Agent] == nil {
		err = fmt.Errorf("%w: %q", thread.ErrUnknownAgent, q.Agent)
	}
	if err == nil {
		err = r.place(ctx, o)
	}
	if errors.Is(err, thread.ErrUnknownAgent) || errors.Is(err, thread.ErrBadInput) {
		over := failure("not_started", "The run could not be started when its turn came: "+err.Error()+".", err)
		o.over, o.since = &over, 0
		err = r.place(ctx, o)
	}
	if err == nil {
		r.board(func(b Board) { b.Changed(q.Thread) })
	}
	return err
}

// place tries until the order is accepted or refused.
func (r line) place(ctx context.Context, o order) error {
	for {
		if _, again, err := r.Runner.acceptor().try(ctx, o); !again {
			return err
		}
	}
}
