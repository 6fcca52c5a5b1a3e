package runner

import (
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

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

// execution is one run on this node. Its drive goroutine owns it.
type execution struct {
	intake
	lease thread.Lease  // as of the last renewal; guarded by mu
	head  thread.Cursor // of what is in the log; guarded by mu

	entries []thread.Entry // the producer's copy of everything in the log; drive's own
	ended   chan struct{}  // closed when the end is in the log, or never will be by us
	final   *conclusion    // set before ended is closed
}

func newExecution(r *Runner, lease thread.Lease, run thread.Run, o order) *execution {
	e := &execution{lease: lease, ended: make(chan struct{}), head: thread.Cursor{Run: run.Number}}
	e.open(r, run, o)
	return e
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

// woken is called by the keeper.
func (e *execution) woken() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doubt = true
	e.changed.Broadcast()
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
