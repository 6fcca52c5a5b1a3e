package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// enqueue lets a request wait for its turn.
func (r line) enqueue(ctx context.Context, q thread.Queued) (acc thread.Accepted, again bool, err error) {
	q, again, err = r.join(ctx, q)
	if again || err != nil {
		return acc, again, err
	}
	// The run that was in the way may have looked for what comes next just before.
	r.advance(q.Thread)
	if run, err := r.Records.FindRun(ctx, q.Thread, q.RunID); err == nil {
		return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, false, nil
	}
	return waits(q), false, nil
}

func waits(q thread.Queued) thread.Accepted {
	return thread.Accepted{RunID: q.RunID, Cursor: thread.Cursor{Run: q.After}, Queued: q.Place}
}

// join gives a request its place in the queue; again tells that what it was to wait for is gone, or that it has started.
func (r line) join(ctx context.Context, q thread.Queued) (placed thread.Queued, again bool, err error) {
	placed, err = r.Line.Enqueue(ctx, q, r.cfg.MaxQueue)
	if errors.Is(err, thread.ErrRunIDUsed) || errors.Is(err, thread.ErrNotFound) {
		return q, true, nil
	}
	if err != nil {
		return q, false, fmt.Errorf("enqueue run %s: %w", q.RunID, err)
	}
	if placed.Agent != q.Agent {
		return q, false, fmt.Errorf("%w: run %s of this thread waits for agent %q", thread.ErrRunIDUsed, q.RunID, placed.Agent)
	}
	r.log(q.Thread, q.RunID).Info("run enqueued", "place", placed.Place)
	r.board(func(b Board) { b.Changed(q.Thread) })
	return placed, false, nil
}

// jump puts a request before all that wait and stops what runs, until its turn has come. Its place is recorded before
// anything is stopped: nothing that waits gets between, on no node, and no crash loses it.
func (r line) jump(ctx context.Context, q thread.Queued, active thread.RunID) (acc thread.Accepted, again bool, err error) {
	placed, again, err := r.join(ctx, q)
	if again || err != nil {
		return acc, again, err
	}
	for {
		if _, err := r.Stop(ctx, q.Thread, active, q.By); err != nil {
			return acc, false, fmt.Errorf("stop run %s: %w", active, err)
		}
		next := active
		for wait := 3 * time.Millisecond; next == active; wait = min(2*wait, 25*time.Millisecond) {
			r.advance(q.Thread)
			acc, over, err := r.begun(ctx, q, active)
			if over || err != nil {
				return acc, errors.Is(err, thread.ErrDeleted), err
			}
			if !pause(ctx, wait) || r.floor.closed() {
				return waits(placed), false, nil // it keeps its place
			}
			if next, err = r.other(ctx, q, active); err != nil {
				return acc, false, err
			}
		}
		// Another request of this kind came first: it is in the way now. (If it is past already, so may we be: join tells.)
		active = next
		if q.Replaces != "" {
			if err := r.Runner.acceptor().discardEnded(ctx, q.Thread, q.Replaces); err != nil {
				return acc, false, err
			}
			q.Replaces = active
		}
		if placed, again, err = r.join(ctx, q); again || err != nil {
			return acc, again, err
		}
	}
}

// begun answers for a request that has had a place in the queue behind a run, once it has begun. [thread.ErrEnded] if
// somebody has taken it out of the queue, [thread.ErrDeleted] if somebody has deleted its thread, and with it that run.
func (r line) begun(ctx context.Context, q thread.Queued, behind thread.RunID) (acc thread.Accepted, over bool, err error) {
	waiting, err := r.Line.Queue(ctx, q.Thread)
	if err != nil {
		return acc, false, err
	}
	if slices.ContainsFunc(waiting, func(w thread.Queued) bool { return w.RunID == q.RunID }) {
		return acc, false, nil
	}
	run, err := r.Records.FindRun(ctx, q.Thread, q.RunID)
	if err == nil {
		return thread.Accepted{RunID: run.ID, Cursor: thread.Cursor{Run: run.Number}}, true, nil
	}
	if !errors.Is(err, thread.ErrNotFound) {
		return acc, false, fmt.Errorf("look up run %s: %w", q.RunID, err)
	}
	_, err = r.Records.FindRun(ctx, q.Thread, behind)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return acc, false, thread.ErrDeleted
	case err != nil:
		return acc, false, fmt.Errorf("look up run %s: %w", behind, err)
	}
	return acc, false, fmt.Errorf("%w: run %s was stopped before it began", thread.ErrEnded, q.RunID)
}

// other returns the run that is active now, if it is not the one that q is for; else the one that was.
func (r line) other(ctx context.Context, q thread.Queued, was thread.RunID) (thread.RunID, error) {
	lease, err := r.Owners.Holder(ctx, q.Thread)
	if errors.Is(err, thread.ErrNotFound) || err == nil && (lease.RunID == "" || lease.RunID == q.RunID) {
		return was, nil
	}
	if err != nil {
		return was, fmt.Errorf("find who holds thread %s: %w", q.Thread, err)
	}
	return lease.RunID, nil
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
		case errors.Is(err, thread.ErrNotFound), errors.Is(err, thread.ErrQueued):
			continue // it was taken out of the queue, its thread was deleted, or another came before it
		}
		r.log(id, q.RunID).Warn("run stays in the queue", "err", err)
		return
	}
}

// startQueued starts a request whose turn it is. One that cannot become a run any more becomes one that fails.
func (r line) startQueued(ctx context.Context, q thread.Queued) error {
	o := order{
		Request: thread.Request{Thread: q.Thread, RunID: q.RunID, Agent: q.Agent, By: q.By}, raw: q.Input, since: q.After,
		queue: true, gone: q.Replaces,
	}
	if q.Replaces != "" {
		o.since = 0 // its author says what the conversation is
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
