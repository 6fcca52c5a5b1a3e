package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
)

const whole = "1-1=RUN_STARTED 1-2=TEXT_MESSAGE_START 1-3=0 1-4=1 1-5=2 1-6=TEXT_MESSAGE_END 1-7=RUN_FINISHED"

func TestARunOverHTTP(t *testing.T) {
	t.Run("streams from its beginning to its end", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		if got := brief(s.rest(s.stream("POST", "/agui/demo", input("t", "r1")))); got != whole {
			t.Errorf("got %s", got)
		}
	})
	t.Run("is found again by its id", func(t *testing.T) {
		agent := agenttest.New(held(3))
		s := open(t, plan{agent: agent})
		s.take(s.stream("POST", "/agui/demo", input("t", "r1")), 2)
		again := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.take(again, 5)
		agent.Release("go")
		s.rest(again)
		if got := brief(s.rest(s.stream("POST", "/agui/demo", input("t", "r1")))); got != whole {
			t.Errorf("got %s", got)
		}
		if n := agent.Invocations(); n != 1 {
			t.Errorf("the agent was asked %d times", n)
		}
	})
	t.Run("goes on after Last-Event-ID", func(t *testing.T) {
		agent := agenttest.New(held(3))
		s := open(t, plan{agent: agent})
		first := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.take(first, 4)
		again := s.stream("POST", "/agui/demo", input("t", "r1"), "Last-Event-ID", first.LastID())
		s.take(again, 1)
		agent.Release("go")
		if got := brief(s.rest(again)); got != "1-6=TEXT_MESSAGE_END 1-7=RUN_FINISHED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of which nothing is missing is no content", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		stream := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.rest(stream)
		s.saved("t", "r1")
		s.finish("t", "r2")
		response, err := s.ask("POST", "/agui/demo", input("t", "r1"), "Last-Event-ID", stream.LastID())
		if err != nil || response.StatusCode != 204 {
			t.Fatalf("%v, %v", response, err)
		}
	})
	t.Run("begins anew where its cursor is no more", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		s.finish("t", "r1")
		s.lose("t", 1)
		stream := s.stream("POST", "/agui/demo", input("t", "r1"), "Last-Event-ID", "1-4")
		want := `1-0=reset{"runId":"r1","from":"1-0"} -=RUN_STARTED -=TEXT_MESSAGE_START -=0 1 2 -=TEXT_MESSAGE_END 1-8=RUN_FINISHED`
		if got := brief(s.rest(stream)); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("that fails ends with its error", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New([]agenttest.Step{agenttest.Emit(`{"type":"RUN_ERROR","message":"no"}`)})})
		if got := brief(s.rest(s.stream("POST", "/agui/demo", input("t", "r1")))); got != "1-1=RUN_STARTED 1-2=RUN_ERROR" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("that is stopped ends with what closes it", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(held(1))})
		stream := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.take(stream, 3)
		s.request("POST", "/api/threads/t/stop", "")
		if got := brief(s.rest(stream)); got != "1-4=TEXT_MESSAGE_END 1-5=RUN_FINISHED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("whose thread is deleted ends with an error", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(held(1))})
		stream := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.take(stream, 3)
		s.request("DELETE", "/api/threads/t", "")
		events := s.rest(stream)
		last := events[len(events)-1].Data
		if !strings.Contains(last, `"RUN_FINISHED"`) && !strings.Contains(last, `"thread_deleted"`) {
			t.Errorf("it ended with %s", last)
		}
	})
	t.Run("whose thread is deleted before it is watched ends with an error", func(t *testing.T) {
		var s *site
		s = open(t, plan{parts: func(p *web.Parts) {
			p.Runs = undone{p.Runs, func() {
				if err := s.runner.Delete(t.Context(), "t", "somebody"); err != nil {
					t.Error(err)
				}
			}}
		}})
		events := s.rest(s.stream("POST", "/agui/demo", input("t", "r1")))
		if len(events) != 1 || !strings.Contains(events[0].Data, `"thread_deleted"`) {
			t.Errorf("got %v", events)
		}
	})
	t.Run("carries events as the agent wrote them", func(t *testing.T) {
		odd := "{\n  \"type\": \"CUSTOM\",\n\n \"name\":\"n\", \"value\": 12345678901234567890, \"x\":\"\\ud800\"}"
		s := open(t, plan{agent: agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(odd), agenttest.Emit(finished)})})
		if got := s.rest(s.stream("POST", "/agui/demo", input("t", "r1")))[1].Data; got != odd {
			t.Errorf("got %q", got)
		}
	})
}

