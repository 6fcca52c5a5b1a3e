package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/runner/agui"
)

// The tests of the runner that threadcast grew from, each under its title there, on every live log and database, in two
// forms. Where AG-UI 1.0 leaves no room for what a test expected, its port says what holds instead and which row of
// "From the first TypeScript runner to 1.0" (AG-UI 1.0 document, section 18) says so.
var originPorts = []struct {
	title string
	port  func(o *origin)
}{
	{"should prevent concurrent runs on same thread", preventConcurrentRuns},
	{"should handle RUN_FINISHED event correctly", handleRunFinished},
	{"should handle RUN_ERROR event correctly", handleRunError},
	{"should allow late readers to catch up during retention period", allowLateReaders},
	{"should handle connect() with no active runs", connectWithNoActiveRuns},
	{"should handle connect() during active run", connectDuringActiveRun},
	{"should handle stop() correctly", handleStop},
	{"should handle multiple sequential runs on same thread", handleSequentialRuns},
	{"should handle input messages correctly", handleInputMessages},
	{"should persist events across runner instances", persistAcrossInstances},
	{"should handle concurrent connections", handleConcurrentConnections},
	{"should store compacted events in the database", storeCompactedEvents},
	{"should not store duplicate message IDs across multiple runs", storeNoDuplicateMessageIDs},
	{"should handle all message types (user, assistant, tool, system, developer)", handleAllMessageTypes},
	{"should handle tool calls correctly", handleToolCalls},
	{"should track running state correctly", trackRunningState},
	{"should handle empty events arrays correctly", handleEmptyEvents},
	{"should handle parent-child run relationships", handleParentChildRuns},
	{"should handle database initialization correctly", handleDatabaseInitialization},
	{"should handle Redis stream expiry correctly", handleStreamExpiry},
}

// originForm is one of the forms in which a port holds.
type originForm struct {
	name   string
	events bool // input messages are shown as events: the join's "input":"events"
	stop   runner.StopTerminal
}

var originForms = []originForm{
	{name: "in the 1.0 form"},
	{name: "in the old form", events: true, stop: runner.StopError},
}

func TestOrigin(t *testing.T) {
	for _, form := range originForms {
		t.Run(form.name, func(t *testing.T) {
			onEveryStack(t, func(t *testing.T, open func(runner.Agent, runner.Config) *stack) {
				o := newOrigin(t, form, open)
				for _, port := range originPorts { // each on threads of its own
					t.Run(port.title, func(t *testing.T) { port.port(o.during(t)) })
				}
			})
		})
	}
}

// TestEveryOriginTestHasAPort compares the ports with the titles of the origin's tests.
func TestEveryOriginTestHasAPort(t *testing.T) {
	data, err := os.ReadFile("testdata/origin/titles.txt")
	if err != nil {
		t.Fatal(err)
	}
	titles := strings.Split(strings.TrimSpace(string(data)), "\n")
	var ported []string
	for _, p := range originPorts {
		ported = append(ported, p.title)
	}
	if diff := cmp.Diff(titles, ported); diff != "" {
		t.Errorf("ports (-origin +here):\n%s", diff)
	}
	if len(titles) != 20 {
		t.Errorf("the origin has 20 tests, and %d titles are listed", len(titles))
	}
}

// origin is the facade that the ports drive: the four verbs of the origin's runner, on ours.
type origin struct {
	*testing.T
	*stack
	form originForm
	cast *originCast
}

// originCast is the agents by the run that they play.
type originCast struct {
	mu     sync.Mutex
	agents map[thread.RunID]runner.Agent
}

func (c *originCast) give(run thread.RunID, agent runner.Agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[run] = agent
}

// play lets the agent that run was given for it play the run.
func (c *originCast) play(ctx context.Context, in runner.Input, emit func([]byte) error) error {
	c.mu.Lock()
	agent := c.agents[in.RunID]
	c.mu.Unlock()
	return agent.Run(ctx, in, emit)
}

// newOrigin returns the facade on what open opens. Where that is several nodes, each verb goes to the next.
func newOrigin(t *testing.T, form originForm, open func(runner.Agent, runner.Config) *stack) *origin {
	o := &origin{T: t, form: form, cast: &originCast{agents: map[thread.RunID]runner.Agent{}}}
	o.stack = open(agenttest.Func(o.cast.play), o.config())
	return o
}

