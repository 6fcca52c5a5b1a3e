package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

const vectorsDir = "../../runner/agui/testdata/vectors/"

// readVectors reads a file of vectors, which lie beside package agui.
func readVectors[T any](t *testing.T, file string) (cases []T) {
	t.Helper()
	data, err := os.ReadFile(vectorsDir + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// What a stage in front of an application takes away passes the runner, the live log, the database and the hub byte for
// byte (AG-UI 1.0, section 10). Only malformed values that the runner's own tracking reads fail their run; they are
// listed.
func TestVectorsOfEnforcementPass(t *testing.T) {
	vectors := enforceVectors(t)
	onEveryStack(t, func(t *testing.T, open func(runner.Agent, runner.Config) *stack) {
		s := open(agenttest.New(enforceScripts(t, vectors)...), runner.Config{})
		checkEnforcement(t, s, vectors)
	})
}

const enforceFile = "enforce/handpicked.json"

// enforceVector is what an agent may send, and what a stage that enforces would make of it.
type enforceVector struct {
	Name    string
	Input   []json.RawMessage
	Fatal   bool
	FailsAt int
}

func enforceVectors(t *testing.T) []enforceVector {
	t.Helper()
	vectors := readVectors[enforceVector](t, enforceFile)
	if len(vectors) != 50 {
		t.Fatalf("%d vectors were read", len(vectors))
	}
	return vectors
}

// enforceScripts are the agent's scripts for the first run, for the second...
func enforceScripts(t *testing.T, vectors []enforceVector) (scripts [][]agenttest.Step) {
	t.Helper()
	for _, c := range vectors {
		before, _ := preamble(t, c.Input[0])
		scripts = append(scripts, emittingRaw(append(before, c.Input...)))
	}
	return scripts
}

// place is where vectors are played.
type place interface {
	// record runs the agent to its end and returns the events as a viewer got them who was there from the beginning.
	record(t *testing.T, id thread.ID, run thread.RunID) [][]byte
	// replay returns the events of a thread's finished runs as a viewer gets them who comes later.
	replay(t *testing.T, id thread.ID) [][]byte
	// remove deletes a thread.
	remove(t *testing.T, id thread.ID)
}

// checkEnforcement plays the vectors, for each of which the agent has a script.
func checkEnforcement(t *testing.T, p place, vectors []enforceVector) {
	t.Helper()
	listed := map[string]bool{}
	for _, d := range readVectors[struct{ Case string }](t, "differences.json") {
		listed[d.Case] = true
	}
	for _, c := range vectors {
		t.Run(c.Name, func(t *testing.T) {
			before, run := preamble(t, c.Input[0])
			live := p.record(t, "thread-1", run)
			passed := 0
			for i, e := range c.Input {
				if len(before)+i < len(live) && passes(e, live[len(before)+i]) {
					passed++
				}
			}
			switch refused := passed < len(c.Input); {
			case refused && !listed[enforceFile+" "+c.Name]:
				t.Errorf("%d of %d events passed:\n%s\nsent:\n%s", passed, len(c.Input), bytes.Join(live, []byte("\n")), c.Input)
			case !refused && listed[enforceFile+" "+c.Name]:
				t.Error("it passes; take it off the list")
			case refused && (!c.Fatal || passed != c.FailsAt || !bytes.Contains(live[len(live)-1], []byte(`"code":"bad_event"`))):
				t.Errorf("the run fails at event %d with %s", passed, live[len(live)-1])
			}
			if diff := cmp.Diff(live, p.replay(t, "thread-1")); diff != "" {
				t.Errorf("replayed (-live +replayed):\n%s", diff)
			}
			p.remove(t, "thread-1")
		})
	}
}

// preamble returns what has to come before an event so that it is legal, and the run that it belongs to.
func preamble(t *testing.T, event json.RawMessage) ([]json.RawMessage, thread.RunID) {
	t.Helper()
	kind := textOf(t, event, "type")
	if kind == "RUN_STARTED" {
		return nil, thread.RunID(textOf(t, event, "runId"))
	}
	before := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`)}
	if kind == "TEXT_MESSAGE_CONTENT" || kind == "TEXT_MESSAGE_END" {
		before = append(before, json.RawMessage(`{"type":"TEXT_MESSAGE_START","messageId":"`+textOf(t, event, "messageId")+`"}`))
	}
	return before, "run-1"
}

// textOf returns a member of an event; empty if it is no string.
func textOf(t *testing.T, event []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event, &members); err != nil {
		t.Fatalf("%s: %v", event, err)
	}
	var text string
	_ = json.Unmarshal(members[name], &text)
	return text
}

// passes tells whether a recorded event is what the agent sent. A RUN_STARTED may have got an input.
func passes(sent, recorded []byte) bool {
	return bytes.Equal(sent, recorded) ||
		bytes.HasPrefix(recorded, bytes.TrimSuffix(sent, []byte("}"))) && bytes.Contains(sent, []byte(`"RUN_STARTED"`)) &&
			bytes.HasPrefix(recorded[len(sent)-1:], []byte(`,"input":{`))
}

// emittingRaw emits events, and leaves it to the runner to end the run.
func emittingRaw(events []json.RawMessage) []agenttest.Step {
	var steps []agenttest.Step
	for _, e := range events {
		steps = append(steps, agenttest.Emit(string(e)))
	}
	return steps
}

func (s *stack) remove(t *testing.T, id thread.ID) {
	t.Helper()
	if err := s.next().runner.Delete(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) record(t *testing.T, id thread.ID, run thread.RunID) [][]byte {
	t.Helper()
	acc, err := s.next().runner.Run(t.Context(), thread.Request{Thread: id, RunID: run, Input: func(run thread.RunID) ([]byte, error) {
		return []byte(`{"threadId":"` + string(id) + `","runId":"` + string(run) + `","messages":[]}`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	events := s.follow(t, id, acc.Cursor)
	(&origin{T: t, stack: s}).saved(id, run)
	return events
}

// follow returns the events after a cursor, each as it came, up to the end of a run.
func (s *stack) follow(t *testing.T, id thread.ID, after thread.Cursor) [][]byte {
	t.Helper()
	var events [][]byte
	o := &origin{T: t, stack: s}
	o.connectWith(s.next().hub, id, hub.Options{After: after, Replay: hub.Raw}, func(b hub.Batch) bool {
		events = append(events, b.Events...)
		if len(events) == 0 {
			return false
		}
		last := textOf(t, events[len(events)-1], "type")
		return last == "RUN_FINISHED" || last == "RUN_ERROR"
	})
	return events
}

func (s *stack) replay(t *testing.T, id thread.ID) [][]byte {
	t.Helper()
	var events [][]byte
	o := &origin{T: t, stack: s}
	o.connectWith(s.next().hub, id, hub.Options{}, func(b hub.Batch) bool {
		events = append(events, b.Events...)
		return b.Kind == hub.CaughtUp
	})
	return events
}