// undone lets something happen right after a run was accepted.
type undone struct {
	web.Runs
	after func()
}

func (u undone) Run(ctx context.Context, req thread.Request) (thread.Accepted, error) {
	acc, err := u.Runs.Run(ctx, req)
	u.after()
	return acc, err
}

func TestARunOverHTTPHandsItsInputOn(t *testing.T) {
	agent := agenttest.New(said(1, 0))
	s := open(t, plan{agent: agent})
	body := `{"threadId":"t","runId":"r1","parentRunId":"p","protocolVersion":"1.0","state":{"n":1e400},"messages":[{"id":"u","role":"user","content":"\u00e4","x":[1 , 2]}],` +
		`"tools":[{"name":"f"}],"context":[],"forwardedProps":{"a":1},"unheard":1,"onBusy":"replace"}`
	s.rest(s.stream("POST", "/agui/demo", body))
	want := `{"threadId":"t","runId":"r1","parentRunId":"p","protocolVersion":"1.0","state":{"n":1e400},"messages":[{"id":"u","role":"user","content":"\u00e4","x":[1 , 2]}],` +
		`"tools":[{"name":"f"}],"context":[],"forwardedProps":{"a":1}}`
	if got := string(agent.Inputs()[0].JSON); got != want {
		t.Errorf("the agent got %s", got)
	}
}

func TestARunOverHTTPOnABusyThread(t *testing.T) {
	busy := func(t *testing.T) (*site, *agenttest.Agent) {
		agent := agenttest.New(held(1), said(1, 0))
		s := open(t, plan{agent: agent})
		s.take(s.stream("POST", "/agui/demo", input("t", "r1")), 3)
		return s, agent
	}
	t.Run("is refused", func(t *testing.T) {
		s, agent := busy(t)
		response, body := s.request("POST", "/agui/demo", input("t", "r2"))
		p := decode[web.Problem](t, []byte(body))
		if response.StatusCode != 409 || p.Code != "thread_busy" || p.RunID != "r1" || !strings.Contains(p.Message, "r1 is active") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
		agent.Release("go")
	})
	t.Run("waits for its turn", func(t *testing.T) {
		s, agent := busy(t)
		queued := s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"))
		agent.Release("go")
		if got := brief(s.rest(queued)); got != "2-1=RUN_STARTED 2-2=TEXT_MESSAGE_START 2-3=0 2-4=TEXT_MESSAGE_END 2-5=RUN_FINISHED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("is found again while it waits", func(t *testing.T) {
		s, agent := busy(t)
		s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"))
		again := s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"), "Last-Event-ID", "1-2")
		agent.Release("go")
		if events := s.rest(again); len(events) != 5 {
			t.Errorf("got %s", brief(events))
		}
	})
	t.Run("ends when it is taken out of the queue", func(t *testing.T) {
		s, agent := busy(t)
		queued := s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"))
		s.request("POST", "/api/threads/t/stop", `{"runId":"r2"}`)
		s.hub.Changed("t") // as the runner's board does, which this site has not got
		events := s.rest(queued)
		if len(events) != 1 || !strings.Contains(events[0].Data, `"code":"stopped"`) {
			t.Errorf("got %v", events)
		}
		agent.Release("go")
	})
	t.Run("takes the place of the active one, whose stream ends", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(held(1), said(1, 0))})
		first := s.stream("POST", "/agui/demo", input("t", "r1"))
		s.take(first, 3)
		second := s.stream("POST", "/agui/demo?onBusy=replace", input("t", "r2"))
		if got := brief(s.rest(second)); !strings.HasSuffix(got, "RUN_FINISHED") || !strings.HasPrefix(got, "2-1=RUN_STARTED") {
			t.Errorf("the new one: %s", got)
		}
		// Perhaps as history has it: then the first of them has no position of its own.
		if got := brief(s.rest(first)); !strings.Contains(got, "=TEXT_MESSAGE_END 1-") || !strings.HasSuffix(got, "=RUN_FINISHED") {
			t.Errorf("the old one: %s", got)
		}
	})
}

