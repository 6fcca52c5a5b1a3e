package runner

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// errOver is what emit returns once a run takes no more events.
var errOver = errors.New("the run takes no more events")

// intake takes the events of a run's agent and says when it is over. The agent's goroutine only emits.
type intake struct {
	r      *Runner
	run    thread.Run
	order  order
	ctx    context.Context // the agent's: done as soon as the run is concluded
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond // queue, over or doubt
	tracker *agui.Tracker
	queue   queue
	over    *conclusion
	doubt   bool      // the log may have lost what it had
	last    time.Time // of the last event
}

// open makes the intake of a run ready.
func (e *intake) open(r *Runner, run thread.Run, o order) {
	e.r, e.run, e.order = r, run, o
	e.last, e.tracker = time.Now(), agui.NewTracker(string(run.Thread), string(run.ID))
	e.changed = sync.NewCond(&e.mu)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
}

// emit takes one event of the agent.
func (e *intake) emit(event []byte) error {
	event, err := e.admit(event)
	if err != nil {
		return err
	}
	if !utf8.Valid(event) {
		event = []byte(string([]rune(string(event)))) // invalid bytes become U+FFFD, as in a browser
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.over == nil && e.queue.bytes > e.r.cfg.QueueBytes {
		e.queue.blocked = true
		e.changed.Wait()
		e.queue.blocked = false
	}
	if e.over != nil {
		return errOver
	}
	if err := e.fits(event); err != nil {
		return err
	}
	return e.accept(event)
}

// accept checks an event and queues it. e.mu is held.
func (e *intake) accept(event []byte) error {
	if !e.tracker.Started() {
		var err error
		if event, err = e.begin(event); err != nil {
			return e.malformed(err)
		}
	}
	step, err := e.tracker.Observe(event)
	if err != nil {
		return e.malformed(err)
	}
	e.push(event)
	if step.Terminal {
		e.concludeLocked(conclusion{
			end: endOf(step), own: true, cause: errOver, pending: step.Interrupts, usage: step.Usage,
			calls: pendingCalls(e.tracker, step, e.run.ID, e.order.in.Tools),
		})
	}
	return nil
}

// begin sees to it that the run's first event is a RUN_STARTED with input (AG-UI 1.0, sections 6.1 and 8).
func (e *intake) begin(event []byte) ([]byte, error) {
	h, err := agui.ParseHeader(event)
	if err != nil {
		return nil, err
	}
	if h.Type == "RUN_STARTED" {
		return agui.CompleteStarted(event, e.run.Input)
	}
	started, err := agui.RunStarted(e.run.Input)
	if err != nil {
		return nil, err
	}
	if _, err := e.tracker.Observe(started); err != nil {
		return nil, err
	}
	e.push(started)
	return event, nil
}

func (e *intake) push(event []byte) {
	e.queue.push(event)
	e.last = time.Now()
	e.changed.Broadcast()
}

func (e *intake) malformed(err error) error {
	e.concludeLocked(failure("bad_event", "The agent sent an event that is not valid AG-UI: "+err.Error(), err))
	return err
}

// conclude says how the run ends, if nobody has yet, and tells whether it did. From then on no event is taken,
// and the agent's context is done.
func (e *intake) conclude(c conclusion) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.concludeLocked(c)
}

func (e *intake) concludeLocked(c conclusion) bool {
	// A lost lease overrules: whoever holds it now says how the run ends.
	if e.over != nil && (!c.lost || e.over.lost) {
		return false
	}
	e.over = &c
	e.cancel(c.cause)
	e.changed.Broadcast()
	return true
}

// concluded tells whether it is settled how the run ends. The end may still have to be written.
func (e *intake) concluded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over != nil
}

// take waits for events and returns some; with the conclusion when they are the last ones. It returns neither when the log
// is in doubt.
func (e *intake) take() ([][]byte, *conclusion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue.events) == 0 && e.over == nil && !e.doubt {
		e.changed.Wait()
	}
	e.doubt = false // what is appended shows whether the log has what is before it
	events := e.queue.take()
	e.changed.Broadcast()
	if e.over != nil && (len(e.queue.events) == 0 || e.over.lost) {
		return events, e.over
	}
	return events, nil
}
