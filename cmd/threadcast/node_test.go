//go:build integration

package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// The phoenix package of these two versions differs in what a close means. Both must come back from whatever the server
// and the network do to them, and see every event once.
func TestPhoenixClientsRunResumeAndStop(t *testing.T) {
	for _, version := range []string{"phoenix-1815", "phoenix-1816"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			agents := agenttest.NewServer(t)
			agents.Handle("finite", storySteps(300, 3*time.Millisecond))
			agents.Handle("endless", storySteps(100_000, 10*time.Millisecond))
			n := start(t, "--agent", "finite=agui:"+agents.URL("finite"), "--agent", "endless=agui:"+agents.URL("endless"))
			sc := runScript(t, "phoenix-client.mjs", version, n.url, "t1")

			sc.await("first")
			for _, code := range sc.closes() {
				if code != 1006 { // its own doing: the connection was cut
					t.Errorf("the server closed with code %d", code)
				}
			}
			if cut := len(sc.closes()); cut != 3 {
				t.Errorf("the connection was cut %d times, not 3", cut)
			}
			second := sc.await("second")
			if !strings.Contains(string(second.Stopped), `"stopped":true`) {
				t.Errorf("stop was answered %s", second.Stopped)
			}
			hungUp(t, agents, "second", time.Second)
			n = restartUnder(t, n, sc)
			n.startRun("t1", runRequest{AgentID: "finite", RunID: "last"})
			checkSeen(t, n, sc.await("last"))
		})
	}
}

func storySteps(words int, apart time.Duration) []agenttest.Step {
	return []agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"m-{run}","role":"assistant"}`),
		agenttest.Repeat(words, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"{i} "}`, apart),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_END","messageId":"m-{run}"}`),
		agenttest.Emit(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`),
	}
}

// restartUnder ends a node in an orderly way under a client, and starts it again. The client is told 1012, and comes back.
func restartUnder(t *testing.T, n *node, sc *script) *node {
	t.Helper()
	n.term()
	if f := sc.await("closed"); f.Code != 1012 {
		t.Errorf("on shutdown the client is closed with code %d", f.Code)
	}
	if code := n.wait(patience); code != 0 {
		t.Errorf("the node ended with code %d", code)
	}
	n = n.restart()
	if f := sc.await("joined"); !f.Resumed {
		t.Errorf("after the restart the client did not resume: %+v", f)
	}
	return n
}

// checkSeen compares what a client saw with what the server has.
func checkSeen(t *testing.T, n *node, last fact) {
	t.Helper()
	n.ended("t1", "last")
	var seen []json.RawMessage
	for _, s := range last.Seen {
		seen = append(seen, s.Event)
	}
	same(t, "what the client saw", seen, allEvents(n.record("t1", "", "raw")))
	verify(t, "what the client saw", seen)
	for run, words := range map[string]int{"first": 300, "last": 300} {
		if got := text(t, seen, "m-"+run); got != numbers(words, " ") {
			t.Errorf("the text of %s is %.200q", run, got)
		}
	}
}

// The agent is an unmodified one of AG-UI's own packages, in a process of its own.
func TestRealAgentStreamsThroughAndIsStopped(t *testing.T) {
	t.Parallel()
	agent := runScript(t, "agui-agent.mjs")
	n := start(t, "--agent", "story=agui:"+agent.await("listening").URL)
	s := &stage{T: t, ctx: t.Context(), node: n}
	v := s.watch("t1", raw)
	s.must(v.push("run", runRequest{RunID: "r1", Messages: says("u1", "story")}, nil))
	if f := agent.await("asked"); f.RunID != "r1" || !strings.Contains(f.Accept, "text/event-stream") {
		t.Errorf("the agent was asked %+v", f)
	}
	s.must(v.until(func(v *webtest.Viewer) bool { r := v.Run("r1"); return r != nil && r.Terminal() }))
	if got := text(t, v.Events(), "story-r1"); strings.Count(got, "wörd") != 1000 || !strings.HasSuffix(got, "wörd999 ") {
		t.Errorf("the story is %.200q", got)
	}
	verify(t, "the story", v.Events())
	if end := n.ended("t1", "r1"); end.State != "finished" {
		t.Errorf("the run is %+v", end)
	}

	s.must(v.push("run", runRequest{RunID: "r2", Messages: says("u2", "on and on")}, nil))
	s.must(v.until(func(v *webtest.Viewer) bool { r := v.Run("r2"); return r != nil && len(r.Events) > 50 }))
	began := time.Now()
	if code := n.do(http.MethodPost, threadPath("t1")+"/stop", nil, nil); code != http.StatusOK {
		t.Errorf("stop was answered with %d", code)
	}
	if f := agent.await("closed"); f.RunID != "r2" {
		t.Errorf("closed was the request of %s", f.RunID)
	}
	took := time.Since(began)
	t.Logf("measured: %s: the agent saw its request closed %s after the stop", t.Name(), took)
	if took > time.Second {
		t.Errorf("the agent saw that it is stopped after %s", took)
	}
	if end := n.ended("t1", "r2"); end.State != "stopped" {
		t.Errorf("the run is %+v", end)
	}
}
