package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// What the operator allows is enforced here, without the agent's help: by timers of the run, and by emit before an
// event is taken.

// errTimedOut is the cause with which the context of a run ends that took, or was silent, for longer than allowed.
var errTimedOut = errors.New("the run timed out")

// overdue is how a run ends that takes longer than allowed. It did not fail: it ends with RUN_FINISHED and the cancelled
// outcome (AG-UI 1.0, section 8).
func overdue(allowed time.Duration) conclusion {
	return conclusion{cause: errTimedOut, end: thread.End{
		Outcome: thread.OutcomeTimedOut, Message: fmt.Sprintf("The run took longer than the %s that it may.", allowed),
	}}
}

// silent is how a run ends whose agent says nothing for longer than allowed: it is taken for broken.
func silent(allowed time.Duration) conclusion {
	return conclusion{cause: errTimedOut, end: thread.End{
		Outcome: thread.OutcomeTimedOut, Code: "agent_silent",
		Message: fmt.Sprintf("The agent said nothing for longer than the %s that it may.", allowed),
	}}
}

// clock ends the run when its time is over. The function that it returns stops it.
func (e *intake) clock() (stop func()) {
	left := time.Until(e.run.Accepted.Add(e.r.cfg.MaxRunTime))
	total := time.AfterFunc(left, func() { e.conclude(overdue(e.r.cfg.MaxRunTime)) })
	quiet := make(chan *time.Timer, 1)
	quiet <- time.AfterFunc(e.r.cfg.MaxSilence, func() {
		if t, ok := <-quiet; ok {
			t.Reset(e.listen())
			quiet <- t
		}
	})
	return func() {
		total.Stop()
		t := <-quiet
		t.Stop()
		close(quiet)
	}
}

// listen ends the run if its agent has been silent for too long, and tells when to listen again. An agent that waits
// for the log is not silent.
func (e *intake) listen() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	allowed := e.r.cfg.MaxSilence
	for since := time.Since(e.last); since < allowed; {
		return allowed - since
	}
	if !e.queue.blocked && len(e.queue.events) == 0 {
		e.concludeLocked(silent(allowed))
	}
	return allowed
}

// admit makes an event fit to be taken, or concludes the run because it cannot be.
func (e *intake) admit(event []byte) ([]byte, error) {
	if len(event) <= e.r.cfg.MaxEventBytes {
		return event, nil
	}
	if len(event) <= e.r.cfg.MaxResultBytes {
		kept, err := e.keepApart(event)
		if kept != nil || err != nil {
			return kept, err
		}
	}
	err := fmt.Errorf("an event of %d bytes is over the limit of %d", len(event), e.r.cfg.MaxEventBytes)
	e.conclude(failure("event_too_large", "The agent sent an event that is too large: "+err.Error()+".", err))
	return nil, err
}

// fits concludes the run if another event is more than it may hold. e.mu is held.
func (e *intake) fits(event []byte) error {
	switch {
	case e.queue.total+e.queue.apart+len(event) > e.r.cfg.MaxRunBytes:
		err := fmt.Errorf("the events of the run are over the limit of %d bytes", e.r.cfg.MaxRunBytes)
		e.concludeLocked(failure("run_too_large", "The agent sent more than a run may hold.", err))
		return err
	case e.queue.count >= e.r.cfg.MaxEvents:
		err := fmt.Errorf("the run is over the limit of %d events", e.r.cfg.MaxEvents)
		e.concludeLocked(failure("too_many_events", fmt.Sprintf(
			"The agent sent more than the %d events that a run may hold.", e.r.cfg.MaxEvents), err))
		return err
	}
	return nil
}

// keepApart stores the content of a tool's result that is too large for the live log, and returns the event with a
// reference in its place; nil if the event is not such a result.
func (e *intake) keepApart(event []byte) ([]byte, error) {
	content, ok := agui.ResultContent(event)
	if !ok || e.r.Results == nil || e.run.Number == 0 { // of what is no run, nothing is kept
		return nil, nil
	}
	e.mu.Lock()
	over, err := e.over, e.fits(event)
	if err == nil && over == nil {
		e.queue.apart += len(event)
		e.queue.results++
	}
	place := e.queue.results
	e.mu.Unlock()
	if over != nil {
		return nil, errOver
	}
	if err != nil {
		return nil, err
	}
	result := thread.Result{Thread: e.run.Thread, RunID: e.run.ID, Run: e.run.Number, Token: e.run.Token, Place: place, Content: content}
	if err := e.store(result); err != nil {
		return nil, err
	}
	return agui.WithReference(event, string(e.run.Thread), string(e.run.ID), place)
}

// store tries until the result is stored, the run is over, or there is no hope.
func (e *intake) store(result thread.Result) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		call, cancel := context.WithTimeout(e.ctx, e.r.cfg.Lease)
		err := e.r.Results.SaveResult(call, result)
		cancel()
		switch {
		case err == nil:
			return nil
		case e.ctx.Err() != nil:
			return errOver
		case !passing(err):
			err = fmt.Errorf("store a result of run %s: %w", e.run.ID, err)
			e.conclude(failure("event_too_large", "The agent sent a result that is too large, and it could not be stored.", err))
			return err
		case !pause(e.ctx, wait):
			return errOver
		}
	}
}
