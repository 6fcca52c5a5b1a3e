package main_test

import (
	"errors"
	"strings"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// Ports about runs: how they begin, end and are stopped.

func preventConcurrentRuns(o *origin) {
	slow := slowAgent()
	first := o.run("t1", "run-1", slow)
	<-slow.Mark("begun")
	_, err := o.tryRun("t1", "run-2", slow)
	var busy *thread.RunningError
	if !errors.As(err, &busy) || busy.RunID != "run-1" {
		o.Errorf("the second run: %v; want that run-1 is active", err)
	}
	slow.Release("finish")
	expect(o, "events of the first", "RUN_STARTED RUN_FINISHED", typesOf(o.toArray("t1", first)))
	// Row "Thread already running": it is refused before RUN_STARTED, not on the running stream.
	expect(o, "events of the thread", "RUN_STARTED RUN_FINISHED", typesOf(o.connect("t1")))
}

func handleRunFinished(o *origin) {
	events := o.runToArray("t2", "run-finished", mockAgent())
	expect(o, "RUN_FINISHED events", 1, len(ofType(events, "RUN_FINISHED")))
	expect(o, "running", false, o.isRunning("t2"))
	// The origin looked at the TTL of the stream's key: the live log keeps the run, and not for ever; see handleStreamExpiry.
	expect(o, "entries in the live log", len(events)+1, len(o.entries("t2")))
}

// Row "Stop: append {type:RUN_ERROR, error:...}": the origin's ErrorAgent sends such an event too. Without a message it is
// malformed, so the run fails with an error of threadcast that has one (O5).
func handleRunError(o *origin) {
	started := `{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`
	events := o.runToArray("t3", "run-error", customAgent(started, `{"type":"RUN_ERROR","error":"Test error"}`))
	expect(o, "events", "RUN_STARTED RUN_ERROR", typesOf(events))
	if last := events[len(events)-1]; last.Code != "bad_event" || !strings.Contains(last.Message, "message") {
		o.Errorf("the error is %s", last.raw)
	}
	expect(o, "running", false, o.isRunning("t3"))
	events = o.runToArray("t3", "run-error-2", customAgent(started, `{"type":"RUN_ERROR","message":"Test error"}`))
	expect(o, "events", "RUN_STARTED RUN_ERROR", typesOf(events))
	expect(o, "message", "Test error", events[1].Message)
	expect(o, "running", false, o.isRunning("t3"))
}

func handleStop(o *origin) {
	agent := agenttest.New(append(
		emitting(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`),
		agenttest.Mark("begun"), agenttest.WaitFor("never"),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"late"}`)))
	agent.IgnoreCancel = time.Hour // it goes on for as long as the test lets it
	defer agent.Release("never")
	expect(o, "stop of an idle thread", false, o.stop("t7"))
	acc := o.run("t7", "run-stop", agent)
	<-agent.Mark("begun")
	expect(o, "stopped", true, o.stop("t7"))
	expect(o, "running", false, o.isRunning("t7"))
	select {
	case <-agent.Cancelled(): // O3: the origin left it running
	case <-time.After(patience):
		o.Error("the agent was not cancelled")
	}
	before := len(o.entries("t7"))
	agent.Release("never")
	eventually(o, patience, "the agent has returned", func() bool { return o.abandoned() == 0 })
	expect(o, "entries after the agent went on", before, len(o.entries("t7"))) // O4

	events := o.toArray("t7", acc)
	last := events[len(events)-1]
	if o.form.stop == "error" {
		expect(o, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR", typesOf(events))
		expect(o, "error", "stopped: The run was stopped.", last.Code+": "+last.Message)
	} else { // Row "Stop": closers, then RUN_FINISHED cancelled.
		expect(o, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED", typesOf(events))
		expect(o, "outcome", "cancelled", last.Outcome.Type)
	}
	expect(o, "next run", "RUN_FINISHED", lastType(o.runToArray("t7", "run-next", mockAgent())))
	expect(o, "outcome in the database", thread.OutcomeStopped, o.stored("t7")[0].End.Outcome)
}

func handleSequentialRuns(o *origin) {
	first := o.runToArray("t8", "run-seq-1", mockAgent())
	second := o.runToArray("t8", "run-seq-2", mockAgent())
	if len(first) == 0 || len(second) == 0 {
		o.Errorf("%d and %d events", len(first), len(second))
	}
	// Row "connect() drops live events whose messageId was already replayed": both runs write test-msg-1, and all of both
	// is shown (O7).
	all := o.connect("t8")
	expect(o, "events of both", typesOf(first)+" "+typesOf(second), typesOf(all))
	expect(o, "text messages", 2, len(ofType(all, "TEXT_MESSAGE_START")))
	o.legal(all)
}

func trackRunningState(o *origin) {
	expect(o, "running before", false, o.isRunning("state"))
	slow := slowAgent()
	acc := o.run("state", "run1", slow)
	expect(o, "running once it is accepted", true, o.isRunning("state"))
	<-slow.Mark("begun")
	expect(o, "running", true, o.isRunning("state"))
	slow.Release("finish")
	o.toArray("state", acc)
	eventually(o, patience, "it is not running any more", func() bool { return !o.isRunning("state") })
}

// Row "Run without any event stored as []": a run record holds at least RUN_STARTED and a terminal event. An agent that
// ends without one broke off, and the run says so.
func handleEmptyEvents(o *origin) {
	o.runToArray("empty", "run1", customAgent())
	runs := o.stored("empty")
	if len(runs) != 1 {
		o.Fatalf("%d runs are stored", len(runs))
	}
	events := o.eventsOf(runs[0])
	expect(o, "events", "RUN_STARTED RUN_ERROR", typesOf(events))
	expect(o, "code", "stream_truncated", events[1].Code)
}

// Row "parent_run_id = the thread's previous run, always": the chain to the previous run is a column of its own, and
// parentRunId is what the client sent, which is nothing here.
func handleParentChildRuns(o *origin) {
	o.runToArray("family", "run1", customAgent(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`))
	o.runToArray("family", "run2", customAgent(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`))
	var rows []struct{ RunID, ParentRunID, PreviousRunID string }
	err := o.past.rows.Table("agent_runs").Where("thread_id = ?", "family").Order("number").Find(&rows).Error
	if err != nil {
		o.Fatal(err)
	}
	expect(o, "rows", []struct{ RunID, ParentRunID, PreviousRunID string }{{"run1", "", ""}, {"run2", "", "run1"}}, rows)
	for _, e := range o.connect("family") {
		if e.ParentRunID != "" || strings.Contains(string(e.raw), "parentRunId") {
			o.Errorf("a parent is written onto the wire: %s", e.raw)
		}
	}
}

func lastType(events []originEvent) string { return events[len(events)-1].Type }

// entries returns what the live log holds of a thread.
func (o *origin) entries(id thread.ID) []thread.Entry {
	o.Helper()
	entries, err := o.log.Read(o.Context(), id, thread.Cursor{}, 1000)
	if err != nil {
		o.Fatal(err)
	}
	return entries
}
