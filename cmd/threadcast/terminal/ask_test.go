package terminal_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestAskPrintsTheAnswerAndNamesTheThread(t *testing.T) {
	s := open(t, "", said(3))
	c := s.ask(nil, terminal.Question{Text: "Hello"})
	c.ends(0)
	if c.out.String() != "w0 w1 w2 \n" {
		t.Errorf("the answer is %q", &c.out)
	}
	if got := c.err.String(); !strings.HasPrefix(got, "thread   ask-") || strings.Count(got, "\n") != 1 {
		t.Errorf("besides it says %q", got)
	}
}

// A client sends the whole conversation: the second question comes with the first and its answer, and with the state.
func TestAskGoesOnInAThread(t *testing.T) {
	first := append([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(`{"type":"STATE_SNAPSHOT","snapshot":{"big":12345678901234567890}}`)}, said(1)[1:]...)
	s := open(t, "", first, said(1))
	s.ask(nil, terminal.Question{Text: "One?", Thread: "t"}).ends(0)
	s.ask(nil, terminal.Question{Text: "Two?", Thread: "t"}).ends(0)
	var in struct {
		State    json.RawMessage
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(s.agent.Inputs()[1].JSON, &in); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range in.Messages {
		said = append(said, m.Role+": "+m.Content)
	}
	if got := strings.Join(said, ", "); got != "user: One?, assistant: w0 , user: Two?" || string(in.State) != `{"big":12345678901234567890}` {
		t.Errorf("the agent got %s and the state %s", got, in.State)
	}
}

func TestAskEndsAsItsRunDoes(t *testing.T) {
	fails := []agenttest.Step{agenttest.Emit(started), agenttest.Emit(`{"type":"RUN_ERROR","message":"Out of\u001b[2J paper.","code":"no_paper"}`)}
	waits := []agenttest.Step{agenttest.Emit(started), agenttest.Emit(`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"pick"}`),
		agenttest.Emit(`{"type":"TOOL_CALL_END","toolCallId":"c"}`),
		agenttest.Emit(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"success","pendingToolCallIds":["c"]}}`)}
	tests := map[string]struct {
		run  []agenttest.Step
		code int
		says string
	}{
		"a failure":        {fails, 1, "error    Out of␛[2J paper. (no_paper)\n"},
		"an open question": {asking(), 4, "asks     Really?\nThe thread waits for an answer.\n  answer it   threadcast ask --thread 'a b' --answer yes\n"},
		"a client tool":    {waits, 4, "tool     pick\nwaits    for the application's answer to pick\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", test.run)
			c := s.ask(nil, terminal.Question{Text: "Hello", Thread: "a b"})
			if err := c.ends(test.code); !terminal.Said(err) {
				t.Errorf("%v has not been said", err)
			}
			if got := c.err.String(); got != "thread   a b\n"+test.says {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestAskTellsWhyItIsRefused(t *testing.T) {
	s := open(t, "", held(1))
	defer s.agent.Release("go")
	s.run("t", "r1", "Hello", "")
	tests := map[string]struct {
		q    terminal.Question
		says string
	}{
		"busy":       {terminal.Question{Text: "And?", Thread: "t"}, "--on-busy enqueue, interrupt or replace"},
		"no agent":   {terminal.Question{Text: "And?", Agent: "two"}, "(unknown_agent)"},
		"no waiting": {terminal.Question{Thread: "u", Answers: []string{"yes"}}, "thread u waits for no answer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := s.ask(nil, test.q)
			if err := c.ends(1); err == nil || !strings.Contains(err.Error(), test.says) || terminal.Said(err) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestInterruptedAskLeavesTheRunAlone(t *testing.T) {
	s := open(t, "", held(1))
	c := s.ask(nil, terminal.Question{Text: "Hello", Thread: "t", Flags: " --server http://x"})
	s.shows(&c.out, "w0 ")
	c.stop()
	c.ends(130)
	want := "The run goes on without you.\n  follow it   threadcast tail t --server http://x\n  stop it     threadcast stop t --server http://x\n"
	if !strings.HasSuffix(c.err.String(), want) {
		t.Errorf("it says %q", &c.err)
	}
	tail := s.tail(nil, terminal.Tailing{Thread: "t"})
	s.agent.Release("go")
	s.shows(&tail.out, "w0 w0 \nfinished\n")
}

func TestInterruptedAskStopsTheRunIfItShould(t *testing.T) {
	s := open(t, "", held(1))
	c := s.ask(nil, terminal.Question{Text: "Hello", Thread: "t", StopOnInterrupt: true})
	s.shows(&c.out, "w0 ")
	c.stop()
	c.ends(130)
	if !strings.HasSuffix(c.err.String(), "The run is stopped.\n") {
		t.Errorf("it says %q", &c.err)
	}
	if _, text := s.call("GET", "/api/threads/t", ""); !strings.Contains(text, `"state":"stopped"`) {
		t.Errorf("the thread is %s", text)
	}
}

func TestAskWhoseRunIsStoppedElsewhere(t *testing.T) {
	s := open(t, "", held(1))
	c := s.ask(nil, terminal.Question{Text: "Hello", Thread: "t"})
	s.shows(&c.out, "w0 ")
	stop := s.start(nil, stopping("t", ""))
	stop.ends(0)
	c.ends(1)
	if !strings.HasPrefix(stop.out.String(), "Stopped run run-") || !strings.HasSuffix(c.err.String(), "stopped\n") {
		t.Errorf("it says %q and %q", &stop.out, &c.err)
	}
}

func TestAskWaitsForItsTurn(t *testing.T) {
	s := open(t, "", held(1), said(2))
	s.run("t", "r1", "Hello", "")
	c := s.ask(func(c *terminal.Config) { c.ErrTerminal = true }, terminal.Question{Text: "And?", Thread: "t", OnBusy: "enqueue"})
	s.shows(&c.err, "waiting for its turn: number 1 in the queue of the thread")
	s.agent.Release("go")
	c.ends(0)
	if c.out.String() != "w0 w1 \n" {
		t.Errorf("the answer is %q", &c.out)
	}
}

func TestAskWhoseRunIsTakenBack(t *testing.T) {
	s := open(t, "", held(1))
	defer s.agent.Release("go")
	s.run("t", "r1", "Hello", "")
	c := s.ask(func(c *terminal.Config) { c.JSON = true }, terminal.Question{Text: "And?", Thread: "t", OnBusy: "enqueue"})
	s.shows(&c.out, "\n")
	var accepted struct{ ThreadID, RunID, Cursor string }
	if err := json.Unmarshal([]byte(c.out.String()), &accepted); err != nil || accepted.ThreadID != "t" || accepted.Cursor == "" {
		t.Fatalf("it wrote %q: %v", &c.out, err)
	}
	s.start(nil, stopping("t", accepted.RunID)).ends(0)
	if err := c.ends(1); err == nil || err.Error() != "the run was taken back before it began" {
		t.Errorf("it says %v", err)
	}
}

func TestAskWhoseRunIsReplaced(t *testing.T) {
	s := open(t, "", held(1), said(1))
	c := s.ask(nil, terminal.Question{Text: "Hello", Thread: "t"})
	s.shows(&c.out, "w0 ")
	s.run("t", "r2", "No, this", `,"onBusy":"replace"`)
	err := c.ends(1)
	if !errors.Is(err, terminal.ErrRun) {
		t.Errorf("it ends with %v", err)
	}
}

func TestAskInJSONHasTheEventsAsTheyCame(t *testing.T) {
	odd := "{\"type\":\"CUSTOM\", \"name\":\"odd\",\n \"value\":{\"n\":1e400,\"s\":\"\\ud800\\u0000<\u009b\u202e>\"},\"value2\":12345678901234567890}"
	s := open(t, "", []agenttest.Step{agenttest.Emit(started), agenttest.Emit(odd), agenttest.Emit(finished)})
	c := s.ask(func(c *terminal.Config) { c.JSON = true }, terminal.Question{Text: "Hello", Thread: "t"})
	c.ends(0)
	lines := strings.Split(strings.TrimSuffix(c.out.String(), "\n"), "\n")
	if len(lines) != 4 || c.err.String() != "" {
		t.Fatalf("it wrote %q and %q", &c.out, &c.err)
	}
	if want := `"cursor":"1-2","event":` + strings.ReplaceAll(odd, "\n", " ") + "}"; !strings.HasSuffix(lines[2], want) {
		t.Errorf("the event came out as\n%s, want\n%s", lines[2], want)
	}
	onTerminal := s.tail(func(c *terminal.Config) { c.JSON, c.OutTerminal = true, true }, terminal.Tailing{Thread: "t", Once: true})
	onTerminal.ends(0)
	if got := onTerminal.out.String(); !strings.Contains(got, `<\u009b\u202e>`) {
		t.Errorf("on a terminal it is %q", got)
	}
}