// during returns the same facade for another test.
func (o *origin) during(t *testing.T) *origin {
	return &origin{T: t, stack: o.stack, form: o.form, cast: o.cast}
}

func (o *origin) config() runner.Config {
	return runner.Config{StopTerminal: o.form.stop, Retention: time.Minute, StopGrace: 100 * time.Millisecond}
}

// originEvent is what ports look at.
type originEvent struct {
	Type, MessageID, Role, Delta        string
	ToolCallID, ToolCallName, Content   string
	Code, Message                       string
	ParentMessageID, RunID, ParentRunID string
	Input                               *struct{ Messages []json.RawMessage }
	Outcome                             *struct{ Type string }
	raw                                 []byte
}

func parseOrigin(t testing.TB, raw []byte) originEvent {
	t.Helper()
	e := originEvent{raw: raw}
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return e
}

func (e originEvent) terminal() bool { return e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR" }

// run is the verb: it asks for a run, which must be accepted, and returns where its events follow.
func (o *origin) run(id thread.ID, run thread.RunID, agent runner.Agent, messages ...string) thread.Accepted {
	o.Helper()
	acc, err := o.tryRun(id, run, agent, messages...)
	if err != nil {
		o.Fatalf("run %s: %v", run, err)
	}
	return acc
}

func (o *origin) tryRun(id thread.ID, run thread.RunID, agent runner.Agent, messages ...string) (thread.Accepted, error) {
	o.cast.give(run, agent)
	return o.next().runner.Run(o.Context(), thread.Request{Thread: id, RunID: run, Input: func(run thread.RunID) ([]byte, error) {
		return fmt.Appendf(nil, `{"threadId":%q,"runId":%q,"messages":[%s]}`, id, run, strings.Join(messages, ",")), nil
	}})
}

// errDone ends a connection that has seen what it was for.
var errDone = errors.New("done")

// connectWith reads a thread until done says that it has what it wants.
func (o *origin) connectWith(h *hub.Hub, id thread.ID, opts hub.Options, done func(hub.Batch) bool) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), patience)
	defer cancel()
	err := h.Connect(ctx, id, opts, func(b hub.Batch) error {
		if done(b) {
			return errDone
		}
		return nil
	})
	if !errors.Is(err, errDone) {
		o.Errorf("connection to thread %s: %v", id, err)
	}
}

// toArray returns all events of a run, as the observable that run returned in the origin: without input messages.
func (o *origin) toArray(id thread.ID, acc thread.Accepted) []originEvent {
	o.Helper()
	var events []originEvent
	o.connectWith(o.next().hub, id, hub.Options{After: acc.Cursor, Replay: hub.Raw}, func(b hub.Batch) bool {
		for _, e := range b.Events {
			events = append(events, parseOrigin(o, e))
		}
		return ended(events)
	})
	return events
}

// runToArray asks for a run and returns all its events. When it returns, the run is saved.
func (o *origin) runToArray(id thread.ID, run thread.RunID, agent runner.Agent, messages ...string) []originEvent {
	o.Helper()
	acc := o.run(id, run, agent, messages...)
	events := o.toArray(id, acc)
	o.saved(id, run)
	return events
}

// saved waits until a run is in the database with its end.
func (o *origin) saved(id thread.ID, run thread.RunID) {
	o.Helper()
	eventually(o, patience, "run "+string(run)+" is saved", func() bool {
		found, err := o.past.FindRun(o.Context(), id, run)
		return err == nil && !found.Ended.IsZero()
	})
}

// connect is the verb: what was there, and then the run that is active, to its end. A connection of ours goes on to the
// next run; what the origin's ended at is where this one is left.
func (o *origin) connect(id thread.ID) []originEvent { o.Helper(); return o.connectTo(o.next(), id) }

func (o *origin) connectTo(s *stack, id thread.ID) []originEvent {
	o.Helper()
	var events []originEvent
	var last, awaited thread.RunID
	caughtUp := false
	o.connectWith(s.hub, id, hub.Options{}, func(b hub.Batch) bool {
		for _, raw := range b.Events {
			for _, e := range o.shown(raw) {
				events = append(events, parseOrigin(o, e))
			}
			last = b.RunID
		}
		if b.Kind == hub.CaughtUp {
			st, err := s.runner.Status(o.Context(), id)
			if err != nil {
				o.Error(err)
			}
			caughtUp = true
			if st.Running || b.To.Before(st.Cursor) {
				awaited = st.RunID
			}
		}
		return caughtUp && (awaited == "" || last == awaited && ended(events))
	})
	return events
}

