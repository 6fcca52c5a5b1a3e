package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
	"github.com/threadcast/threadcast/runner/agui"
)

// atOnce makes the demo answer without pauses.
var atOnce = agent.DemoOptions{Speed: math.Inf(1)}

// conversation returns the input of a run in which the user says something; earlier turns are answered.
func conversation(run string, turns int, says string, more string) runner.Input {
	var messages []string
	for i := range turns {
		messages = append(messages, fmt.Sprintf(`{"id":"u%d","role":"user","content":"something"},{"id":"a%d","role":"assistant","content":"sure"}`, i, i))
	}
	quoted, _ := json.Marshal(says)
	messages = append(messages, fmt.Sprintf(`{"id":"last","role":"user","content":%s}`, quoted))
	text := fmt.Sprintf(`{"threadId":"t","runId":"%s","messages":[%s]%s}`, run, strings.Join(messages, ","), more)
	return runner.Input{ThreadID: "t", RunID: thread.RunID(run), JSON: []byte(text)}
}

// shown is a run of the demo, as a viewer sees it.
type shown struct {
	types     []string // in order, each kind of delta once in a row
	texts     []string // of the assistant's messages
	thoughts  string
	args      string
	events    []map[string]any
	ids       map[string]bool // of messages and calls
	state     any             // the snapshot
	closers   int             // how many things are open at the end
	violation error
}

func (s shown) text() string { return strings.Join(s.texts, "\n\n") }

// perform runs the demo to its end, and judges each event.
func perform(t *testing.T, d *agent.Demo, in runner.Input) (shown, error) {
	t.Helper()
	s := shown{ids: map[string]bool{}}
	tracker := agui.NewTracker(string(in.ThreadID), string(in.RunID))
	err := d.Run(t.Context(), in, func(data []byte) error {
		if _, err := tracker.Observe(data); err != nil && s.violation == nil {
			s.violation = fmt.Errorf("%s: %w", data, err)
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		s.add(e)
		return nil
	})
	s.closers = len(tracker.Closers())
	if s.violation != nil {
		t.Errorf("the run is not legal: %v", s.violation)
	}
	return s, err
}

func (s *shown) add(e map[string]any) {
	s.events = append(s.events, e)
	kind := e["type"].(string)
	if len(s.types) == 0 || s.types[len(s.types)-1] != kind {
		s.types = append(s.types, kind)
	}
	delta, _ := e["delta"].(string)
	switch kind {
	case "TEXT_MESSAGE_START":
		s.texts = append(s.texts, "")
		s.ids[e["messageId"].(string)] = true
	case "TEXT_MESSAGE_CONTENT":
		s.texts[len(s.texts)-1] += delta
	case "REASONING_MESSAGE_CONTENT":
		s.thoughts += delta
	case "TOOL_CALL_ARGS":
		s.args += delta
	case "STATE_SNAPSHOT":
		s.state = e["snapshot"]
	}
}

func (s shown) last() map[string]any { return s.events[len(s.events)-1] }

// mustFinish performs a run that has to end well.
func mustFinish(t *testing.T, in runner.Input) shown {
	t.Helper()
	s, err := perform(t, agent.NewDemo(atOnce), in)
	if err != nil {
		t.Fatal(err)
	}
	if s.types[0] != "RUN_STARTED" || s.last()["type"] != "RUN_FINISHED" || s.closers != 0 {
		t.Errorf("the run is %v with %d things open", s.types, s.closers)
	}
	return s
}

func TestDemoWelcomes(t *testing.T) {
	text := mustFinish(t, conversation("r1", 0, "Good morning", "")).text()
	for _, word := range []string{"tool", "state", "reasoning", "long", "silence", "fail", "approve", "code", "table"} {
		if !strings.Contains(text, "**"+word+"**") {
			t.Errorf("the welcome does not mention **%s**", word)
		}
	}
	for _, word := range []string{"threadcast", "thread", "Reload", "second tab", "Stop"} {
		if !strings.Contains(text, word) {
			t.Errorf("the welcome does not mention %s", word)
		}
	}
}

func TestDemoWelcomesWithoutAnyMessage(t *testing.T) {
	in := runner.Input{ThreadID: "t", RunID: "r", JSON: []byte(`{"threadId":"t","runId":"r","messages":[]}`)}
	if text := mustFinish(t, in).text(); !strings.HasPrefix(text, "Hello!") {
		t.Errorf("it says %.80q", text)
	}
}

func TestDemoSaysEachWordOnItsOwn(t *testing.T) {
	s := mustFinish(t, conversation("r1", 1, "table", ""))
	for _, e := range s.events {
		if delta, ok := e["delta"].(string); ok && len(strings.Fields(delta)) != 1 {
			t.Errorf("the delta %q is not one word", delta)
		}
	}
	if !strings.HasPrefix(s.text(), "Here is what happens") || !strings.HasSuffix(s.text(), "not taken back.") {
		t.Errorf("the text is not whole: %s", s.text())
	}
}

func TestDemoPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for speed, want := range map[float64]time.Duration{0: 25 * time.Millisecond, 10: 2500 * time.Microsecond, math.Inf(1): 0} {
			began := time.Now()
			s, err := perform(t, agent.NewDemo(agent.DemoOptions{Speed: speed}), conversation("r1", 0, "long", ""))
			if err != nil {
				t.Fatal(err)
			}
			words := len(strings.Fields(s.text()))
			if words < 700 || words > 1000 {
				t.Errorf("a long answer has %d words", words)
			}
			each := time.Since(began) / time.Duration(words)
			if each < want*9/10 || each > want*11/10 {
				t.Errorf("at speed %v a word took %v; want about %v", speed, each, want)
			}
		}
	})
}

