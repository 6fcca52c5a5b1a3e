//go:build integration

package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// An agent plays the reference's vectors on three nodes, each on a thread of its own and each verb on another node. What
// viewers saw, and what the nodes have of it afterwards, raw and compacted, the reference client takes for what the nodes
// say that it is. Vectors that begin with what was there before are left to the test above: no agent can play that.
func TestReferenceClientAgreesOnVectorsFromNodes(t *testing.T) {
	t.Parallel()
	s := nodesFor(t, "vectors")
	relayed := map[string]json.RawMessage{} // the messages where they are others for who carries events, and why is listed
	for _, d := range readVectors[struct {
		Case    string
		Instead struct{ Messages json.RawMessage }
	}](t, "differences.json") {
		relayed[d.Case] = d.Instead.Messages
	}
	played := 0
	for _, file := range applyFiles {
		for _, v := range readVectors[applyVector](t, file) {
			if v.InitialMessages != nil || v.InitialState != nil {
				continue
			}
			if instead := relayed[file+" "+v.Name]; instead != nil {
				v.Messages = instead
			}
			s.playVector(v)
			played++
		}
	}
	if played != 88 {
		t.Errorf("%d vectors were played", played)
	}
	c := newCaptures(t)
	s.capture(c)
	c.judge(t, nil)
}

// playVector plays a vector on a thread that is named as it is. Its events have to pass, and the thread to amount to what
// the vector says.
func (s *stage) playVector(v applyVector) {
	s.Helper()
	var runs []string
	var scripts [][]agenttest.Step
	for _, data := range v.Events {
		if e := parse(s, data); e.Type == "RUN_STARTED" {
			runs, scripts = append(runs, e.RunID), append(scripts, nil)
		}
		last := len(scripts) - 1
		scripts[last] = append(scripts[last], agenttest.Emit(onThread(data)))
	}
	s.agent.Handle("scripted", scripts...)
	seen := s.watch(v.Name, raw)
	defer seen.drop()
	for _, run := range runs {
		s.run(v.Name, run)
		s.must(seen.until(webtest.Ended(run)))
		s.next().ended(v.Name, run)
	}
	events := seen.Events()
	for i, data := range v.Events {
		sent := strings.ReplaceAll(onThread(data), "{thread}", v.Name)
		if len(events) != len(v.Events) || !passes([]byte(sent), events[i]) {
			s.Fatalf("%s: event %d of %d is not among these %d:\n%s", v.Name, i, len(v.Events), len(events), events)
		}
	}
	now := s.answers(v.Name).made
	if !sameJSON(s, now.Messages, v.Messages) || !sameJSON(s, now.State, v.State) {
		s.Errorf("%s amounts to\n%s\n%s\ninstead of\n%s\n%s", v.Name, now.Messages, now.State, v.Messages, v.State)
	}
}

// onThread is an event of thread-1 as one of the thread that the agent is asked to play on.
func onThread(event json.RawMessage) string {
	return strings.ReplaceAll(string(event), `"thread-1"`, `"{thread}"`)
}
