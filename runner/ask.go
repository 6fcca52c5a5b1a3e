package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Ask runs an agent once, beside all threads: no lease is taken, nothing is recorded, and it ends when ctx does. The thread
// of the request need not exist, and may be busy. emit gets events as viewers of a run do, from RUN_STARTED to exactly one
// terminal event; the limits of runs hold. Errors before the agent is asked are those of [Runner.Run] for requests that
// cannot become a run, and [thread.ErrDraining]; afterwards the error is that of emit, or the cause of ctx.
func (r *Runner) Ask(ctx context.Context, req thread.Request, emit func(event []byte) error) error {
	o, err := r.acceptor().examine(req)
	if err != nil {
		return err
	}
	if !r.floor.enter() {
		return thread.ErrDraining
	}
	defer r.floor.running.Done()
	a := &intake{}
	a.open(r, thread.Run{
		Thread: o.Thread, ID: o.RunID, Agent: o.Agent, Parent: o.in.ParentRunID, Input: o.raw, Accepted: time.Now(),
	}, o)
	defer a.cancel(nil)
	defer context.AfterFunc(ctx, func() { a.abandon(context.Cause(ctx)) })()
	defer a.clock()()
	log := r.log(o.Thread, o.RunID).With("asked", true)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		a.invoke(log)
	}()
	err = a.deliver(emit)
	a.abandon(err) // if it is not over
	a.await(returned, log)
	return err
}

// abandon ends the agent's work, of which nobody wants to hear any more.
func (e *intake) abandon(cause error) { e.conclude(conclusion{lost: true, cause: cause}) }

// deliver hands events to emit, up to the terminal one.
func (e *intake) deliver(emit func(event []byte) error) error {
	for {
		events, over := e.take()
		switch {
		case over == nil:
		case over.lost:
			return over.cause
		case !over.own:
			closers, err := e.closers(over.end)
			if err != nil {
				return fmt.Errorf("end what was asked of agent %s: %w", e.run.Agent, err)
			}
			events = append(events, closers...)
		}
		for _, event := range events {
			if err := emit(event); err != nil {
				return err
			}
		}
		if over != nil {
			return nil
		}
	}
}

// closers are the events that end the run as end says.
func (e *intake) closers(end thread.End) ([][]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return closing(e.tracker, e.run, end)
}
