package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

type runRecord struct {
	RunID, AgentID, PreviousRunID, ParentRunID, State, Code, Error, StoppedBy, End string
	Number                                                                         int
	Outcome                                                                        *string
	AcceptedAt, LastEventAt, EndedAt                                               *time.Time
	DurationMs                                                                     int
	Counts                                                                         struct{ Emitted, Stored, Bytes *int }
	Pending                                                                        []any
}

func TestARunIsShownWithAllThatIsKnownOfIt(t *testing.T) {
	const usage = `[ {"provider":"p","model":"<m>","inputTokens":1.0,"more":1e400} ]`
	s := open(t, plan{agent: agenttest.New(emits(started, begin,
		strings.Replace(word, "{i}", "a", 1), strings.Replace(word, "{i}", "b", 1), end,
		strings.Replace(asksFor, `"outcome"`, `"usage":`+usage+`,"outcome"`, 1)),
		emits(started, `{"type":"RUN_ERROR","message":"No luck <today>.","code":"bad"}`))})
	response, _ := s.request("POST", "/api/threads/t/runs", `{"runId":"r 1","parentRunId":"p","messages":[]}`)
	if response.StatusCode != 202 {
		t.Fatal(response.Status)
	}
	s.saved("t", "r 1")
	_, body := s.request("GET", "/api/threads/t/runs/r%201", "")
	if !strings.HasSuffix(body, `,"usage":`+usage+`,"pending":[ {"id":"i1","reason":"sure?","n":1e400} ]}`) {
		t.Errorf("usage and pending are not as delivered: %s", body)
	}
	one := decode[runRecord](t, []byte(strings.ReplaceAll(body, "1e400", "1")))
	if one.RunID != "r 1" || one.AgentID != "demo" || one.ParentRunID != "p" || one.PreviousRunID != "" || one.Number != 1 ||
		one.State != "waiting" || one.Outcome == nil || *one.Outcome != "waiting" || one.End != "1-7" || len(one.Pending) != 1 {
		t.Errorf("got %s", body)
	}
	if one.EndedAt == nil || one.EndedAt.Before(*one.AcceptedAt) || one.DurationMs != int(one.EndedAt.Sub(*one.AcceptedAt).Milliseconds()) {
		t.Errorf("the times of %s", body)
	}
	if c := one.Counts; *c.Emitted != 6 || *c.Stored != 5 || *c.Bytes < 300 {
		t.Errorf("the counts of %s", body)
	}

	s.finish("t", "r2")
	_, body = s.request("GET", "/api/threads/t/runs/r2", "")
	two := decode[runRecord](t, []byte(body))
	if two.State != "failed" || two.Code != "bad" || two.Error != "No luck <today>." || two.PreviousRunID != "r 1" ||
		!strings.HasSuffix(body, `,"usage":null,"pending":[]}`) {
		t.Errorf("got %s", body)
	}
}

func TestARunningRunIsShownAsFarAsItHasCome(t *testing.T) {
	agent := agenttest.New(held(4))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	s.logged("t", "1-6")
	_, body := s.request("GET", "/api/threads/t/runs/r1", "")
	r := decode[runRecord](t, []byte(body))
	if r.State != "running" || r.Outcome != nil || r.EndedAt != nil || r.End != "" || r.LastEventAt == nil || r.DurationMs < 0 {
		t.Errorf("got %s", body)
	}
	if c := r.Counts; c.Emitted == nil || *c.Emitted != 6 || c.Stored != nil || c.Bytes != nil {
		t.Errorf("the counts of %s", body)
	}
	s.request("POST", "/api/threads/t/stop", "")
	_, body = s.request("GET", "/api/threads/t/runs/r1", "") // perhaps a moment before the history has it
	if r := decode[runRecord](t, []byte(body)); r.State != "stopped" || *r.Counts.Emitted != 8 || r.StoppedBy == "" {
		t.Errorf("after the stop: %s", body)
	}
	s.saved("t", "r1")
	_, body = s.request("GET", "/api/threads/t/runs/r1", "")
	if r := decode[runRecord](t, []byte(body)); r.State != "stopped" || *r.Counts.Stored != 5 || *r.Counts.Bytes == 0 {
		t.Errorf("once it is saved: %s", body)
	}
}

func TestRunsAreListedInPagesLatestFirst(t *testing.T) {
	s := open(t, plan{})
	for i := range 3 {
		s.finish("t", fmt.Sprintf("old%d", i))
	}
	if response, _ := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 204 {
		t.Fatal(response.Status)
	}
	for i := range 5 {
		s.finish("t", fmt.Sprintf("r%d", i))
	}
	for limit, want := range map[int][]string{
		1: {"r4", "r3", "r2", "r1", "r0"}, 2: {"r4 r3", "r2 r1", "r0"}, 3: {"r4 r3 r2", "r1 r0"},
		4: {"r4 r3 r2 r1", "r0"}, 5: {"r4 r3 r2 r1 r0"}, 6: {"r4 r3 r2 r1 r0"},
	} {
		var pages []string
		for before := ""; ; {
			_, body := s.request("GET", fmt.Sprintf("/api/threads/t/runs?limit=%d&before=%s", limit, before), "")
			page := decode[struct {
				Runs []runRecord
				Next *string
			}](t, []byte(body))
			var names []string
			for _, r := range page.Runs {
				names = append(names, r.RunID)
			}
			pages = append(pages, strings.Join(names, " "))
			if page.Next == nil {
				break
			}
			before = *page.Next
		}
		if got := strings.Join(pages, ", "); got != strings.Join(want, ", ") {
			t.Errorf("%d at a time: %s", limit, got)
		}
	}
	if _, body := s.request("GET", "/api/threads/t/runs?before=1", ""); body != `{"runs":[],"next":null}` {
		t.Errorf("before the first: %s", body)
	}
}
