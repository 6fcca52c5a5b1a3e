package main_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestSecondSignalEndsANodeAtOnce ends a node that waits for news, with an agent that is silent and viewers who watch: the
// second signal ends it in less than two seconds, whatever its grace period (F058).
func TestSecondSignalEndsANodeAtOnce(t *testing.T) {
	t.Parallel()
	agents := agenttest.NewServer(t)
	agents.Handle("silent", append(emits(begins, opens, talks), agenttest.WaitFor("never")))
	c := startClusterOn(t, steady, 2, "--agent", "silent=agui:"+agents.URL("silent"), "--log-level", "warn", "--grace", "1m")
	n, other := c.nodes[0], c.nodes[1]
	here, there, idle := newWitness(n, "quiet", thread.Cursor{}), newWitness(other, "quiet", thread.Cursor{}), newWitness(n, "idle", thread.Cursor{})
	for _, w := range []*witness{here, there, idle} {
		if err := w.join(); err != nil {
			t.Fatal(err)
		}
		defer w.drop()
	}
	n.startRun("quiet", runRequest{RunID: "r1"})
	for _, w := range []*witness{here, there} {
		if err := w.until(func() bool { return w.events == 3 }); err != nil {
			t.Fatal(err)
		}
	}
	n.term()
	if code, err := here.closed(); err != nil || code != 1012 {
		t.Errorf("the viewer's socket was closed with %d, %v", code, err)
	}
	began := time.Now()
	n.signal(syscall.SIGTERM)
	code := n.wait(patience)
	took := time.Since(began)
	if code != 0 || took > 2*time.Second {
		t.Errorf("after the second signal the node ended after %s with code %d", took, code)
	}
	hungUp(t, agents, "r1", time.Second)
	if err := there.untilOver(1); err != nil {
		t.Fatal(err)
	}
	c.checkRun("quiet", 1, there.runs[1], thread.OutcomeShutDown, other)
	measured(t, "a node with a silent agent was gone %s after the second signal", took.Round(time.Millisecond))
}
