package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/losslesstest"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// losslessEvents are events that carry the texts of losslesstest in every place that compaction treats in its own way: in
// values that it does not look into, in unknown types, in state, in names, in text that it joins, in ids.
func losslessEvents() []string {
	events := []string{`{ "type" : "RUN_STARTED","threadId":"t","runId":"r1","extra":[1.0,1e400]}`}
	for i, text := range losslesstest.Texts() {
		id := fmt.Sprintf(`"m\u0000\ud800-%d"`, i)
		events = append(events,
			`{"type":"CUSTOM","name":"n","value":`+text.JSON+`}`,
			`{"type":"STATE_SNAPSHOT","snapshot":`+text.JSON+`}`,
			`{"type":"FUTURE_TYPE","type2":null,"`+`\u0000":`+text.JSON+`,"x":1,"x":2}`,
			`{"type":"TEXT_MESSAGE_START","messageId":`+id+`,"role":"assistant","future":`+text.JSON+`}`)
		if strings.HasPrefix(text.JSON, `"`) {
			events = append(events, `{"delta":`+text.JSON+`, "type":"TEXT_MESSAGE_CONTENT","messageId":`+id+`}`)
		}
		events = append(events, `{"type":"TEXT_MESSAGE_END","messageId":`+id+`,"metadata":{"ag-ui":`+text.JSON+`}}`)
	}
	return append(events, `{"type":"RUN_FINISHED","threadId":"t","runId":"r1","result":{"a":1,"a":-0}}`)
}

// losslessInput is an input that carries them too.
func losslessInput() []byte {
	var messages []string
	for i, text := range losslesstest.Texts() {
		messages = append(messages, fmt.Sprintf(`{"id":"u\u0000\ud800-%d", "role":"user","content":"x","metadata":{"v":%s}}`, i, text.JSON))
	}
	return []byte(`{"state":` + losslesstest.Texts()[0].JSON + `,"threadId":"t","runId":"r1",  "messages":[` + strings.Join(messages, " , ") + `]}`)
}

// runLossless starts the run of losslessEvents on losslessInput.
func runLossless(t *testing.T, s *stack) {
	t.Helper()
	_, err := s.next().runner.Run(t.Context(), thread.Request{
		Thread: "t", RunID: "r1", Input: func(thread.RunID) ([]byte, error) { return losslessInput(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
}

func losslessAgent() *agenttest.Agent { return agenttest.New(emitting(losslessEvents()...)) }

// wantLossless is what viewers have to see: the agent's bytes, and the input in the one event that lacked it, where it
// takes no more space than it needs.
func wantLossless() [][]byte {
	var input bytes.Buffer
	if err := json.Compact(&input, losslessInput()); err != nil {
		panic(err)
	}
	var want [][]byte
	for _, e := range losslessEvents() {
		want = append(want, []byte(e))
	}
	want[0] = fmt.Appendf(nil, `%s,"input":%s}`, bytes.TrimSuffix(want[0], []byte("}")), input.Bytes())
	return want
}

// sameEvents compares byte for byte, and says where the first difference is.
func sameEvents(t *testing.T, what string, want, got [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d events, want %d", what, len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if !bytes.Equal(want[i], got[i]) {
			t.Errorf("%s: event %d is\n%.300q, want\n%.300q", what, i, got[i], want[i])
			return
		}
	}
}

func TestLossless(t *testing.T) {
	onEveryStack(t, func(t *testing.T, open func(runner.Agent, runner.Config) *stack) {
		agent := losslessAgent()
		s := open(agent, runner.Config{Retention: time.Hour})
		runLossless(t, s)
		sameEvents(t, "live", wantLossless(), s.follow(t, "t", thread.Cursor{Run: 1}))
		(&origin{T: t, stack: s}).saved("t", "r1")
		sameEvents(t, "input of the agent", [][]byte{losslessInput()}, [][]byte{agent.Inputs()[0].JSON})
		sameEvents(t, "compacted", wantLossless(), s.replay(t, "t"))
		sameEvents(t, "raw", wantLossless(), s.follow(t, "t", thread.Cursor{}))
		run, err := s.past.FindRun(t.Context(), "t", "r1")
		if err != nil {
			t.Fatal(err)
		}
		sameEvents(t, "input in the database", [][]byte{losslessInput()}, [][]byte{run.Input})
		known, err := s.past.Known(t.Context(), "t", []string{"u\x00\xed\xa0\x80-0", "m\x00\xed\xa0\x80-0", "u", "m", "u\x00", "m\x00"})
		if err != nil || len(known) != 2 {
			t.Errorf("the known messages are %v: %v", known, err)
		}
		s.close()
		sameEvents(t, "from the database alone", wantLossless(), s.again().replay(t, "t"))
	})
}

// The file is closed and opened again, with the live log in it and without.
func TestLosslessAfterReopening(t *testing.T) {
	dir := t.TempDir()
	open := func(log func(testing.TB, database) logtest.Log) *stack {
		past := openDatabase(t, dir)
		return newStack(t, log(t, past), past, losslessAgent(), runner.Config{Retention: time.Hour})
	}
	sql, memory := logKinds[1].open, logKinds[0].open
	s := open(sql)
	runLossless(t, s)
	s.follow(t, "t", thread.Cursor{Run: 1})
	for what, log := range map[string]func(testing.TB, database) logtest.Log{"with its live log": sql, "without": memory} {
		s.close()
		if err := s.past.file.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(log)
		sameEvents(t, "reopened "+what, wantLossless(), s.replay(t, "t"))
		if _, inMemory := s.log.(*memlog.Log); !inMemory {
			sameEvents(t, "raw, reopened "+what, wantLossless(), s.follow(t, "t", thread.Cursor{}))
		}
	}
}

func TestWhatIsNotUTF8IsRefused(t *testing.T) {
	onEveryStack(t, func(t *testing.T, open func(runner.Agent, runner.Config) *stack) {
		s := open(mockAgent(), runner.Config{})
		for _, text := range losslesstest.NotUTF8() {
			_, err := s.next().runner.Run(t.Context(), thread.Request{Thread: "t", RunID: "r1", Input: func(thread.RunID) ([]byte, error) {
				return []byte(`{"threadId":"t","runId":"r1","messages":[],"state":` + text.JSON + `}`), nil
			}})
			if !errors.Is(err, thread.ErrBadInput) {
				t.Errorf("%s: %v", text.Name, err)
			}
		}
		if running, err := s.next().runner.IsRunning(t.Context(), "t"); err != nil || running {
			t.Errorf("it is running: %v, %v", running, err)
		}
		if events := s.record(t, "t", "r1"); len(events) != 5 {
			t.Errorf("the next run has %d events", len(events))
		}
	})
}
