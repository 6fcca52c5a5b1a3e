package terminal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// typist lets a test type.
type typist struct{ *io.PipeWriter }

func (s *site) typist(c *terminal.Config) typist {
	in, out := io.Pipe()
	s.Cleanup(func() {
		_ = out.Close()
		_ = in.Close()
	})
	c.In = in
	return typist{out}
}

func (t typist) types(s *site, text string) {
	s.Helper()
	if _, err := io.WriteString(t, text); err != nil {
		s.Fatal(err)
	}
}

// resumed is the resume of the nth input of the agent.
func (s *site) resumed(n int) string {
	s.Helper()
	var in struct{ Resume json.RawMessage }
	inputs := s.agent.Inputs()
	if len(inputs) <= n {
		s.Fatalf("the agent was run %d times", len(inputs))
	}
	if err := json.Unmarshal(inputs[n].JSON, &in); err != nil {
		s.Fatal(err)
	}
	return string(in.Resume)
}

// wants is a run that ends with that interrupt.
func wants(interrupt string) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt","interrupts":[` + interrupt + `]}}`)}
}

func TestAskAsksWhoIsAtTheTerminal(t *testing.T) {
	s := open(t, "", asking(), said(1))
	var typed typist
	c := s.ask(func(c *terminal.Config) { typed = s.typist(c) }, terminal.Question{Text: "Hello", Thread: "t"})
	s.shows(&c.err, "approve? [y/n] ")
	typed.types(s, "perhaps\n")
	s.eventually("it asks again", func() bool { return strings.Count(c.err.String(), "approve?") == 2 })
	typed.types(s, "y\n")
	c.ends(0)
	if c.out.String() != "w0 \n" || !strings.HasSuffix(s.resumed(1), `"status":"resolved","payload":{"approved":true}}]`) {
		t.Errorf("it answered %s and wrote %q", s.resumed(1), &c.out)
	}
}

func TestAnswersHaveTheFormThatIsAskedFor(t *testing.T) {
	input := `{"id":"i","reason":"input_required"%s}`
	tests := map[string]struct{ interrupt, typed, status, payload string }{
		"yes":             {`{"id":"i","reason":"confirmation"}`, "yes", "resolved", `{"approved":true}`},
		"no":              {`{"id":"i","reason":"tool_call"}`, "N", "resolved", `{"approved":false}`},
		"a word":          {fmt.Sprintf(input, ""), "blue", "resolved", `"blue"`},
		"a number":        {fmt.Sprintf(input, ""), "12", "resolved", `12`},
		"a string":        {fmt.Sprintf(input, `,"responseSchema":{"type":"string"}`), "12", "resolved", `"12"`},
		"the only field":  {fmt.Sprintf(input, `,"responseSchema":{"type":"object","properties":{"color":{}}}`), "blue", "resolved", `{"color":"blue"}`},
		"an object":       {fmt.Sprintf(input, `,"responseSchema":{"type":"object","properties":{"a":{},"b":{}}}`), `{"a":1}`, "resolved", `{"a":1}`},
		"nothing":         {fmt.Sprintf(input, ""), "", "cancelled", ""},
		"yes, as a field": {`{"id":"i","reason":"x","responseSchema":{"properties":{"approved":{}}}}`, "ok", "resolved", `{"approved":true}`},
		"too late":        {`{"id":"i","reason":"confirmation","expiresAt":"2001-01-01T00:00:00Z"}`, "yes", "cancelled", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", wants(test.interrupt), said(1))
			s.ask(nil, terminal.Question{Text: "Hello", Thread: "t"}).ends(4)
			c := s.ask(nil, terminal.Question{Thread: "t", Answers: []string{test.typed}})
			c.ends(0)
			want := `[{"interruptId":"i","status":"` + test.status + `"`
			if test.payload != "" {
				want += `,"payload":` + test.payload
			}
			if got := s.resumed(1); got != want+"}]" {
				t.Errorf("the agent got %s, want %s", got, want)
			}
		})
	}
}

func TestAnswersThatDoNotFitAreRefused(t *testing.T) {
	s := open(t, "", asking())
	s.ask(nil, terminal.Question{Text: "Hello", Thread: "t"}).ends(4)
	for says, answers := range map[string][]string{
		`"perhaps": the answer is yes or no`:            {"perhaps"},
		"thread t waits for 1 answers, and 2 are given": {"yes", "no"},
		`"\x1b[2J\x9b": the answer is yes or no`:        {"\x1b[2J\x9b"},
	} {
		c := s.ask(nil, terminal.Question{Thread: "t", Answers: answers})
		if err := c.ends(1); err == nil || err.Error() != says {
			t.Errorf("it says %v, want %s", err, says)
		}
	}
}

// Who says something else while the thread waits is asked first: the answer goes along.
func TestAskAnswersBeforeItSaysMore(t *testing.T) {
	s := open(t, "", asking(), said(1))
	s.ask(nil, terminal.Question{Text: "Hello", Thread: "t"}).ends(4)
	without := s.ask(nil, terminal.Question{Text: "And?", Thread: "t"})
	without.ends(4)
	if !strings.HasPrefix(without.err.String(), "asks     Really?\nThe thread waits for an answer.\n") {
		t.Errorf("it says %q", &without.err)
	}
	var typed typist
	c := s.ask(func(c *terminal.Config) { typed = s.typist(c) }, terminal.Question{Text: "And?", Thread: "t"})
	s.shows(&c.err, "approve? [y/n] ")
	typed.types(s, "n\n")
	c.ends(0)
	if !strings.Contains(s.resumed(1), `{"approved":false}`) || !strings.Contains(string(s.agent.Inputs()[1].JSON), "And?") {
		t.Errorf("the agent got %s", s.agent.Inputs()[1].JSON)
	}
}

func TestAnswerFromElsewhereEndsThePrompt(t *testing.T) {
	s := open(t, "", asking(), said(2))
	var typed typist
	c := s.ask(func(c *terminal.Config) { typed = s.typist(c) }, terminal.Question{Text: "Hello", Thread: "t"})
	s.shows(&c.err, "approve? [y/n] ")
	s.ask(nil, terminal.Question{Thread: "t", Answers: []string{"yes"}}).ends(0)
	c.ends(0)
	if !strings.HasSuffix(c.err.String(), "Somebody else has answered.\n") || c.out.String() != "w0 w1 \n" {
		t.Errorf("it says %q and %q", &c.err, &c.out)
	}
	_ = typed
}

func TestPromptThatIsLeft(t *testing.T) {
	for name, leave := range map[string]struct {
		by   func(*command, typist)
		code int
	}{
		"with Ctrl-C": {func(c *command, _ typist) { c.stop() }, 130},
		"with Ctrl-D": {func(_ *command, typed typist) { _ = typed.Close() }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", asking())
			var typed typist
			c := s.ask(func(c *terminal.Config) { typed = s.typist(c) }, terminal.Question{Text: "Hello", Thread: "t"})
			s.shows(&c.err, "approve? [y/n] ")
			leave.by(c, typed)
			c.ends(leave.code)
			if !strings.HasSuffix(c.err.String(), "\nThe thread waits for an answer.\n  answer it   threadcast ask --thread t --answer yes\n") {
				t.Errorf("it says %q", &c.err)
			}
		})
	}
}
