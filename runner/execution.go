package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// errOver is what emit returns once a run takes no more events.
var errOver = errors.New("the run takes no more events")

// conclusion says how a run ends. There is one per run: the first.
type conclusion struct {
	end   thread.End
	own   bool  // the agent's own terminal event is the last one queued
	lost  bool  // the lease is gone: nothing may be written any more
	cause error // for the agent's context
}

// execution is one run on this node. Its drive goroutine owns it; the agent's goroutine only emits.
type execution struct {
	r     *Runner
	run   thread.Run
	input []byte

	mu      sync.Mutex
	changed *sync.Cond // queue, over or conclusion
	tracker *agui.Tracker
	queue   [][]byte
	queued  int // bytes
	over    *conclusion
	last    time.Time // of the last event
	lease   thread.Lease
	pending []byte // interrupts of the terminal event

	entries []thread.Entry // the producer's copy of everything in the log; drive's own
	ended   chan struct{}  // closed when the end is in the log, or never will be by us
	final   *conclusion    // set before ended is closed
	head    thread.Cursor  // guarded by mu
}

func newExecution(r *Runner, lease thread.Lease, run thread.Run, input []byte) *execution {
	e := &execution{
		r: r, run: run, input: input, lease: lease, last: time.Now(),
		tracker: agui.NewTracker(string(run.Thread), string(run.ID)),
		ended:   make(chan struct{}),
		head:    thread.Cursor{Run: run.Number},
	}
	e.changed = sync.NewCond(&e.mu)
	return e
}

// emit takes one event of the agent.
func (e *execution) emit(event []byte) error {
	if len(event) > e.r.cfg.MaxEventBytes {
		err := fmt.Errorf("an event of %d bytes is over the limit of %d", len(event), e.r.cfg.MaxEventBytes)
		return e.refuse("event_too_large", "The agent sent an event that is too large: "+err.Error()+".", err)
	}
	if !utf8.Valid(event) {
		event = []byte(string([]rune(string(event)))) // invalid bytes become U+FFFD, as in a browser
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.over == nil && e.queued > e.r.cfg.QueueBytes {
		e.changed.Wait()
	}
	if e.over != nil {
		return errOver
	}
	return e.accept(event)
}

// accept checks an event and queues it. e.mu is held.
func (e *execution) accept(event []byte) error {
	h, err := agui.ParseHeader(event)
	if err != nil {
		return e.malformed(err)
	}
	if !e.tracker.Started() {
		if event, err = e.begin(h, event); err != nil {
			return e.malformed(err)
		}
	}
	step, err := e.tracker.Observe(event)
	if err != nil {
		return e.malformed(err)
	}
	e.push(event)
	if step.Terminal {
		e.pending = step.Interrupts
		e.concludeLocked(conclusion{end: endOf(step), own: true, cause: errOver})
	}
	return nil
}

// begin sees to it that the run's first event is a RUN_STARTED with input (AG-UI 1.0, sections 6.1 and 8).
func (e *execution) begin(h agui.Header, event []byte) ([]byte, error) {
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
	e.queue = append(e.queue, event)
	e.queued += len(event)
	e.last = time.Now()
	e.changed.Broadcast()
}

func (e *execution) malformed(err error) error {
	e.concludeLocked(failure("bad_event", "The agent sent an event that is not valid AG-UI: "+err.Error(), err))
	return err
}

func (e *execution) refuse(code, message string, err error) error {
	e.conclude(failure(code, message, err))
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

// conclude says how the run ends, if nobody has yet. From then on no event is taken.
func (e *execution) conclude(c conclusion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.concludeLocked(c)
}

func (e *execution) concludeLocked(c conclusion) {
	// A lost lease overrules: whoever holds it now says how the run ends.
	if e.over == nil || (c.lost && !e.over.lost) {
		e.over = &c
		e.changed.Broadcast()
	}
}

// runAgent runs the agent to its end and concludes the run if the agent did not.
func (e *execution) runAgent(ctx context.Context) {
	in := Input{ThreadID: e.run.Thread, RunID: e.run.ID, JSON: e.input}
	err := protect(func() error { return e.r.agents[e.run.Agent].Run(ctx, in, e.emit) })
	var shown *AgentError
	var crash *panicError
	switch {
	case ctx.Err() != nil || errors.Is(err, errOver):
		// It has been concluded.
	case err == nil:
		e.conclude(failure("stream_truncated", "The agent's answer broke off before its end.", errOver))
	case errors.As(err, &shown):
		e.r.log(e.run.Thread, e.run.ID).Warn("agent failed", "code", shown.Code, "err", err, "cause", shown.Err)
		e.conclude(failure(shown.Code, shown.Message, err))
	case errors.As(err, &crash):
		e.r.log(e.run.Thread, e.run.ID).Error("agent panicked", "err", err, "stack", string(crash.stack))
		e.conclude(failure("agent_panicked", "The agent broke down.", err))
	default:
		e.r.log(e.run.Thread, e.run.ID).Warn("agent failed", "err", err)
		e.conclude(failure("agent_failed", "The agent failed.", err))
	}
}

// panicError is a panic as an error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

func protect(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return fn()
}

// hasEnded tells whether the end of the run is in the log.
func (e *execution) hasEnded() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

func (e *execution) describe(st *thread.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st.Running = !e.hasEnded()
	st.RunID, st.Agent, st.Started = e.run.ID, e.run.Agent, e.run.Accepted
	st.Cursor, st.LastEvent = e.head, e.last
	if !st.Running && e.final != nil && !e.final.lost {
		latest := e.run
		latest.End, latest.Ended, latest.LastSeq = e.final.end, e.last, e.head.Seq
		st.Latest = &latest
		st.Pending = pendingAfter(st.Pending, e.final.end.Outcome, e.pending)
	}
}

// pendingAfter tells which interrupts wait after a run (AG-UI 1.0, section 9): a finished run sets or clears them,
// one that failed leaves them.
func pendingAfter(before []byte, outcome thread.Outcome, own []byte) []byte {
	switch outcome {
	case thread.OutcomeWaiting:
		return own
	case thread.OutcomeFinished, thread.OutcomeStopped:
		return nil
	}
	return before
}
