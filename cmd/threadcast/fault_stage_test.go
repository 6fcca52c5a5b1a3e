// The files fault_*_test.go hold what nodes go through while Redis or Postgres fails: real binaries on real servers, runs
// that go on meanwhile, and viewers of each run on its own node and on another. Where a network has to fail, a
// [redistest.Link] stands in for it: like a network, and unlike toxiproxy, it lets what was sent during a black hole
// arrive in the end.

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// pace is the time between two events of a steady agent.
const pace = 20 * time.Millisecond

// ordeal is nodes, agents and viewers that something is done to.
type ordeal struct {
	*testing.T
	*cluster
	agents   *agenttest.Server
	watchers []*watcher
	runs     []string // the thread of each run
}

// newOrdeal returns one without nodes. Its agent "steady" speaks until the gate "over THREAD" is released.
func newOrdeal(t *testing.T, flags ...string) *ordeal {
	t.Helper()
	return withStores(t, redistest.Config{}, "", flags...)
}

// withStores is newOrdeal with a Redis of its own kind, and a database; pgtest's if that is empty.
func withStores(t *testing.T, redis redistest.Config, database string, flags ...string) *ordeal {
	t.Helper()
	redistest.Need(t)
	if database == "" {
		database = pgtest.Database(t)
	}
	o := &ordeal{T: t, agents: agenttest.NewServer(t)}
	o.agents.Record = true
	o.agents.Handle("steady", []agenttest.Step{
		agenttest.Emit(begins), agenttest.Emit(opens),
		agenttest.RepeatUntil("over {thread}", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"#{i};"}`, pace),
		agenttest.Emit(closes), agenttest.Emit(ends),
	})
	o.agents.Handle("brief", emits(begins, ends))
	flags = append([]string{
		"--agent", "steady=agui:" + o.agents.URL("steady"), "--agent", "brief=agui:" + o.agents.URL("brief"), "--log-level", "warn",
	}, flags...)
	o.cluster = &cluster{t: t, redis: redistest.Run(t, redis), database: database, flags: flags}
	return o
}

// run starts the run r1 of a thread on a node, with a viewer on each of the others given, and one on that node.
func (o *ordeal) run(thread string, on *node, others ...*node) []*watcher {
	o.Helper()
	all := []*watcher{o.watch(thread, on)}
	for _, n := range others {
		all = append(all, o.watch(thread, n))
	}
	o.start(thread, on)
	for _, w := range all {
		w.await("the run has begun", func() bool { return len(w.events) > 5 })
	}
	return all
}

// start starts the run r1 of a thread, as soon as it is accepted, and returns how long that takes.
func (o *ordeal) start(thread string, on *node) time.Duration {
	o.Helper()
	return o.request(thread, on, runRequest{RunID: "r1", Messages: json.RawMessage("[]")})
}

// next starts another run of a thread, of an agent that says nothing, waits for its end, and returns how long it took until
// it was accepted.
func (o *ordeal) next(thread, run string, on *node) time.Duration {
	o.Helper()
	took := o.request(thread, on, runRequest{RunID: run, AgentID: "brief", Messages: json.RawMessage("[]")})
	on.ended(thread, run)
	return took
}

func (o *ordeal) request(thread string, on *node, req runRequest) time.Duration {
	o.Helper()
	o.runs = append(o.runs, thread)
	began := time.Now()
	eventually(o, patience, "a run on "+thread+" is accepted", func() bool {
		status, data, err := on.request(http.MethodPost, threadPath(thread)+"/runs", req)
		if err != nil || status != http.StatusAccepted && status != http.StatusServiceUnavailable {
			o.Fatalf("a run on %s was answered %d %s %v", thread, status, data, err)
		}
		return status == http.StatusAccepted
	})
	return time.Since(began)
}

// finish lets the runs of these threads end, and waits until their viewers have the end.
func (o *ordeal) finish(threads ...string) {
	o.Helper()
	for _, id := range threads {
		o.agents.Release("over " + id)
	}
	for _, w := range o.watchers {
		if slices.Contains(threads, w.thread) {
			w.ended()
		}
	}
}

// compare compares a stored run with what its agent emitted, if that is how it ended, or else with what its viewers saw.
func (o *ordeal) compare(run thread.Run, state thread.Outcome) error {
	if run.End.Outcome != state {
		return fmt.Errorf("it is %s (%s), not %s", run.End.Outcome, run.End.Code, state)
	}
	var got [][]byte
	for _, e := range run.Events {
		got = append(got, e.Data)
	}
	if state == thread.OutcomeFinished {
		return saysTheSame(o.agents.Emitted(string(run.Thread), "r1"), got)
	}
	for _, w := range o.watchers {
		if w.thread != string(run.Thread) {
			continue
		}
		w.ended()
		w.mu.Lock()
		err := saysTheSame(w.events, got)
		w.mu.Unlock()
		if err != nil {
			return fmt.Errorf("compared with what was seen on %s: %w", w.n.addr, err)
		}
	}
	return nil
}

// stored waits until the runs r1 of these threads are in the history, and compares them: see compare. Then no
// run may be left unfinished there, of whatever thread, and no agent may have been called more than once for one.
func (o *ordeal) stored(state thread.Outcome, threads ...string) {
	o.Helper()
	past := o.history()
	for _, id := range threads {
		var run thread.Run
		eventually(o, patience, "the run of "+id+" is in the history", func() bool {
			var err error
			run, err = past.NextRun(o.Context(), thread.ID(id), 0)
			return err == nil
		})
		if err := o.compare(run, state); err != nil {
			o.Errorf("the stored run of %s: %v", id, err)
		}
		want := 0
		for _, of := range o.runs {
			if of == id {
				want++
			}
		}
		if runs, err := past.Runs(o.Context(), thread.ID(id), 0, 10); err != nil || len(runs) != want {
			o.Errorf("%s has %d runs, not %d, %v", id, len(runs), want, err)
		}
	}
	eventually(o, patience, "no run is unfinished in the history", func() bool {
		left, err := past.Unfinished(o.Context(), "", 0, 10)
		return err == nil && len(left) == 0
	})
	if n := o.agents.Invocations(); n != len(o.runs) {
		o.Errorf("agents were called %d times for %d runs", n, len(o.runs))
	}
}

// history opens the database beside the nodes.
func (o *ordeal) history() *history.History {
	o.Helper()
	pool, err := postgres.Open(o.Context(), o.database, postgres.Options{})
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = pool.Close() })
	past, err := history.NewPostgres(o.Context(), pool, history.Options{})
	if err != nil {
		o.Fatal(err)
	}
	return past
}
