package web_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestRunIsAcceptedOnce(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	ch := s.join("t", nil)
	const payload = `{"runId":"r1","messages":[{"id":"m1","role":"user","content":"Hi"}],"state":{"big":12345678901234567890}}`
	for range 3 {
		got, err := ch.Push(within(t), "run", payload)
		if err != nil || string(got) != `{"runId":"r1","cursor":"1-0"}` {
			t.Fatalf("%s, %v", got, err)
		}
	}
	<-agent.Mark("held")
	agent.Release("go")
	s.until(s.viewer("t", nil), webtest.Ended("r1"))
	if got, err := ch.Push(within(t), "run", payload); err != nil || string(got) != `{"runId":"r1","cursor":"1-0"}` {
		t.Fatalf("after its end: %s, %v", got, err)
	}
	if n := agent.Invocations(); n != 1 {
		t.Fatalf("the agent ran %d times", n)
	}
	if in := string(agent.Inputs()[0].JSON); !strings.Contains(in, `"state":{"big":12345678901234567890}`) {
		t.Fatalf("the agent got %s", in)
	}
}

func TestRunWithoutAnIDGetsOne(t *testing.T) {
	s := open(t, plan{})
	got, err := s.join("t", nil).Push(within(t), "run", `{"messages":[],"runId":null}`)
	if err != nil {
		t.Fatal(err)
	}
	reply := decode[struct{ RunID, Cursor string }](t, got)
	if reply.RunID == "" || reply.Cursor != "1-0" {
		t.Fatalf("got %s", got)
	}
	s.until(s.viewer("t", nil), webtest.Ended(reply.RunID))
}