func TestDemoIsTheSameForTheSameSeed(t *testing.T) {
	say := func(seed uint64, run string) string {
		s, err := perform(t, agent.NewDemo(agent.DemoOptions{Speed: math.Inf(1), Seed: seed}), conversation(run, 1, "What is new?", ""))
		if err != nil {
			t.Fatal(err)
		}
		return s.text()
	}
	if first, again := say(7, "r1"), say(7, "r1"); first != again {
		t.Error("the same run is answered in two ways")
	}
	different := map[string]bool{}
	for i := range 20 {
		different[say(7, fmt.Sprint("r", i))] = true
	}
	if len(different) < 3 {
		t.Errorf("twenty runs got %d different answers", len(different))
	}
}

func TestDemoTakesUpWhatWasSaid(t *testing.T) {
	tests := map[string]struct{ says, want string }{
		"a sentence":  {"Berlin has many lakes.", "Berlin has many lakes."},
		"a question":  {"How deep is the sea?", "How deep is the sea?"},
		"a greeting":  {"Hi!", "Hello again!"},
		"thanks":      {"Thank you very much", "You are welcome!"},
		"goodbye":     {"bye bye", "Goodbye!"},
		"nothing":     {" ...", "nothing to read"},
		"markup":      {"<b>*x*</b>", `\<b\>\*x\*\</b\>`},
		"many lines":  {"one\n\n# two", `one \# two`},
		"a long text": {strings.Repeat("é", 500), strings.Repeat("é", 160) + "…”"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if text := mustFinish(t, conversation("r1", 1, test.says, "")).text(); !strings.Contains(text, test.want) {
				t.Errorf("it answers %q", text)
			}
		})
	}
}

func TestDemoTellsSomethingNewEachTime(t *testing.T) {
	facts := map[string]bool{}
	for turn := range 12 {
		text := mustFinish(t, conversation("r", turn+1, "go on", "")).text()
		facts[strings.Split(text, "\n\n")[1]] = true
	}
	if len(facts) != 12 {
		t.Errorf("twelve answers held %d different facts", len(facts))
	}
}

func TestDemoReadsPartsOfContent(t *testing.T) {
	in := conversation("r1", 1, "", "")
	in.JSON = []byte(strings.Replace(string(in.JSON), `"content":""`, `"content":[{"type":"image","source":{}},{"type":"text","text":"Hello "},{"type":"text","text":"wall"}]`, 1))
	if text := mustFinish(t, in).text(); !strings.Contains(text, "Hello again!") {
		t.Errorf("it answers %q", text)
	}
}

