package web_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// joined is the answer to a join.
type joined struct {
	Cursor, Role, RunID, AgentID, Outcome string
	Resumed, Running                      bool
	StartedAt                             time.Time
	LastEventAgeMs                        *int
	Pending                               []any
}

func TestJoinAnswersHowTheThreadStands(t *testing.T) {
	agent := agenttest.New(said(2, 0), held(2))
	s := open(t, plan{agent: agent})

	t.Run("nobody has used it", func(t *testing.T) {
		got := decode[map[string]any](t, s.join("new", nil).Joined())
		want := `map[agentId:<nil> cursor:0-0 lastEventAgeMs:<nil> outcome:<nil> pending:[] pendingToolCalls:[] queue:[] resumed:false role:owner ` +
			`runId:<nil> running:false startedAt:<nil>]`
		if fmt.Sprint(got) != want {
			t.Fatalf("got  %v\nwant %s", got, want)
		}
	})
	s.finish("t", "r1")
	t.Run("its run has ended", func(t *testing.T) {
		got := decode[joined](t, s.join("t", nil).Joined())
		if got.Running || got.RunID != "r1" || got.AgentID != "demo" || got.Outcome != "finished" || got.Cursor != "0-0" {
			t.Fatalf("got %+v", got)
		}
	})
	s.start("t", "r2")
	<-agent.Mark("held")
	t.Run("a run is active", func(t *testing.T) {
		got := decode[joined](t, s.join("t", nil).Joined())
		if !got.Running || got.RunID != "r2" || got.Outcome != "" || got.LastEventAgeMs == nil || got.StartedAt.IsZero() {
			t.Fatalf("got %+v", got)
		}
	})
	t.Run("resumed", func(t *testing.T) {
		got := decode[joined](t, s.join("t", `{"after":"1-3"}`).Joined())
		if !got.Resumed || got.Cursor != "1-3" || !got.Running {
			t.Fatalf("got %+v", got)
		}
	})
	agent.Release("go")
}

func TestJoinBeginsWhereItIsAskedTo(t *testing.T) {
	agent := agenttest.New(said(50, 0), said(50, 0), held(10))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.finish("t", "r2")
	s.start("t", "r3")
	<-agent.Mark("held")
	s.logged("t", "3-12")

	tests := map[string]struct {
		payload string
		runs    string // the runs that come, with how many events of each, until caught_up
		exact   bool
	}{
		"everything, compacted":       {`{}`, "r1:5 r2:5 r3:3", false},
		"compacted when that is said": {`{"replay":"compact"}`, "r1:5 r2:5 r3:3", false},
		"everything, raw":             {`{"replay":"raw"}`, "r1:54 r2:54 r3:12", true},
		"null is as good as nothing":  {`{"after":null,"from":null,"replay":null,"input":null}`, "r1:5 r2:5 r3:3", false},
		"after the beginning":         {`{"after":"0-0"}`, "r1:5 r2:5 r3:3", false},
		"after a run":                 {`{"after":"1-55"}`, "r2:5 r3:3", false},
		"before a run's first event":  {`{"after":"3-0"}`, "r3:3", false},
		"within a run":                {`{"after":"2-52","replay":"raw"}`, "r2:2 r3:12", true},
		"within the live run":         {`{"after":"3-4"}`, "r3:8", true},
		"at the head":                 {`{"after":"3-12"}`, "", true},
		"from now on":                 {`{"from":"now"}`, "", true},
		"fields it does not know":     {`{"colour":"blue"}`, "r1:5 r2:5 r3:3", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &site{T: t, url: s.url, dial: s.dial}
			v := webtest.NewViewer("t", decode[map[string]any](t, []byte(tt.payload)))
			v.Exact = tt.exact
			if err := v.Join(within(t), s.client(webtest.Options{})); err != nil {
				t.Fatal(err)
			}
			s.until(v, webtest.CaughtUp)
			var got []string
			for _, r := range v.Runs {
				got = append(got, fmt.Sprintf("%s:%d", r.ID, len(r.Events)))
			}
			if got := strings.Join(got, " "); got != tt.runs {
				t.Fatalf("got %q, want %q", got, tt.runs)
			}
			if v.Cursor != "3-12" {
				t.Fatalf("caught up at %s", v.Cursor)
			}
		})
	}
	agent.Release("go")
}

