package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// originFaults are the faults of the origin, and the test that keeps each from coming back: a function, and what its subtest
// is called if it is one of many.
var originFaults = []struct {
	id, fault, file, test, subtest string
}{
	{"O1", "the end of a run frees a lock that is another's by then",
		"persistence/logtest/lease.go", "leaseChecks", "releasing twice, or what another holds, changes nothing"},
	{"O2", "the lock expires under a run that takes long",
		"runner/lease_test.go", "TestKeeper", "keeps the lease of an agent that is silent for a hundred times as long"},
	{"O3", "a stop does not reach the agent",
		"runner/stop_test.go", "TestStop", "the agent is cancelled, the end is durable, and the answer says where it is"},
	{"O4", "what the agent says after the stop is appended",
		"runner/stop_test.go", "TestStopThenRun", "an agent that ignores it is abandoned, and nothing of it follows its end"},
	{"O5", "RUN_ERROR carries error where message is wanted",
		"cmd/threadcast/origin_runs_test.go", "handleRunError", ""},
	{"O6", "the only live copy of a run is trimmed",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O6 a long run is kept whole"},
	{"O7", "live events go missing whose message id was replayed",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O7 O16 O17 a viewer sees each event of each run once"},
	{"O8", "a connection ends after a while of silence",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaultsOfSilence", ""},
	{"O9", "a connection ends in good order when the log fails",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaultsOfFailingLogs", ""},
	{"O10", "each viewer reads the log by itself",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaultsOfManyViewers", ""},
	{"O11", "events are shown before they are in the log, in an order that depends on the agent",
		"runner/order_test.go", "TestOrder", "sixteen runs at once are recorded byte for byte"},
	{"O12", "a run id that is used elsewhere fails after the agent has run",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O12 a run id belongs to its thread and is judged before the agent runs"},
	{"O13", "runs are ordered by the clock",
		"persistence/historytest/order.go", "testOrder", "100 runs of one millisecond keep their order"},
	{"O14", "a flag in the database says for ever that a run is active whose node died",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O14 a run is not active when its owner is gone"},
	{"O15", "each run begins by reading all that was ever said",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O15 a run begins without reading the events of others"},
	{"O16", "a connection ends with the first run",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O7 O16 O17 a viewer sees each event of each run once"},
	{"O17", "all of the input is streamed again by every run",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O7 O16 O17 a viewer sees each event of each run once"},
	{"O18", "a run whose agent fails is neither stored nor ended",
		"runner/agent_test.go", "TestAgentEnds", "with an error that is nobody's business"},
	{"O19", "an agent that is silent loses what is live of its run",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaultsOfSilence", ""},
	{"O20", "a crash between two commands leaves a lock without a run",
		"cmd/threadcast/origin_faults_test.go", "TestOriginFaults", "O20 a lease without a run does not keep the thread"},
}

func TestEveryOriginFaultHasATest(t *testing.T) {
	for i, f := range originFaults {
		if f.id != fmt.Sprint("O", i+1) {
			t.Errorf("%s is listed where O%d belongs", f.id, i+1)
		}
		source, err := os.ReadFile("../../" + f.file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), f.test) || !strings.Contains(string(source), `"`+f.subtest) {
			t.Errorf("%s (%s): %s has no test %s %q", f.id, f.fault, f.file, f.test, f.subtest)
		}
	}
	if len(originFaults) != 20 {
		t.Errorf("%d faults are listed; the origin has 20", len(originFaults))
	}
}

// TestOriginFaults runs on every live log and database.
func TestOriginFaults(t *testing.T) {
	for name, test := range map[string]func(o *origin){
		"O6 a long run is kept whole":                                            longRunIsWhole,
		"O7 O16 O17 a viewer sees each event of each run once":                   eachEventOnce,
		"O12 a run id belongs to its thread and is judged before the agent runs": runIDBelongsToThread,
		"O14 a run is not active when its owner is gone":                         notActiveWithoutOwner,
		"O15 a run begins without reading the events of others":                  beginsWithoutReading,
		"O20 a lease without a run does not keep the thread":                     leaseWithoutRun,
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStack(t, func(t *testing.T, open func(runner.Agent, runner.Config) *stack) {
				test(newOrigin(t, originForms[0], open))
			})
		})
	}
}

func longRunIsWhole(o *origin) {
	const n = 12_000 // the origin's limit was about 10,000
	slow := agenttest.New(slices.Concat(
		emitting(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		[]agenttest.Step{agenttest.Repeat(n, `{"type":"CUSTOM","name":"n","value":{i}}`, 0), agenttest.WaitFor("finish")},
		emitting(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`)))
	acc := o.run("long", "r1", slow)
	eventually(o, patience, "all is in the live log", func() bool {
		head, err := o.log.Head(o.Context(), "long")
		return err == nil && head.Seq == n+1
	})
	seen := 0
	o.connectWith(o.next().hub, "long", hub.Options{After: acc.Cursor, Replay: hub.Raw}, func(b hub.Batch) bool {
		for _, e := range b.Events {
			if want := fmt.Sprintf(`{"type":"CUSTOM","name":"n","value":%d}`, seen-1); seen > 0 && seen <= n && string(e) != want {
				o.Errorf("event %d is %s", seen, e)
			}
			seen++
		}
		if b.Kind == hub.CaughtUp {
			slow.Release("finish")
		}
		return seen == n+2
	})
}

func eachEventOnce(o *origin) {
	agent := customAgent(
		`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"from {run}"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"of {run}","role":"tool"}`,
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`)
	call := `{"id":"a1","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	input := []string{`{"id":"u1","role":"user","content":"one"}`, call, `{"id":"u2","role":"user","content":"two"}`}
	var lines []string
	o.runToArray("viewed", "r1", agent, input[:2]...)
	o.connectWith(o.next().hub, "viewed", hub.Options{}, func(b hub.Batch) bool {
		for _, raw := range b.Events {
			switch e := parseOrigin(o, raw); e.Type {
			case "RUN_STARTED":
				lines = append(lines, fmt.Sprintf("%s begins with %d messages", b.RunID, len(e.Input.Messages)))
			case "TEXT_MESSAGE_CONTENT", "TOOL_CALL_RESULT":
				lines = append(lines, e.Delta+e.Content)
			}
		}
		if b.Kind == hub.CaughtUp {
			o.runToArray("viewed", "r2", agent, input...) // while it is watched
			o.runToArray("viewed", "r3", agent, input...)
		}
		return len(lines) == 9
	})
	expect(o, "what the viewer saw", []string{
		"r1 begins with 2 messages", "from r1", "of r1",
		"r2 begins with 1 messages", "from r2", "of r2",
		"r3 begins with 0 messages", "from r3", "of r3",
	}, lines)
}

func runIDBelongsToThread(o *origin) {
	agent := agenttest.New(emitting(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`))
	first := o.run("a", "same", agent)
	expect(o, "events on another thread", "RUN_STARTED RUN_FINISHED", typesOf(o.runToArray("b", "same", agent)))
	o.saved("a", "same")
	again := o.run("a", "same", agent)
	expect(o, "answer to the same request", first, again)
	expect(o, "runs of the agent", 2, agent.Invocations())
	expect(o, "runs of the thread", 1, len(o.stored("a")))
}

// abandon leaves a thread as a node leaves it that dies: with a lease that expires, and a run if it came that far.
func (o *origin) abandon(id thread.ID, accepted bool) {
	o.Helper()
	lease, err := o.log.Acquire(o.Context(), thread.Claim{Thread: id, RunID: "left", Owner: "gone"}, 50*time.Millisecond)
	if err != nil {
		o.Fatal(err)
	}
	if accepted {
		_, err := o.past.StartRun(o.Context(), thread.Run{
			Thread: id, ID: "left", Agent: "agent", Owner: "gone", Token: lease.Token, Accepted: time.Now(),
			Input: fmt.Appendf(nil, `{"threadId":%q,"runId":"left","messages":[]}`, id),
		})
		if err != nil {
			o.Fatal(err)
		}
	}
	eventually(o, patience, "the lease expires", func() bool {
		_, err := o.log.Holder(o.Context(), id)
		return errors.Is(err, thread.ErrNotFound)
	})
}

func notActiveWithoutOwner(o *origin) {
	o.abandon("left", true)
	var flag int
	if err := o.past.rows.Table("run_state").Where("thread_id = ?", "left").Pluck("is_running", &flag).Error; err != nil {
		o.Fatal(err)
	}
	expect(o, "flag in the database", 1, flag)
	expect(o, "running", false, o.isRunning("left"))
	if n, err := o.runner.Reclaim(o.Context()); err != nil || n != 1 {
		o.Errorf("reclaimed %d: %v", n, err)
	}
	expect(o, "events", "RUN_STARTED RUN_ERROR", typesOf(o.connect("left")))
}

func leaseWithoutRun(o *origin) {
	o.abandon("free", false)
	expect(o, "running", false, o.isRunning("free"))
	expect(o, "next run", "RUN_FINISHED", lastType(o.runToArray("free", "r1", mockAgent())))
	o.abandon("swept", false)
	if _, err := o.runner.Reclaim(o.Context()); err != nil {
		o.Error(err)
	}
	left, err := o.log.Abandoned(o.Context(), 10)
	if err != nil || len(left) > 0 {
		o.Errorf("%d leases are left: %v", len(left), err)
	}
}

func beginsWithoutReading(o *origin) {
	message := `{"id":"u1","role":"user","content":"Hello"}`
	o.runToArray("damaged", "r1", mockAgent(), message)
	err := o.past.rows.Exec(`UPDATE agent_runs SET events = 'not JSON at all' WHERE thread_id = 'damaged'`).Error
	if err != nil {
		o.Fatal(err)
	}
	if _, err := o.past.NextRun(o.Context(), "damaged", 0); !errors.Is(err, thread.ErrCorrupt) {
		o.Fatalf("the events can still be read: %v", err)
	}
	events := o.runToArray("damaged", "r2", mockAgent(), message)
	expect(o, "last event", "RUN_FINISHED", lastType(events))
	expect(o, "messages that are new", 0, len(events[0].Input.Messages))
}

// Silence is neither the end of a connection nor that of what is live, as long as the operator allows it: an hour of it
// passes.
func TestOriginFaultsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := slowAgent()
		past := newDatabase(t, connect(t, "file::memory:?_txlock=immediate"))
		s := newStack(t, memlog.New(), past, agent, runner.Config{MaxSilence: 2 * time.Hour})
		acc, err := s.runner.Run(t.Context(), thread.Request{Thread: "t", RunID: "r1", Input: func(thread.RunID) ([]byte, error) {
			return []byte(`{"threadId":"t","runId":"r1","messages":[]}`), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		<-agent.Mark("begun")
		ctx, cancel := context.WithCancel(t.Context())
		var viewer sync.WaitGroup
		seen := 0
		viewer.Go(func() {
			err := s.hub.Connect(ctx, "t", hub.Options{After: acc.Cursor}, func(b hub.Batch) error {
				if seen += len(b.Events); seen == 2 {
					return errDone
				}
				return nil
			})
			if !errors.Is(err, errDone) {
				t.Errorf("the connection ended after %d events: %v", seen, err)
			}
		})
		time.AfterFunc(time.Hour, func() {
			if running, err := s.runner.IsRunning(ctx, "t"); err != nil || !running {
				t.Errorf("after an hour of silence it is running: %v, %v", running, err)
			}
			if entries, err := s.log.Read(ctx, "t", thread.Cursor{}, 10); err != nil || len(entries) != 1 {
				t.Errorf("after an hour of silence the live log has %d entries: %v", len(entries), err)
			}
			agent.Release("finish")
		})
		viewer.Wait()
		cancel()
		synctest.Wait()
	})
}

// breaking is a log whose tails fail once it is broken.
type breaking struct {
	logtest.Log
	broken chan struct{}
}

func (l *breaking) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-l.broken:
			cancel(thread.ErrUnavailable)
		case <-ctx.Done():
		}
	}()
	return l.Log.Tail(ctx, id, after, fn)
}

func TestOriginFaultsOfFailingLogs(t *testing.T) {
	log := &breaking{Log: memlog.New(), broken: make(chan struct{})}
	past := newDatabase(t, connect(t, "file::memory:?_txlock=immediate"))
	s := newStack(t, log, past, mockAgent(), runner.Config{})
	err := s.hub.Connect(t.Context(), "t", hub.Options{}, func(b hub.Batch) error {
		if b.Kind == hub.CaughtUp {
			close(log.broken)
		}
		return nil
	})
	if !errors.Is(err, thread.ErrUnavailable) {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestOriginFaultsOfManyViewers(t *testing.T) {
	const viewers = 50
	log := logtest.Faulty(memlog.New()) // which counts
	past := newDatabase(t, connect(t, "file::memory:?_txlock=immediate"))
	s := newStack(t, log, past, mockAgent(), runner.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var caughtUp atomic.Int64
	for range viewers {
		all.Go(func() {
			_ = s.hub.Connect(ctx, "t", hub.Options{}, func(b hub.Batch) error {
				if b.Kind == hub.CaughtUp && caughtUp.Add(1) == viewers {
					cancel()
				}
				return nil
			})
		})
	}
	all.Wait()
	if n := log.Calls(logtest.Tail); n != 1 || caughtUp.Load() != viewers {
		t.Errorf("%d viewers read with %d tails", caughtUp.Load(), n)
	}
}