func TestDemoCallsATool(t *testing.T) {
	s := mustFinish(t, conversation("r1", 0, "Use a TOOL for the weather in New York, please", ""))
	want := []string{
		"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
		"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT",
		"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
	}
	if diff := cmp.Diff(want, s.types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if s.args != `{"city":"New York","unit":"celsius"}` {
		t.Errorf("the arguments are %s", s.args)
	}
	if !strings.HasPrefix(s.texts[1], "**New York**:") {
		t.Errorf("the result is not used: %s", s.texts[1])
	}
	for _, e := range s.events {
		if e["type"] == "TOOL_CALL_START" && (e["toolCallName"] != "weather" || !s.ids[e["parentMessageId"].(string)]) {
			t.Errorf("the call is %v", e)
		}
		if e["type"] == "TOOL_CALL_RESULT" && !json.Valid([]byte(e["content"].(string))) {
			t.Errorf("the result is %v", e)
		}
	}
}

func TestDemoFindsTheCity(t *testing.T) {
	tests := map[string]string{
		"tool":                                  "Lisbon",
		"tool Paris":                            "Paris",
		"tool paris":                            "Paris",
		"What is the weather in berlin?":        "Berlin",
		"weather for San Juan Pueblo Viejo now": "San Juan Pueblo",
		"Please call the weather Tool":          "Lisbon",
		"call a tool in the morning":            "Lisbon",
		"tool for Köln":                         "Köln",
		"weather in 東京":                         "東京",
		"the weather, in Aix-en-Provence":       "Aix-en-Provence",
	}
	for says, want := range tests {
		t.Run(says, func(t *testing.T) {
			s := mustFinish(t, conversation("r1", 0, says, ""))
			if !strings.HasPrefix(s.args, `{"city":"`+want+`",`) {
				t.Errorf("the arguments are %s; want %s", s.args, want)
			}
		})
	}
}

func TestDemoSharesState(t *testing.T) {
	s := mustFinish(t, conversation("r1", 0, "state", `,"state":{"mine":[1.50],"plan":"old"}`))
	if diff := cmp.Diff([]any{1.5}, s.state.(map[string]any)["mine"]); diff != "" {
		t.Errorf("the application's own state (-want +got):\n%s", diff)
	}
	held := finalState(t, s)
	var state struct {
		Plan struct {
			Done  int
			Steps []struct{ Title, Status string }
		}
	}
	if err := json.Unmarshal(held, &state); err != nil {
		t.Fatal(err)
	}
	if state.Plan.Done != 4 || len(state.Plan.Steps) != 4 {
		t.Errorf("in the end the state is %s", held)
	}
	for _, step := range state.Plan.Steps {
		if step.Status != "done" || !strings.Contains(s.text(), step.Title) {
			t.Errorf("step %v is not done, or not in the text", step)
		}
	}
}

// finalState applies the patches of a run to its snapshot.
func finalState(t *testing.T, s shown) []byte {
	t.Helper()
	state, err := json.Marshal(s.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.events {
		if e["type"] != "STATE_DELTA" {
			continue
		}
		data, err := json.Marshal(e["delta"])
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			t.Fatal(err)
		}
		if state, err = patch.Apply(state); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

func TestDemoReasons(t *testing.T) {
	s := mustFinish(t, conversation("r1", 0, "Think first", ""))
	want := []string{
		"RUN_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END",
		"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED",
	}
	if diff := cmp.Diff(want, s.types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !strings.Contains(s.thoughts, "Think first") {
		t.Errorf("it thinks %s", s.thoughts)
	}
}

func TestDemoIsSilent(t *testing.T) {
	tests := map[string]time.Duration{
		"silence": 30 * time.Second, "quiet please, 5 seconds": 5 * time.Second, "silence 99999999999": 10 * time.Minute,
		"silence 0": 0, "silence 99999999999999999999": 30 * time.Second,
	}
	for says, want := range tests {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s, err := perform(t, agent.NewDemo(atOnce), conversation("r1", 0, says, ""))
				if err != nil || len(s.texts) != 2 {
					t.Errorf("got %q and %v", s.texts, err)
				}
				if said := fmt.Sprintf("%.0f seconds", want.Seconds()); !strings.Contains(s.text(), said) {
					t.Errorf("it does not say %s: %s", said, s.text())
				}
				if took := time.Since(began); took != want {
					t.Errorf("it was silent for %v; want %v", took, want)
				}
			})
		})
	}
}

func TestDemoFails(t *testing.T) {
	s, err := perform(t, agent.NewDemo(atOnce), conversation("r1", 0, "fail", ""))
	var failure *runner.AgentError
	if !errors.As(err, &failure) || failure.Code != "demo_failure" || failure.Message == "" {
		t.Errorf("Run returned %v", err)
	}
	if s.text() == "" || s.last()["type"] != "TEXT_MESSAGE_CONTENT" {
		t.Errorf("it failed after %v", s.types)
	}
}