func TestJoinIsRefused(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	tests := map[string]struct{ topic, payload, code string }{
		"a cursor that is none":        {"thread:t", `{"after":"yesterday"}`, "bad_cursor"},
		"a cursor with a sign":         {"thread:t", `{"after":"1--1"}`, "bad_cursor"},
		"a cursor in run 0":            {"thread:t", `{"after":"0-5"}`, "bad_cursor"},
		"a cursor that is a number":    {"thread:t", `{"after":1}`, "bad_cursor"},
		"a cursor ahead of the thread": {"thread:t", `{"after":"7-1"}`, "bad_cursor"},
		"an unknown replay":            {"thread:t", `{"replay":"all"}`, "bad_input"},
		"a replay that is a number":    {"thread:t", `{"replay":1}`, "bad_input"},
		"an unknown from":              {"thread:t", `{"from":"then"}`, "bad_input"},
		"from and after":               {"thread:t", `{"from":"now","after":"1-1"}`, "bad_input"},
		"an unknown input":             {"thread:t", `{"input":"messages"}`, "bad_input"},
		"a thread without a name":      {"thread:", `{}`, "bad_input"},
		"a control character":          {"thread:a\nb", `{}`, "bad_input"},
		"a name that is too long":      {"thread:" + strings.Repeat("x", 257), `{}`, "bad_input"},
		"another kind of topic":        {"room:t", `{}`, "unmatched_topic"},
		"the topic of the heartbeat":   {"phoenix", `{}`, "unmatched_topic"},
	}
	c := s.client(webtest.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Join(within(t), tt.topic, tt.payload)
			if webtest.Code(err) != tt.code || strings.Contains(err.Error(), "bad input: ") {
				t.Fatalf("got %v", err)
			}
			if _, err := c.Join(within(t), "thread:t", nil); err != nil {
				t.Fatalf("the socket is not fit for a good join afterwards: %v", err)
			}
		})
	}
}

func TestRequestsBehindARefusedJoinAreRefusedToo(t *testing.T) {
	s := open(t, plan{})
	frames := make(chan string, 10)
	c := s.client(webtest.Options{OnFrame: func(text []byte) { frames <- string(text) }})
	for _, text := range []string{
		`["1","1","thread:t","phx_join",{"after":"zz"}]`, `["1","2","thread:t","sync",{}]`,
		`["1","3","thread:t","run",{"messages":[]}]`,
	} {
		if err := c.SendText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// In any order: the read loop refuses by itself what comes when the membership is gone.
	want := map[string]string{`["1","1"`: "bad_cursor", `["1","2"`: "unmatched_topic", `["1","3"`: "unmatched_topic"}
	for len(want) > 0 {
		select {
		case got := <-frames:
			head := got[:min(len(got), len(`["1","1"`))]
			if code := want[head]; code == "" || !strings.Contains(got, code) {
				t.Fatalf("got %s, want %v", got, want)
			}
			delete(want, head)
		case <-within(t).Done():
			t.Fatal("no answer")
		}
	}
	if n := s.runner.Active(); n != 0 {
		t.Fatalf("%d runs were started", n)
	}
}

func TestResumeInARunThatWasCompactedIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, plan{pipe: true, agent: agenttest.New(said(20, 0)), runner: runner.Config{Retention: time.Second}})
		s.finish("t", "r1")
		s.finish("t", "r2")
		<-time.After(2 * time.Second) // of the bubble: both runs are gone from the live log
		v := s.viewer("t", nil)
		s.until(v, webtest.CaughtUp)
		for _, after := range []string{"1-10", "2-10"} {
			v := webtest.NewViewer("t", nil)
			v.Cursor = after
			if err := v.Join(within(t), s.client(webtest.Options{})); err != nil {
				t.Fatal(err)
			}
			s.until(v, webtest.CaughtUp)
			if v.Resets != 1 || v.Cursor != "2-25" || v.Run("r2") == nil {
				t.Fatalf("after %s: %d resets, at %s", after, v.Resets, v.Cursor)
			}
		}
	})
}

func TestACursorOfADeletedThreadIsResetAsAWhole(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	if response, body := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 204 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	s.finish("t", "r1")
	v := webtest.NewViewer("t", nil)
	v.Cursor = "1-4"
	if err := v.Join(within(t), s.client(webtest.Options{})); err != nil {
		t.Fatal(err)
	}
	s.until(v, webtest.CaughtUp)
	if v.Resets != 1 || v.Run("r1").Number != 2 {
		t.Fatalf("%d resets, run %d", v.Resets, v.Run("r1").Number)
	}
}

func TestInputComesAsEventsWhenAskedFor(t *testing.T) {
	s := open(t, plan{agent: agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(finished)})})
	ch := s.join("t", nil)
	if _, err := ch.Push(within(t), "run",
		`{"runId":"r1","messages":[{"id":"m1","role":"user","content":"Hello"}]}`); err != nil {
		t.Fatal(err)
	}
	plain, projected := s.viewer("t", nil), s.viewer("t", map[string]any{"input": "events"})
	s.until(plain, webtest.Ended("r1"))
	s.until(projected, webtest.Ended("r1"))
	if got := strings.Join(plain.Run("r1").Types, " "); got != "RUN_STARTED RUN_FINISHED" {
		t.Fatalf("plain: %s", got)
	}
	want := "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"
	if got := strings.Join(projected.Run("r1").Types, " "); got != want {
		t.Fatalf("projected: %s", got)
	}
	if plain.Cursor != projected.Cursor {
		t.Fatalf("positions differ: %s and %s", plain.Cursor, projected.Cursor)
	}
}
