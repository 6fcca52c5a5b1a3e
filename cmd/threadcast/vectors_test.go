package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/losslesstest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// nodesFor returns the three nodes of a cluster as a stage, whose agent "scripted" plays these runs.
func nodesFor(t *testing.T, id string, runs ...[]agenttest.Step) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, id: id, agent: agenttest.NewServer(t)}
	s.agent.Handle("scripted", runs...)
	cluster := deployments[len(deployments)-1]
	s.open(cluster, cluster.sharedRedis(t), []string{"--log-level", "warn"})
	return s
}

// served is a stage where vectors are played.
type served struct{ *stage }

// during lets a test use the stage. What it returns ends that.
func (p served) during(t *testing.T) func() {
	before := p.T
	p.T = t
	return func() { p.T = before }
}

func (p served) record(t *testing.T, id thread.ID, run thread.RunID) [][]byte {
	t.Helper()
	defer p.during(t)()
	v := p.watch(string(id), raw)
	p.run(string(id), string(run))
	p.must(v.until(webtest.Ended(string(run))))
	p.next().ended(string(id), string(run))
	v.drop()
	return asBytes(v.Run(string(run)).Events)
}

func (p served) replay(t *testing.T, id thread.ID) [][]byte {
	t.Helper()
	defer p.during(t)()
	v := p.watch(string(id), nil)
	p.must(v.until(webtest.CaughtUp))
	v.drop()
	return asBytes(v.Events())
}

func (p served) remove(t *testing.T, id thread.ID) {
	t.Helper()
	defer p.during(t)()
	if code := p.next().do(http.MethodDelete, threadPath(string(id)), nil, nil); code != http.StatusNoContent {
		t.Fatalf("deleting is answered with %d", code)
	}
}

func asBytes(events []json.RawMessage) (list [][]byte) {
	for _, e := range events {
		list = append(list, e)
	}
	return list
}

// The vectors of enforcement pass the program too, in a cluster: each verb on another node.
func TestVectorsOfEnforcementPassNodes(t *testing.T) {
	t.Parallel()
	vectors := enforceVectors(t)
	checkEnforcement(t, served{nodesFor(t, "enforce", enforceScripts(t, vectors)...)}, vectors)
}

// What an agent and an application send comes out of a cluster byte for byte: live and later, on every node, raw and
// compacted.
func TestLosslessOnNodes(t *testing.T) {
	t.Parallel()
	oneLine := strings.NewReplacer("\r", " ", "\n", " ") // a frame of the agent's stream has no room for line breaks
	var events []string
	for _, e := range losslessEvents() {
		events = append(events, oneLine.Replace(e))
	}
	s := nodesFor(t, "lossless", emitting(events...))
	var input struct{ Messages, State json.RawMessage }
	s.must(json.Unmarshal(losslessInput(), &input))
	v := s.watch("t", raw)
	code, answer, err := s.next().request(http.MethodPost, threadPath("t")+"/runs",
		fmt.Sprintf(`{"runId":"r1","messages":%s,"state":%s}`, input.Messages, input.State))
	if err != nil || code != http.StatusAccepted {
		t.Fatalf("the run is answered %d %s: %v", code, answer, err)
	}
	s.must(v.until(webtest.Ended("r1")))
	s.next().ended("t", "r1")
	live := asBytes(v.Events())
	var sent [][]byte
	for _, e := range events {
		sent = append(sent, []byte(e))
	}
	sameEvents(t, "live, after the first", sent[1:], live[1:])
	begins := bytes.TrimSuffix(sent[0], []byte("}"))
	if !bytes.HasPrefix(live[0], begins) {
		t.Errorf("the run begins with %.300s", live[0])
	}
	checkInput(t, "the first event", []byte(`{`+string(live[0][len(begins)+1:])), input.Messages)
	checkInput(t, "what the agent got", fmt.Appendf(nil, `{"input":%s}`, s.agent.Inputs()[0]), input.Messages)
	for i, n := range s.all() {
		for _, form := range []string{"raw", "compact"} {
			sameEvents(t, fmt.Sprintf("%s, on node %d", form, i+1), live, asBytes(allEvents(n.record("t", "", form))))
		}
	}
	s.shutDown()
	s.revive()
	sameEvents(t, "after a restart of all", live, served{s}.replay(t, "t"))
}

// checkInput checks that the messages of an input are those that were sent, as they were written.
func checkInput(t *testing.T, what string, event, messages []byte) {
	t.Helper()
	var got struct {
		Input struct{ Messages json.RawMessage }
	}
	if err := json.Unmarshal(event, &got); err != nil {
		t.Fatalf("%s: %v\n%.300s", what, err, event)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, messages); err != nil {
		t.Fatal(err)
	}
	var have bytes.Buffer
	if err := json.Compact(&have, got.Input.Messages); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have.Bytes(), want.Bytes()) {
		t.Errorf("%s has the messages\n%.500q, not\n%.500q", what, have.Bytes(), want.Bytes())
	}
}

// What is not UTF-8 is refused by each node, and leaves the thread free.
func TestNodesRefuseWhatIsNotUTF8(t *testing.T) {
	t.Parallel()
	s := nodesFor(t, "not UTF-8", emitting(begins, ends))
	for _, text := range losslesstest.NotUTF8() {
		var p problem
		code := s.next().do(http.MethodPost, threadPath("t")+"/runs", `{"runId":"r1","messages":[],"state":`+text.JSON+`}`, &p)
		if code != http.StatusBadRequest || p.Code != "bad_input" || strings.Contains(p.Message, text.JSON) {
			t.Errorf("%s is answered %d %+v", text.Name, code, p)
		}
	}
	s.run("t", "r1")
	if end := s.next().ended("t", "r1"); end.State != "finished" || end.Number != 1 {
		t.Errorf("the next run is %+v", end)
	}
}