func TestDemoAsksForApproval(t *testing.T) {
	s := mustFinish(t, conversation("r1", 0, "I want to approve something", ""))
	outcome := s.last()["outcome"].(map[string]any)
	interrupts := outcome["interrupts"].([]any)
	if outcome["type"] != "interrupt" || len(interrupts) != 1 {
		t.Fatalf("the outcome is %v", outcome)
	}
	asked := interrupts[0].(map[string]any)
	if asked["reason"] != "confirmation" || asked["id"] == "" || asked["message"] == "" {
		t.Errorf("the interrupt is %v", asked)
	}
}

func TestDemoHearsTheDecision(t *testing.T) {
	const resolved = `{"interruptId":"i","status":"resolved"`
	tests := map[string]struct {
		resume string
		want   string
	}{
		"resolved":                {resolved + `}`, "**Approved**"},
		"true":                    {resolved + `,"payload":true}`, "**Approved**"},
		"a form":                  {resolved + `,"payload":{"approved":true,"note":"go"}}`, "**Approved**"},
		"yes":                     {resolved + `,"payload":"Yes"}`, "**Approved**"},
		"false":                   {resolved + `,"payload":false}`, "**Declined.**"},
		"a form that says no":     {resolved + `,"payload":{"approved":false}}`, "**Declined.**"},
		"a form of another kind":  {resolved + `,"payload":{"x":1}}`, "**Declined.**"},
		"zero":                    {resolved + `,"payload":0}`, "**Declined.**"},
		"maybe":                   {resolved + `,"payload":"maybe"}`, "**Declined.**"},
		"cancelled":               {`{"interruptId":"i","status":"cancelled"}`, "**Declined.**"},
		"one of two is cancelled": {resolved + `},{"interruptId":"j","status":"cancelled"}`, "**Declined.**"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustFinish(t, conversation("r2", 1, "approve", `,"resume":[`+test.resume+`]`))
			if !strings.Contains(s.text(), test.want) {
				t.Errorf("it says %s", s.text())
			}
			if s.last()["outcome"] != nil {
				t.Errorf("it ends with %v", s.last())
			}
		})
	}
}

func TestDemoKnowsItsWords(t *testing.T) {
	for word, want := range map[string]string{
		"code": "```js", "table": "|---|", "help": "**silence**", "long": "# What it takes", "Essay": "# What it takes",
	} {
		t.Run(word, func(t *testing.T) {
			if text := mustFinish(t, conversation("r1", 1, "show me "+word+"!", "")).text(); !strings.Contains(text, want) {
				t.Errorf("it says %.200s", text)
			}
		})
	}
}

func TestDemoStopsAtOnce(t *testing.T) {
	stopped := errors.New("stopped by somebody")
	for _, word := range []string{"silence", "long", "tool", "state", "reasoning", "hello"} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				events := 0
				done := make(chan error, 1)
				go func() {
					done <- agent.NewDemo(agent.DemoOptions{}).Run(ctx, conversation("r1", 0, word, ""), func([]byte) error { events++; return nil })
				}()
				<-time.After(1010 * time.Millisecond)
				synctest.Wait()
				before := events
				began := time.Now()
				cancel(stopped)
				if err := <-done; err != stopped {
					t.Errorf("Run returned %v; want the cause", err)
				}
				if time.Since(began) != 0 || events != before {
					t.Errorf("it went on for %v and %d events", time.Since(began), events-before)
				}
			})
		})
	}
}

func TestDemoEndsWithTheErrorOfEmit(t *testing.T) {
	full := errors.New("no more events are taken")
	for n := range 40 {
		left := n
		err := agent.NewDemo(atOnce).Run(t.Context(), conversation("r1", 0, "tool", ""), func([]byte) error {
			if left == 0 {
				return full
			}
			left--
			return nil
		})
		if err != full || left != 0 {
			t.Fatalf("after %d events Run returned %v", n, err)
		}
	}
}

func TestDemoRefusesWhatIsNoInput(t *testing.T) {
	_, err := perform(t, agent.NewDemo(atOnce), runner.Input{ThreadID: "t", RunID: "r", JSON: []byte(`{"messages":1}`)})
	var failure *runner.AgentError
	if !errors.As(err, &failure) || failure.Code != "agent_bad_input" {
		t.Errorf("Run returned %v", err)
	}
}