func TestRequestsAreRefused(t *testing.T) {
	agent := agenttest.New(said(1, 0), held(1))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.start("t", "r2")
	<-agent.Mark("held")
	ch := s.join("t", `{"after":"1-6"}`)
	tests := map[string]struct{ event, payload, code, message string }{
		"another run is active":           {"run", `{"runId":"r3","messages":[]}`, "thread_busy", "run r2 is active"},
		"no such agent":                   {"run", `{"agentId":"nobody","messages":[]}`, "unknown_agent", `"nobody"`},
		"an agent that is a number":       {"run", `{"agentId":1,"messages":[]}`, "bad_input", "agentId is not a string"},
		"a run id of another agent's run": {"run", `{"agentId":"other","runId":"r1","messages":[]}`, "run_id_used", "r1"},
		"no messages":                     {"run", `{}`, "bad_input", "messages is missing"},
		"messages that are null":          {"run", `{"messages":null}`, "bad_input", "messages"},
		"messages that are no list":       {"run", `{"messages":{}}`, "bad_input", "messages"},
		"a message without id":            {"run", `{"messages":[{"role":"user"}]}`, "bad_input", "messages[0].id"},
		"tools that are no list":          {"run", `{"messages":[],"tools":1}`, "bad_input", "tools"},
		"a run id that is a number":       {"run", `{"messages":[],"runId":7}`, "bad_input", "runId is not a string"},
		"a run id that is empty":          {"run", `{"messages":[],"runId":""}`, "bad_input", "runId is missing or empty"},
		"a run id that is too long":       {"run", `{"messages":[],"runId":"` + strings.Repeat("r", 257) + `"}`, "bad_input", "257 bytes"},
		"onBusy that is not there":        {"run", `{"messages":[],"onBusy":"wait"}`, "bad_input", "enqueue"},
		"onBusy that is a list":           {"run", `{"messages":[],"onBusy":[]}`, "bad_input", "onBusy is not a string"},
		"stop with a number":              {"stop", `{"runId":1}`, "bad_input", "runId is not a string"},
		"stop_run with a number":          {"stop_run", `{"run_id":1}`, "bad_input", "run_id is not a string"},
		"sync with a bad cursor":          {"sync", `{"after":"x"}`, "bad_cursor", `"x"`},
		"sync with a number":              {"sync", `{"after":1}`, "bad_cursor", "after is not a string"},
		"sync before the beginning":       {"sync", `{"after":"1-2"}`, "bad_cursor", "1-6"},
		"an unknown event":                {"jump", `{}`, "unknown_event", `"jump"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ch.Push(within(t), tt.event, tt.payload)
			var refused *webtest.Refused
			if !errors.As(err, &refused) || refused.Code != tt.code || !strings.Contains(refused.Message, tt.message) {
				t.Fatalf("got %v", err)
			}
			if strings.HasPrefix(refused.Message, "bad ") {
				t.Fatalf("the message repeats the code: %s", refused.Message)
			}
			if tt.code == "thread_busy" && refused.RunID != "r2" {
				t.Fatalf("the active run is %q", refused.RunID)
			}
		})
	}
	if agent.Invocations() != 2 {
		t.Fatalf("the agent ran %d times", agent.Invocations())
	}
	agent.Release("go")
}

func TestStopAnswersWhenTheRunHasEnded(t *testing.T) {
	for _, verb := range []struct{ event, payload string }{
		{"stop", `{"runId":"r1"}`}, {"stop", `{}`}, {"stop_run", `{"run_id":"r1"}`}, {"stop_run", `{"runId":"r1"}`},
		{"stop", `{"runId":null}`},
	} {
		t.Run(verb.event+verb.payload, func(t *testing.T) {
			agent := agenttest.New(held(3), said(1, 0))
			s := open(t, plan{agent: agent})
			v := s.viewer("t", nil)
			s.start("t", "r1")
			<-agent.Mark("held")
			if got, err := v.Channel().Push(within(t), "stop", `{"runId":"r0"}`); err != nil || string(got) != `{"stopped":false}` {
				t.Fatalf("another run: %s, %v", got, err)
			}
			got, err := v.Channel().Push(within(t), verb.event, verb.payload)
			if err != nil {
				t.Fatal(err)
			}
			s.until(v, webtest.Ended("r1"))
			reply := decode[struct {
				Stopped       bool
				RunID, Cursor string
			}](t, got)
			if !reply.Stopped || reply.RunID != "r1" {
				t.Fatalf("got %s", got)
			}
			if _, err := v.Channel().Push(within(t), "run", `{"runId":"r2","messages":[]}`); err != nil {
				t.Fatalf("the thread takes no new run: %v", err)
			}
			s.until(v, webtest.Ended("r2"))
			if want := fmt.Sprintf("1-%d", v.Run("r1").To); reply.Cursor != want {
				t.Fatalf("stopped at %s, but the run ends at %s", reply.Cursor, want)
			}
			if got, err := v.Channel().Push(within(t), "stop", `{}`); err != nil || string(got) != `{"stopped":false}` {
				t.Fatalf("idle: %s, %v", got, err)
			}
		})
	}
}

func TestStatusTellsHowTheThreadStands(t *testing.T) {
	agent := agenttest.New(held(2))
	s := open(t, plan{agent: agent})
	ch := s.join("t", nil)
	status := func() joined {
		t.Helper()
		text, err := ch.Push(within(t), "status", nil)
		if err != nil {
			t.Fatal(err)
		}
		return decode[joined](t, text)
	}
	if got := status(); got.Running || got.RunID != "" || got.Cursor != "0-0" {
		t.Fatalf("before: %+v", got)
	}
	s.start("t", "r1")
	<-agent.Mark("held")
	s.until(s.viewer("t", nil), webtest.Seen(3))
	if got := status(); !got.Running || got.RunID != "r1" || got.AgentID != "demo" || got.Cursor != "1-4" ||
		got.LastEventAgeMs == nil || got.StartedAt.IsZero() || got.Outcome != "" {
		t.Fatalf("during: %+v", got)
	}
	agent.Release("go")
	s.until(s.viewer("t", nil), webtest.Ended("r1"))
	s.saved("t", "r1")
	if got := status(); got.RunID != "r1" || got.Outcome != "finished" || got.Cursor != "1-7" || got.LastEventAgeMs != nil {
		t.Fatalf("after: %+v", got)
	}
}

func TestStatusShowsWhatWaitsForAnAnswer(t *testing.T) {
	s := open(t, plan{agent: agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(
		`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","n":1e400}]}}`)})})
	s.finish("t", "r1")
	text, err := s.join("t", nil).Push(within(t), "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"outcome":"waiting","pending":[{"id":"i1","reason":"approval","n":1e400}]`) {
		t.Fatalf("got %s", text)
	}
}

// broken is Runs whose storage does not answer, in words that clients must not see.
type broken struct {
	web.Runs
	status error
}

var errDisk = fmt.Errorf("write /secret/path.db: disk I/O error: %w", thread.ErrUnavailable)

func (b broken) Run(context.Context, thread.Request) (thread.Accepted, error) {
	return thread.Accepted{}, errDisk
}

func (b broken) Stop(context.Context, thread.ID, thread.RunID, string) (thread.Stopped, error) {
	return thread.Stopped{}, fmt.Errorf("find who holds the thread: %w", thread.ErrCorrupt)
}

func (b broken) Status(context.Context, thread.ID) (thread.Status, error) {
	return thread.Status{Pending: []byte("{")}, b.status
}

func TestFailuresOfTheInsideAreLoggedAndNotTold(t *testing.T) {
	s := open(t, plan{parts: func(p *web.Parts) { p.Runs = broken{Runs: p.Runs, status: errors.New("/secret/bug")} }})
	_, err := s.client(webtest.Options{}).Join(within(t), "thread:t", nil)
	if webtest.Code(err) != "internal" || strings.Contains(err.Error(), "secret") {
		t.Fatalf("join: %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, "/secret/bug") {
		t.Fatalf("the log does not say what happened: %s", log)
	}
	for path, code := range map[string]string{"runs": "unavailable", "stop": "damaged"} {
		response, body := s.request("POST", "/api/threads/t/"+path, `{"messages":[]}`)
		if got := decode[web.Problem](t, []byte(body)); got.Code != code || strings.Contains(body, "secret") ||
			response.StatusCode < 500 {
			t.Fatalf("%s: %d %s", path, response.StatusCode, body)
		}
	}
}

func TestAnAnswerThatCannotBeWrittenIsAnErrorAndNoCrash(t *testing.T) {
	s := open(t, plan{parts: func(p *web.Parts) { p.Runs = broken{Runs: p.Runs} }})
	if _, err := s.client(webtest.Options{}).Join(within(t), "thread:t", nil); webtest.Code(err) != "internal" {
		t.Fatalf("got %v", err)
	}
}

// slow is Runs whose Status waits for the test.
type slow struct {
	web.Runs
	entered chan struct{}
	leave   chan struct{}
}

func (b slow) Status(ctx context.Context, id thread.ID) (thread.Status, error) {
	select {
	case b.entered <- struct{}{}:
	default:
	}
	select {
	case <-b.leave:
	case <-ctx.Done():
		return thread.Status{}, ctx.Err()
	}
	return b.Runs.Status(ctx, id)
}

func TestTooManyWaitingRequestsAreRefused(t *testing.T) {
	b := slow{entered: make(chan struct{}, 1), leave: make(chan struct{})}
	s := open(t, plan{parts: func(p *web.Parts) { b.Runs = p.Runs; p.Runs = b }})
	c := s.client(webtest.Options{})
	go func() { b.leave <- struct{}{} }() // lets the join through
	ch, err := c.Join(within(t), "thread:t", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { b.leave <- struct{}{} }() // and its caught_up
	s.next(ch, "caught_up")
	for len(b.entered) > 0 {
		<-b.entered
	}
	const more = 10
	replies := make(chan error, 1+64+more)
	ask := func() {
		_, err := ch.Push(within(t), "status", nil)
		replies <- err
	}
	go ask()
	<-b.entered // it is being answered; 64 may wait behind it
	for range 64 + more {
		go ask()
	}
	for range more {
		if err := <-replies; webtest.Code(err) != "rate_limited" {
			t.Fatalf("got %v", err)
		}
	}
	if err := c.Heartbeat(within(t)); err != nil {
		t.Fatalf("the socket does not go on meanwhile: %v", err)
	}
	close(b.leave)
	for range 1 + 64 {
		if err := <-replies; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSyncNeverRepeatsAndNeverMisses(t *testing.T) {
	for _, form := range []string{"compact", "raw"} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				agent := agenttest.New(said(100, 37*time.Millisecond))
				s := open(t, plan{pipe: true, agent: agent})
				v := s.viewer("t", map[string]any{"replay": form})
				v.Exact = true
				s.start("t", "r1")
				syncs := 0
				for !webtest.Ended("r1")(v) {
					if _, err := v.Channel().Push(t.Context(), "sync", map[string]string{"after": v.Cursor}); err != nil {
						t.Fatal(err)
					}
					syncs++
					was := v.CaughtUp
					s.until(v, func(v *webtest.Viewer) bool { return v.CaughtUp > was })
					<-time.After(100 * time.Millisecond)
				}
				if got := len(v.Run("r1").Events); got != 104 || syncs < 30 {
					t.Fatalf("%d events after %d syncs", got, syncs)
				}
			})
		})
	}
}
