//go:build integration

package main_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestSilenceIsNoDeath lets an agent be silent for ten leases, within a tool call. No node takes its run away, and nobody calls it
// again (F055). Meanwhile the lock of another run is removed from Redis: that run's agent is cancelled within a renewal, and
// the run ends as lost and is free (F059).
func TestSilenceIsNoDeath(t *testing.T) {
	t.Parallel()
	agents := agenttest.NewServer(t)
	agents.Handle("thinker", append(append(emits(begins, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}`),
		agenttest.WaitFor("found")), emits(`{"type":"TOOL_CALL_END","toolCallId":"c"}`, ends)...))
	agents.Handle("talker", append(emits(begins, opens), agenttest.Repeat(1_000_000, talksOn, 5*time.Millisecond)))
	c := startClusterOn(t, steady, 3, "--lease", clusterLease.String(), "--log-level", "error",
		"--agent", "thinker=agui:"+agents.URL("thinker"), "--agent", "talker=agui:"+agents.URL("talker"), "--agent", "demo=demo")
	thinks, talks := newWitness(c.nodes[1], "thinks", thread.Cursor{}), newWitness(c.nodes[2], "talks", thread.Cursor{})
	for _, w := range []*witness{thinks, talks} {
		if err := w.join(); err != nil {
			t.Fatal(err)
		}
		defer w.drop()
	}
	c.nodes[0].startRun("thinks", runRequest{RunID: "r1", AgentID: "thinker"})
	if err := thinks.until(func() bool { return thinks.events == 2 }); err != nil {
		t.Fatal(err)
	}
	silent := time.After(10 * clusterLease)
	c.loseLock(t, talks, agents)
	if t.Failed() {
		return
	}
	look := time.NewTicker(clusterLease / 2)
	defer look.Stop()
	for lasts := true; lasts; {
		select {
		case <-silent:
			lasts = false
		case <-look.C:
		}
		for i, n := range c.nodes {
			if st := n.thread("thinks").Status; !st.Running || st.RunID != "r1" {
				t.Fatalf("for node %d the silent run stands at %+v", i+1, st)
			}
		}
	}
	agents.Release("found")
	if err := thinks.untilOver(1); err != nil {
		t.Fatal(err)
	}
	c.checkRun("thinks", 1, thinks.runs[1], thread.OutcomeFinished, c.nodes...)
	if n := agents.Invocations(); n != 2 { // once for each run that was begun
		t.Errorf("the agents were called %d times", n)
	}
	c.checkSettled(3)
}

// loseLock removes the lock of a run that goes on.
func (c *cluster) loseLock(t *testing.T, talks *witness, agents *agenttest.Server) {
	t.Helper()
	c.nodes[0].startRun("talks", runRequest{RunID: "r1", AgentID: "talker"})
	if err := talks.until(func() bool { return talks.events > 50 }); err != nil {
		t.Fatal(err)
	}
	client := c.redis.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(context.Background(), "threadcast:lock:{*}talks").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("the locks are %v, %v", keys, err)
	}
	if err := client.Del(context.Background(), keys[0]).Err(); err != nil {
		t.Fatal(err)
	}
	removed := time.Now()
	hungUp(t, agents, "r1", clusterLease/3+time.Second)
	cancelled := time.Since(removed)
	if err := talks.untilOver(1); err != nil {
		t.Fatal(err)
	}
	took := talks.over[1].Sub(removed)
	if took > clusterLease+5*time.Second {
		t.Errorf("the run ended only %s after its lock was removed", took)
	}
	events := talks.runs[1]
	if code(events[len(events)-1]) != "lost" {
		t.Errorf("it ends with %s", events[len(events)-1])
	}
	c.checkRun("talks", 1, events, thread.OutcomeLost, c.nodes...)
	if i := slices.IndexFunc(events[2:], func(e string) bool { return isTerminal([]byte(e)) }); !told(events[2 : 1+i]) {
		t.Errorf("the agent's words are not in order, or some are missing: %.500v", events)
	}
	if err := c.nodes[1].runWhenFree("talks", map[string]any{"runId": "r2", "agentId": "demo", "messages": []any{}}); err != nil {
		t.Error(err)
	}
	if err := talks.untilOver(2); err != nil {
		t.Error(err)
	}
	measured(t, "agent cancelled %s after the lock of its run was removed, run lost after %s (lease %s)",
		cancelled.Round(100*time.Microsecond), took.Round(time.Millisecond), clusterLease)
}

// told tells whether the events are the words of talksOn from the first on.
func told(events []string) bool {
	for i, e := range events {
		if e != fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"%d "}`, i) {
			return false
		}
	}
	return len(events) > 0
}
