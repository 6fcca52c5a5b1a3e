package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

const (
	begins = `{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`
	ends   = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`
	opens  = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	talks  = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"word "}`
	closes = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
)

func emits(events ...string) (steps []agenttest.Step) {
	for _, event := range events {
		steps = append(steps, agenttest.Emit(event))
	}
	return steps
}

func sse(text string) agenttest.Step { return agenttest.SSE(text, agenttest.OnePiece) }

// misbehaviours are agents as docs/runs.md has them, over HTTP, and how their runs end. Those inside the server that panic
// or ignore that they are cancelled are tested with the runner (TestAgentEnds, TestStopThenRun).
var misbehaviours = []struct {
	name  string
	flags []string
	steps []agenttest.Step
	state string
	code  string
	types string // of the events; empty for any
}{
	{"goes on after its end", nil, append(emits(begins, ends), emits(opens, talks, closes, ends, begins)...),
		"finished", "", "RUN_STARTED RUN_FINISHED"},
	{"writes a member in other letters", nil, emits(begins, `{"type":"CUSTOM","TYPE":"RUN_FINISHED","name":"n","value":1}`, opens, closes, ends),
		"finished", "", "RUN_STARTED CUSTOM TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED"},
	{"writes a member twice", nil, emits(begins, `{"type":"RUN_FINISHED","type":"CUSTOM","name":"n","value":1}`, ends),
		"finished", "", "RUN_STARTED CUSTOM RUN_FINISHED"},
	{"sends half an event", nil, []agenttest.Step{agenttest.Emit(begins), agenttest.Emit(opens), sse("data: {\"type\":\"TEXT_MES\n\n")},
		"failed", "agent_bad_stream", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
	{"breaks off within an event", nil, []agenttest.Step{agenttest.Emit(begins), sse("data: {\"type\":\"TEXT_MES")},
		"failed", "agent_truncated", "RUN_STARTED RUN_ERROR"},
	{"ends without an end", nil, emits(begins, opens, talks), "failed", "stream_truncated",
		"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_ERROR"},
	{"says nothing at all", nil, nil, "failed", "stream_truncated", "RUN_STARTED RUN_ERROR"},
	{"ends with a text open", nil, emits(begins, opens, ends), "failed", "bad_event",
		"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
	{"names another run", nil, emits(begins, `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"other"}`), "failed", "bad_event",
		"RUN_STARTED RUN_ERROR"},
	{"sends 40 MB in one event", nil, append(emits(begins, opens, talks, closes),
		agenttest.Emit(`{"type":"CUSTOM","name":"n","value":"`+strings.Repeat("z", 40_000_000)+`"}`)),
		"failed", "event_too_large", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_ERROR"},
	{"sends 100 MB in one event", nil, append(emits(begins), agenttest.BigResult("k", "b", 100_000_000)),
		"failed", "event_too_large", "RUN_STARTED RUN_ERROR"},
	{"takes too long", []string{"--max-run-time", "500ms"},
		[]agenttest.Step{agenttest.Emit(begins), agenttest.Emit(opens), agenttest.Repeat(1_000_000, talks, 10*time.Millisecond)},
		"timed_out", "", ""},
	{"falls silent", []string{"--max-silence", "300ms"}, append(emits(begins, opens, talks), agenttest.WaitFor("never")),
		"timed_out", "agent_silent", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_ERROR"},
	{"never says a word", []string{"--max-silence", "300ms"}, []agenttest.Step{agenttest.WaitFor("never")},
		"timed_out", "agent_silent", "RUN_STARTED RUN_ERROR"},
	{"sends too many events", []string{"--max-events", "100"}, []agenttest.Step{
		agenttest.Emit(begins), agenttest.Emit(opens), agenttest.Repeat(1_000_000, talks, 0)}, "failed", "too_many_events", ""},
	{"sends too much", []string{"--max-run", "10000"}, []agenttest.Step{
		agenttest.Emit(begins), agenttest.Emit(opens), agenttest.Repeat(1_000_000, talks, 0)}, "failed", "run_too_large", ""},
}

func TestAgentsThatMisbehaveHarmNobody(t *testing.T) {
	for _, c := range misbehaviours {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			agent := agenttest.NewServer(t)
			agent.Handle("a", c.steps, emits(begins, opens, talks, closes, ends))
			n := start(t, append([]string{"--agent", "a=agui:" + agent.URL("a")}, c.flags...)...)
			n.startRun("t", runRequest{RunID: "r1", Messages: says("u1", "go")})
			end := n.ended("t", "r1")
			if end.State != c.state || end.Code != c.code {
				t.Errorf("the run is %s %q (%s), want %s %q", end.State, end.Code, end.Error, c.state, c.code)
			}
			if (end.State == "failed" || end.State == "timed_out") && end.Error == "" {
				t.Error("nothing tells people why")
			}
			v := webtest.NewViewer("t", nil)
			socket, err := n.dial(nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(socket.Drop)
			if err := v.Join(t.Context(), socket); err != nil {
				t.Fatal(err)
			}
			if err := v.Until(t.Context(), webtest.CaughtUp); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(v.Run("r1").Types, " "); c.types != "" && got != c.types {
				t.Errorf("the events are\n%s, want\n%s", got, c.types)
			}
			n.startRun("t", runRequest{RunID: "r2", Messages: says("u2", "again")})
			if next := n.ended("t", "r2"); next.State != "finished" {
				t.Errorf("the next run is %+v", next)
			}
		})
	}
}

// An agent that sends as fast as it can is held back: nothing of a hundred thousand events is lost.
func TestAFloodOfEventsIsTakenWhole(t *testing.T) {
	events := 100_000
	if !full {
		events = 20_000
	}
	agent := agenttest.NewServer(t)
	agent.Handle("a", append(append(emits(begins, opens), agenttest.Repeat(events, talks, 0)), emits(closes, ends)...))
	n := start(t, "--agent", "a=agui:"+agent.URL("a"))
	began := time.Now()
	n.startRun("t", runRequest{RunID: "r1"})
	end := n.ended("t", "r1")
	t.Logf("measured: %d events in %s", events, time.Since(began))
	if want := fmt.Sprintf("1-%d", events+5); end.State != "finished" || end.End != want {
		t.Errorf("the run is %+v, want its end at %s", end, want)
	}
	words := 0
	for _, b := range n.record("t", "", "compact") {
		for _, event := range b.Events {
			words += strings.Count(string(event), "word ")
		}
	}
	if words != events {
		t.Errorf("%d words of %d are there", words, events)
	}
}

// Every type of AG-UI that there is or might be is carried as it is; those that are not allowed where they come end the
// run by its name.
func TestUnknownTypesAreCarried(t *testing.T) {
	agent := agenttest.NewServer(t)
	var unknown []string
	for _, name := range []string{"THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_CONTENT",
		"THINKING_TEXT_MESSAGE_END", "FUTURE_EVENT", "run_finished", "Run_Error", "META_EVENT", " ", "\\u0000"} {
		unknown = append(unknown, fmt.Sprintf(`{"x":[1e400,null,{"a":1,"a":2}],"type":"%s","messageId":7}`, name))
	}
	agent.Handle("a", append(emits(begins), append(emits(unknown...), emits(ends)...)...))
	n := start(t, "--agent", "a=agui:"+agent.URL("a"))
	n.startRun("t", runRequest{RunID: "r1"})
	if end := n.ended("t", "r1"); end.State != "finished" {
		t.Fatalf("the run is %+v", end)
	}
	for _, replay := range []string{"compact", "raw"} {
		var got []string
		for _, b := range n.record("t", "", replay) {
			for _, event := range b.Events {
				got = append(got, string(event))
			}
		}
		if !slices.Equal(got[1:len(got)-1], unknown) {
			t.Errorf("%s replay has\n%s\nwant\n%s", replay, strings.Join(got, "\n"), strings.Join(unknown, "\n"))
		}
	}
}

// Every code with which threadcast ends a run is explained.
func TestEveryEndIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?:failure\(|Code:\s*|code[A-Za-z]*\s*=\s*)"([a-z]+(?:_[a-z]+)*)"`)
	found := map[string]bool{}
	for _, pattern := range []string{"../../runner/*.go", "../../runner/agent/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range code.FindAllSubmatch(text, -1) {
				found[string(m[1])] = true
			}
		}
	}
	if len(found) < 14 {
		t.Fatalf("only %d codes were found: %v", len(found), found)
	}
	for name := range found {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/runs.md does not explain %s", name)
		}
	}
}

// A second message on a busy thread waits, also through a kill -9; it is seen and can be taken out.
func TestQueueOutlivesTheProcess(t *testing.T) {
	agent := agenttest.NewServer(t)
	agent.Handle("a", append(emits(begins, opens, talks), agenttest.WaitFor("never")), emits(begins, opens, talks, closes, ends))
	n := start(t, "--agent", "a=agui:"+agent.URL("a"), "--lease", "1s", "--max-queue", "3")
	n.startRun("t", runRequest{RunID: "r1", Messages: says("u1", "first")})
	for i, run := range []string{"r2", "r3", "r4"} {
		if acc := n.startRun("t", runRequest{RunID: run, Messages: says("u-"+run, "ask "+run), OnBusy: "enqueue"}); acc.Queued != i+1 {
			t.Errorf("%s is accepted as %+v", run, acc)
		}
	}
	var p problem
	if code := n.do("POST", threadPath("t")+"/runs", runRequest{RunID: "r5", Messages: says("u5", "x"), OnBusy: "enqueue"}, &p); code != 429 || p.Code != "queue_full" {
		t.Errorf("the fourth gets %d %+v", code, p)
	}
	if q := n.thread("t").Status.Queue; len(q) != 3 || q[0].RunID != "r2" || q[0].Title != "ask r2" {
		t.Errorf("the queue is %+v", q)
	}
	if code := n.do("POST", threadPath("t")+"/stop", map[string]string{"runId": "r3"}, nil); code != 200 {
		t.Errorf("taking r3 out is answered with %d", code)
	}
	n.kill()
	n = n.restart()
	n.ended("t", "r4")
	var got []string
	for _, r := range n.thread("t").Runs {
		got = append(got, r.RunID+" "+r.State)
	}
	if want := []string{"r1 lost", "r2 finished", "r4 finished"}; !slices.Equal(got, want) {
		t.Errorf("the runs are %v, want %v", got, want)
	}
	var input struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal(agent.Inputs()[1], &input); err != nil {
		t.Fatal(err)
	}
	if ids := fmt.Sprint(input.Messages); ids != "[{u1} {m} {u-r2}]" {
		t.Errorf("the agent of r2 got the messages %s", ids)
	}
}

// A viewer who watches sees a replaced run vanish, and so does one who comes later.
func TestReplacedRunsVanish(t *testing.T) {
	agent := agenttest.NewServer(t)
	agent.Handle("a", append(emits(begins, opens, talks), agenttest.Mark("here"), agenttest.WaitFor("never")), emits(begins, opens, talks, closes, ends))
	n := start(t, "--agent", "a=agui:"+agent.URL("a"))
	watch := func(options map[string]any) *webtest.Viewer {
		v := webtest.NewViewer("t", options)
		v.Replaces = true
		client, err := n.dial(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Drop)
		if err := v.Join(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		return v
	}
	live := watch(nil)
	n.startRun("t", runRequest{RunID: "r1", Messages: says("u1", "first")})
	<-agent.Mark("here")
	if err := live.Until(t.Context(), func(v *webtest.Viewer) bool { return v.Run("r1") != nil && len(v.Run("r1").Events) >= 3 }); err != nil {
		t.Fatal(err)
	}
	n.startRun("t", runRequest{RunID: "r2", Messages: says("u1", "better"), OnBusy: "replace"})
	for _, v := range []*webtest.Viewer{live, watch(nil), watch(raw)} {
		if err := v.Until(t.Context(), webtest.Ended("r2")); err != nil {
			t.Fatal(err)
		}
		if v.Run("r1") != nil || !strings.Contains(string(v.Run("r2").Events[0]), "better") {
			t.Errorf("a viewer has %d runs: %s", len(v.Runs), v.Events())
		}
	}
	all := watch(map[string]any{"discarded": "include"})
	if err := all.Until(t.Context(), webtest.Ended("r2")); err != nil {
		t.Fatal(err)
	}
	if all.Run("r1") == nil {
		t.Error("who asks for it does not get what was discarded")
	}
	if runs := n.thread("t").Runs; len(runs) != 2 || runs[0].State != "stopped" {
		t.Errorf("the runs are %+v", runs)
	}
}
