package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// errOver is what emit returns once a run takes no more events.
var errOver = errors.New("the run takes no more events")

// conclusion says how a run ends. There is one per run: the first, unless the lease is lost before it is written.
type conclusion struct {
	end     thread.End
	own     bool   // the agent's own terminal event is the last one queued
	lost    bool   // the lease is gone: nothing may be written any more
	cause   error  // for the agent's context
	pending []byte // interrupts of the agent's own terminal event
	calls   []byte // tool calls that wait for the application
	usage   []byte // tokens used, as the agent's own terminal event has it
}

// execution is one run on this node. Its drive goroutine owns it; the agent's goroutine only emits.
type execution struct {
	r      *Runner
	run    thread.Run
	order  order
	ctx    context.Context // the agent's: done as soon as the run is concluded
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	changed *sync.Cond // queue or over
	tracker *agui.Tracker
	queue   queue
	over    *conclusion
	last    time.Time     // of the last event
	lease   thread.Lease  // as of the last renewal
	head    thread.Cursor // of what is in the log

	entries []thread.Entry // the producer's copy of everything in the log; drive's own
	ended   chan struct{}  // closed when the end is in the log, or never will be by us
	final   *conclusion    // set before ended is closed
}

func newExecution(r *Runner, lease thread.Lease, run thread.Run, o order) *execution {
	e := &execution{
		r: r, run: run, order: o, lease: lease, last: time.Now(),
		tracker: agui.NewTracker(string(run.Thread), string(run.ID)),
		ended:   make(chan struct{}),
		head:    thread.Cursor{Run: run.Number},
	}
	e.changed = sync.NewCond(&e.mu)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e
}

// emit takes one event of the agent.
func (e *execution) emit(event []byte) error {
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
func (e *execution) accept(event []byte) error {
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
func (e *execution) begin(event []byte) ([]byte, error) {
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

func (e *execution) push(event []byte) {
	e.queue.push(event)
	e.last = time.Now()
	e.changed.Broadcast()
}

func (e *execution) malformed(err error) error {
	e.concludeLocked(failure("bad_event", "The agent sent an event that is not valid AG-UI: "+err.Error(), err))
	return err
}

func failure(code, message string, cause error) conclusion {
	return conclusion{
		end:   thread.End{Outcome: thread.OutcomeFailed, Code: code, Message: message},
		cause: cause,
	}
}

func endOf(s agui.Step) thread.End {
	switch {
	case s.Type == "RUN_ERROR":
		return thread.End{Outcome: thread.OutcomeFailed, Code: s.Code, Message: s.Message}
	case s.Outcome == "interrupt":
		return thread.End{Outcome: thread.OutcomeWaiting}
	case s.Outcome == "cancelled":
		return thread.End{Outcome: thread.OutcomeStopped, By: "agent"}
	}
	return thread.End{Outcome: thread.OutcomeFinished}
}

// conclude says how the run ends, if nobody has yet, and tells whether it did. From then on no event is taken,
// and the agent's context is done.
func (e *execution) conclude(c conclusion) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.concludeLocked(c)
}

func (e *execution) concludeLocked(c conclusion) bool {
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
func (e *execution) concluded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over != nil
}

// close tells everybody that the run is over.
func (e *execution) close(over *conclusion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.final = over
	close(e.ended)
}

// hasEnded tells whether the end of the run is in the log, or never will be by us.
func (e *execution) hasEnded() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

func (e *execution) endCursor() thread.Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.head
}

func (e *execution) getLease() thread.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// renewed is called by the keeper.
func (e *execution) renewed(lease thread.Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease = lease
}

// lose is called by the keeper.
func (e *execution) lose(err error) {
	e.conclude(conclusion{lost: true, cause: fmt.Errorf("%w: %w", errLost, err)})
}

// asked is called by the keeper when somebody on another node wants the run stopped.
func (e *execution) asked(req thread.StopRequest) {
	if req.RunID == "" || req.RunID == e.run.ID {
		e.conclude(e.r.stopped(req.By))
	}
}

func (e *execution) describe(st *thread.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st.Running = !e.hasEnded()
	st.RunID, st.Agent, st.Started = e.run.ID, e.run.Agent, e.run.Accepted
	st.Cursor, st.LastEvent = e.head, e.last
	if !st.Running && !e.final.lost {
		latest := e.run
		latest.End, latest.Ended, latest.LastSeq = e.final.end, e.last, e.head.Seq
		latest.Pending, latest.Usage = e.final.pending, e.final.usage
		st.Latest = &latest
		st.Pending, st.Calls = pendingAfter(st.Pending, st.Calls, e.final)
	}
}

// pendingCalls are the tool calls that wait for the application once the run has ended with step.
func pendingCalls(t *agui.Tracker, step agui.Step, run thread.RunID, tools []string) []byte {
	return agui.AppendCalls(agui.PendingCalls(t.Unanswered(), step, tools), string(run))
}

// pendingAfter tells what waits after a run (AG-UI 1.0, section 9): RUN_FINISHED sets or clears it, RUN_ERROR leaves
// it.
func pendingAfter(interrupts, calls []byte, over *conclusion) (nowInterrupts, nowCalls []byte) {
	if over.end.Finished() {
		return over.pending, over.calls
	}
	return interrupts, calls
}