func TestARunOverHTTPIsRefused(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxFrame: 1000}})
	s.finish("t", "r1")
	s.finish("t", "r2")
	ok := input("t", "r9")
	for name, tt := range map[string]struct {
		method, path, body, after string
		status                    int
		code                      string
	}{
		"of no agent":               {"POST", "/agui/nobody", ok, "", 404, "unknown_agent"},
		"by another method":         {"PUT", "/agui/demo", ok, "", 405, "method_not_allowed"},
		"by GET":                    {"GET", "/agui/demo", "", "", 405, "method_not_allowed"},
		"without a body":            {"POST", "/agui/demo", "", "", 400, "bad_input"},
		"without threadId":          {"POST", "/agui/demo", `{"runId":"r","messages":[]}`, "", 400, "bad_input"},
		"without runId":             {"POST", "/agui/demo", `{"threadId":"t","messages":[]}`, "", 400, "bad_input"},
		"without messages":          {"POST", "/agui/demo", `{"threadId":"t","runId":"r"}`, "", 400, "bad_input"},
		"with a message without id": {"POST", "/agui/demo", `{"threadId":"t","runId":"r","messages":[{"role":"user"}]}`, "", 400, "bad_input"},
		"with a threadId no string": {"POST", "/agui/demo", `{"threadId":1,"runId":"r","messages":[]}`, "", 400, "bad_input"},
		"with an unknown onBusy":    {"POST", "/agui/demo?onBusy=x", ok, "", 400, "bad_input"},
		"with what is no cursor":    {"POST", "/agui/demo", ok, "x", 400, "bad_cursor"},
		"with a cursor beyond it":   {"POST", "/agui/demo", input("t", "r1"), "2-1", 400, "bad_cursor"},
		"when it is too large":      {"POST", "/agui/demo", strings.Repeat("x", 1001), "", 413, "too_large"},
		"whose id was of another":   {"POST", "/agui/other", input("t", "r1"), "", 409, "run_id_used"},
		"a bad thread":              {"GET", "/agui/threads/a%0Ab/events", "", "", 400, "bad_input"},
		"a cursor of no run":        {"GET", "/agui/threads/t/events", "", "9-9", 400, "bad_cursor"},
		"an unknown replay":         {"GET", "/agui/threads/t/events?replay=x", "", "", 400, "bad_input"},
		"an unknown until":          {"GET", "/agui/threads/t/events?until=x", "", "", 400, "bad_input"},
		"discarded what":            {"GET", "/agui/threads/t/events?discarded=x", "", "", 400, "bad_input"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{T: t, url: s.url, dial: s.dial}
			response, err := s.ask(tt.method, tt.path, tt.body, "Last-Event-ID", tt.after)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text := make([]byte, 1000)
			n, _ := response.Body.Read(text)
			if p := decode[web.Problem](t, text[:n]); response.StatusCode != tt.status || p.Code != tt.code || p.Message == "" {
				t.Fatalf("%d %s", response.StatusCode, text[:n])
			}
		})
	}
	if _, err := s.past.FindRun(t.Context(), "t", thread.RunID("r9")); err == nil {
		t.Error("a run that was refused is recorded")
	}
}

func TestAQueuedRunIsKeptAlive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		agent := agenttest.New(held(1), said(1, 0))
		s := open(t, plan{pipe: true, agent: agent})
		s.take(s.stream("POST", "/agui/demo", input("t", "r1")), 3)
		began := time.Now()
		queued := s.stream("POST", "/agui/demo?onBusy=enqueue", input("t", "r2"))
		if e, err := queued.Next(); err != nil || e.Comment == "" || time.Since(began) != 15*time.Second {
			t.Fatalf("got %+v, %v after %s", e, err, time.Since(began))
		}
		agent.Release("go")
		s.rest(queued)
	})
}