// shown is an event in the form that the connection asked for, as package web makes it.
func (o *origin) shown(raw []byte) [][]byte {
	if o.form.events {
		return agui.ProjectInput(raw)
	}
	return [][]byte{raw}
}

// isRunning is the verb.
func (o *origin) isRunning(id thread.ID) bool {
	o.Helper()
	running, err := o.next().runner.IsRunning(o.Context(), id)
	if err != nil {
		o.Fatal(err)
	}
	return running
}

// stop is the verb.
func (o *origin) stop(id thread.ID) bool {
	o.Helper()
	st, err := o.next().runner.Stop(o.Context(), id, "", "user")
	if err != nil {
		o.Fatal(err)
	}
	return st.Stopped
}

// stored returns the runs of a thread as the database has them, in order.
func (o *origin) stored(id thread.ID) []thread.Run {
	o.Helper()
	var runs []thread.Run
	for after := uint64(0); ; after = runs[len(runs)-1].Number {
		run, err := o.past.NextRun(o.Context(), id, after)
		if errors.Is(err, thread.ErrNotFound) {
			return runs
		}
		if err != nil {
			o.Fatal(err)
		}
		runs = append(runs, run)
	}
}

// eventsOf are the events of a stored run, in the form of the test.
func (o *origin) eventsOf(run thread.Run) []originEvent {
	o.Helper()
	var events []originEvent
	for _, e := range run.Events {
		for _, raw := range o.shown(e.Data) {
			events = append(events, parseOrigin(o, raw))
		}
	}
	return events
}

// input returns the messages with which runs began, in either form: the text and the results that came as events, and
// what RUN_STARTED.input still holds.
func (o *origin) input(events []originEvent, role string) int {
	o.Helper()
	n := 0
	for _, e := range events {
		switch {
		case e.Type == "TEXT_MESSAGE_START" && e.Role == role, e.Type == "TOOL_CALL_RESULT" && e.Role == role:
			n++
		case e.Type == "RUN_STARTED" && e.Input != nil:
			if o.form.events && len(e.Input.Messages) > 0 {
				o.Errorf("left in the input: %s", e.raw)
			}
			for _, m := range e.Input.Messages {
				if parseOrigin(o, m).Role == role {
					n++
				}
			}
		}
	}
	return n
}

// legal checks that what a connection returned is a legal stream, whatever the agent did (row "The record may open with
// those events").
func (o *origin) legal(events []originEvent) {
	o.Helper()
	var v agui.Verifier
	for i, e := range events {
		if err := v.Verify(e.raw); err != nil {
			o.Errorf("event %d: %v", i, err)
		}
	}
}

func ended(events []originEvent) bool { return len(events) > 0 && events[len(events)-1].terminal() }

func ofType(events []originEvent, name string) []originEvent {
	var found []originEvent
	for _, e := range events {
		if e.Type == name {
			found = append(found, e)
		}
	}
	return found
}

func typesOf(events []originEvent) string {
	var names []string
	for _, e := range events {
		names = append(names, e.Type)
	}
	return strings.Join(names, " ")
}

// check fails the test if what is got is not what is wanted.
func expect[V any](o *origin, what string, want, got V) {
	o.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		o.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// The origin's agents.

// mockAgent is MockAgent.
func mockAgent() runner.Agent {
	return agenttest.New(emitting(
		`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"test-msg-1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"test-msg-1","delta":"Hello from agent"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"test-msg-1"}`,
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`,
	))
}

// customAgent is CustomEventAgent, which need not begin with RUN_STARTED.
func customAgent(events ...string) runner.Agent { return agenttest.New(emitting(events...)) }

// slowAgent begins its run, and finishes it when it is released by "finish". Its mark "begun" says that it has begun.
func slowAgent() *agenttest.Agent {
	return agenttest.New(slices.Concat(
		emitting(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		[]agenttest.Step{agenttest.Mark("begun"), agenttest.WaitFor("finish")},
		emitting(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`),
	))
}

func emitting(events ...string) []agenttest.Step {
	var steps []agenttest.Step
	for _, e := range events {
		steps = append(steps, agenttest.Emit(e))
	}
	return steps
}
