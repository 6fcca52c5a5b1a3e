package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestHTTPErrorsAreProblems(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxFrame: 1000}})
	s.finish("t", "r1")
	long := strings.Repeat("x", 257)
	tests := map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"no such route":              {"GET", "/nowhere", "", 404, "not_found"},
		"no such api":                {"GET", "/api/nowhere", "", 404, "not_found"},
		"a wrong method":             {"PUT", "/api/threads/t", "", 405, "method_not_allowed"},
		"a stop by GET":              {"GET", "/api/threads/t/stop", "", 405, "method_not_allowed"},
		"runs by PUT":                {"PUT", "/api/threads/t/runs", "", 405, "method_not_allowed"},
		"messages by POST":           {"POST", "/api/threads/t/messages", "", 405, "method_not_allowed"},
		"an unknown thread":          {"GET", "/api/threads/nobody", "", 404, "not_found"},
		"events of unknown thread":   {"GET", "/api/threads/nobody/events", "", 404, "not_found"},
		"messages of unknown thread": {"GET", "/api/threads/nobody/messages", "", 404, "not_found"},
		"state of unknown thread":    {"GET", "/api/threads/nobody/state", "", 404, "not_found"},
		"runs of unknown thread":     {"GET", "/api/threads/nobody/runs", "", 404, "not_found"},
		"a run of unknown thread":    {"GET", "/api/threads/nobody/runs/r1", "", 404, "not_found"},
		"an unknown run":             {"GET", "/api/threads/t/runs/r2", "", 404, "not_found"},
		"a run id too long":          {"GET", "/api/threads/t/runs/" + long, "", 400, "bad_input"},
		"a run id that is no UTF-8":  {"GET", "/api/threads/t/runs/%FF", "", 400, "bad_input"},
		"limit of runs too great":    {"GET", "/api/threads/t/runs?limit=501", "", 400, "bad_input"},
		"runs before no run":         {"GET", "/api/threads/t/runs?before=x", "", 400, "bad_cursor"},
		"runs before run 0":          {"GET", "/api/threads/t/runs?before=0", "", 400, "bad_cursor"},
		"delete an unknown thread":   {"DELETE", "/api/threads/nobody", "", 404, "not_found"},
		"a thread id too long":       {"GET", "/api/threads/" + long, "", 400, "bad_input"},
		"a control character":        {"GET", "/api/threads/a%0Ab", "", 400, "bad_input"},
		"an id that is no UTF-8":     {"GET", "/api/threads/%FF", "", 400, "bad_input"},
		"an empty id":                {"POST", "/api/threads//stop", "", 400, "bad_input"},
		"limit 0":                    {"GET", "/api/threads?limit=0", "", 400, "bad_input"},
		"limit too great":            {"GET", "/api/threads?limit=201", "", 400, "bad_input"},
		"limit that is no number":    {"GET", "/api/threads/t?limit=x", "", 400, "bad_input"},
		"limit of events too great":  {"GET", "/api/threads/t/events?limit=10001", "", 400, "bad_input"},
		"a page that was not given":  {"GET", "/api/threads?before=zz", "", 400, "bad_cursor"},
		"a bad cursor":               {"GET", "/api/threads/t/events?after=x", "", 400, "bad_cursor"},
		"an empty cursor":            {"GET", "/api/threads/t/events?after=", "", 400, "bad_cursor"},
		"a cursor ahead":             {"GET", "/api/threads/t/events?after=9-9", "", 400, "bad_cursor"},
		"an unknown replay":          {"GET", "/api/threads/t/events?replay=x", "", 400, "bad_input"},
		"a run without body":         {"POST", "/api/threads/t/runs", "", 400, "bad_input"},
		"a run that is no JSON":      {"POST", "/api/threads/t/runs", "{", 400, "bad_input"},
		"a run that is a list":       {"POST", "/api/threads/t/runs", "[]", 400, "bad_input"},
		"a run that is no UTF-8":     {"POST", "/api/threads/t/runs", "{\"messages\":[],\"state\":\"\xff\"}", 400, "bad_input"},
		"a run of no agent":          {"POST", "/api/threads/t/runs", `{"agentId":"x","messages":[]}`, 404, "unknown_agent"},
		"a run id of another agent":  {"POST", "/api/threads/t/runs", `{"agentId":"other","runId":"r1","messages":[]}`, 409, "run_id_used"},
		"a stop that is no JSON":     {"POST", "/api/threads/t/stop", "x", 400, "bad_input"},
		"a body that is too large":   {"POST", "/api/threads/t/runs", strings.Repeat("x", 1001), 413, "too_large"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &site{T: t, url: s.url, dial: s.dial}
			response, body := s.request(tt.method, tt.path, tt.body)
			p := decode[web.Problem](t, []byte(body))
			if response.StatusCode != tt.status || p.Code != tt.code || p.Message == "" {
				t.Fatalf("%d %s", response.StatusCode, body)
			}
			if got := response.Header.Get("Content-Type"); got != "application/json" {
				t.Fatalf("Content-Type %s", got)
			}
		})
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Fatalf("mistakes of clients were logged as errors: %s", s.log)
	}
}

func TestABodyOfUnknownLengthIsBoundedToo(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxFrame: 1000}})
	body := strings.NewReader(`{"messages":[],"state":"` + strings.Repeat("x", 2000) + `"}`)
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/threads/t/runs", struct{ *strings.Reader }{body})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 413 {
		t.Fatalf("%s", response.Status)
	}
}

func TestThreadsAreReachedByAnyID(t *testing.T) {
	s := open(t, plan{})
	for _, id := range []string{
		"plain", "a/b", "/", "100%", "%41", "a%2Fb", "ä ö", "😀", "a+b", "a?b#c", "a;b=c", ":id", "*", `"<&>"`, "a.b", "...",
		"u2028\u2028x", strings.Repeat("ä", 128),
	} {
		t.Run(id, func(t *testing.T) {
			s := &site{T: t, url: s.url, dial: s.dial, runner: s.runner}
			path := "/api/threads/" + url.PathEscape(id)
			response, body := s.request("POST", path+"/runs", `{"runId":"r1","messages":[]}`)
			if response.StatusCode != http.StatusAccepted || body != `{"runId":"r1","cursor":"1-0"}`+"\n" {
				t.Fatalf("run: %d %s", response.StatusCode, body)
			}
			s.until(s.viewer(id, nil), webtest.Ended("r1"))
			for _, p := range []string{path, path + "/events", path + "/messages", path + "/state", path + "/runs", path + "/runs/r1"} {
				if response, body := s.request("GET", p, ""); response.StatusCode != 200 {
					t.Fatalf("%s: %d %s", p, response.StatusCode, body)
				}
			}
			response, body = s.request("POST", path+"/stop", "")
			if response.StatusCode != 200 || !strings.HasPrefix(body, `{"stopped":`) {
				t.Fatalf("stop: %d %s", response.StatusCode, body)
			}
			if _, body := s.request("GET", path, ""); decode[struct{ ID string }](t, []byte(body)).ID != id {
				t.Fatalf("it is called %s", body)
			}
			if response, body := s.request("DELETE", path, ""); response.StatusCode != 204 || body != "" {
				t.Fatalf("delete: %d %s", response.StatusCode, body)
			}
			if response, _ := s.request("GET", path, ""); response.StatusCode != 404 {
				t.Fatalf("after deletion: %d", response.StatusCode)
			}
		})
	}
}

func TestThreadsAreListedInPages(t *testing.T) {
	s := open(t, plan{})
	for i := range 5 {
		s.finish(fmt.Sprintf("t%d", i), "r1")
	}
	type page struct {
		Threads []struct{ ID, State, RunID, AgentID string }
		Next    *string
	}
	var ids []string
	for next := ""; ; {
		_, body := s.request("GET", "/api/threads?limit=2&before="+url.QueryEscape(next), "")
		got := decode[page](t, []byte(body))
		for _, th := range got.Threads {
			ids = append(ids, th.ID)
			if th.State != "finished" || th.RunID != "r1" || th.AgentID != "demo" {
				t.Errorf("%+v", th)
			}
		}
		if got.Next == nil {
			break
		}
		next = *got.Next
	}
	if got := strings.Join(ids, " "); got != "t4 t3 t2 t1 t0" {
		t.Fatalf("got %s", got)
	}
}

func TestAThreadShowsItsLatestRuns(t *testing.T) {
	agent := agenttest.New(said(1, 0), said(1, 0), held(1))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.finish("t", "r2")
	s.start("t", "r3")
	<-agent.Mark("held")
	_, body := s.request("GET", "/api/threads/t?limit=2", "")
	got := decode[struct {
		ID, State string
		Status    joined
		Runs      []struct {
			RunID, State, End string
			Number            int
			EndedAt           *string
		}
	}](t, []byte(body))
	if got.ID != "t" || got.State != "running" || !got.Status.Running || len(got.Runs) != 2 {
		t.Fatalf("got %s", body)
	}
	if r := got.Runs[0]; r.RunID != "r2" || r.State != "finished" || r.End != "2-6" || r.EndedAt == nil || r.Number != 2 {
		t.Errorf("the run before: %+v", r)
	}
	if r := got.Runs[1]; r.RunID != "r3" || r.State != "running" || r.End != "" || r.EndedAt != nil {
		t.Errorf("the active run: %+v", r)
	}
	response, body := s.request("POST", "/api/threads/t/runs", `{"messages":[]}`)
	if p := decode[web.Problem](t, []byte(body)); response.StatusCode != 409 || p.Code != "thread_busy" || p.RunID != "r3" {
		t.Errorf("a second run: %d %s", response.StatusCode, body)
	}
	_, body = s.request("POST", "/api/threads/t/stop", `{"runId":"r3"}`)
	if !strings.HasPrefix(body, `{"stopped":true,"runId":"r3","cursor":"3-`) {
		t.Errorf("stop: %s", body)
	}
	_, body = s.request("GET", "/api/threads/t", "")
	if strings.Count(body, `"state":"stopped"`) != 2 || strings.Contains(body, `"state":"running"`) {
		t.Errorf("after the stop: %s", body)
	}
	s.saved("t", "r3")
	if _, body = s.request("GET", "/api/threads/t", ""); !strings.Contains(body, `"stoppedBy":"127.0.0.1"`) {
		t.Errorf("once it is saved: %s", body)
	}
}

// F057: the pages of history and the live events have one coordinate.
func TestPagesAndSubscriptionFitTogether(t *testing.T) {
	for _, form := range []string{"compact", "raw"} {
		for _, limit := range []int{1, 7, 500} {
			t.Run(fmt.Sprint(form, limit), func(t *testing.T) {
				agent := agenttest.New(said(30, 0), said(30, 0), held(30))
				s := open(t, plan{agent: agent})
				s.finish("t", "r1")
				s.finish("t", "r2")
				s.start("t", "r3")
				<-agent.Mark("held")
				s.logged("t", "3-32")
				v := webtest.NewViewer("t", map[string]any{"replay": form})
				for more := true; more; {
					_, body := s.request("GET", fmt.Sprintf("/api/threads/t/events?replay=%s&limit=%d&after=%s", form, limit, v.Cursor), "")
					page := decode[struct {
						Batches []json.RawMessage
						Cursor  string
						More    bool
					}](t, []byte(body))
					for _, b := range page.Batches {
						if err := v.Apply(webtest.Push{Event: "ag_ui_events", Payload: b}); err != nil {
							t.Fatal(err)
						}
					}
					if page.Cursor != v.Cursor {
						t.Fatalf("the page says it ends at %s, its batches at %s", page.Cursor, v.Cursor)
					}
					more = page.More
				}
				if v.Cursor != "3-32" {
					t.Fatalf("the pages end at %s", v.Cursor)
				}
				if err := v.Join(within(t), s.client(webtest.Options{})); err != nil {
					t.Fatal(err)
				}
				agent.Release("go")
				s.until(v, webtest.Ended("r3"))
				if v.Resets != 0 || len(v.Run("r1").Events) == 0 {
					t.Fatalf("%d resets", v.Resets)
				}
			})
		}
	}
}

func TestEventsOfAPageShowAReset(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	if response, _ := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 204 {
		t.Fatal(response.Status)
	}
	s.finish("t", "r2")
	_, body := s.request("GET", "/api/threads/t/events?after=1-3", "")
	if want := `{"batches":[{"reset":true,"runId":null,"from":"0-0"},{"runId":"r2","from":"2-0",`; !strings.HasPrefix(body, want) {
		t.Fatalf("got %s", body)
	}
}

func TestHeadIsAnsweredLikeGetWithoutABody(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	for _, path := range []string{"/", "/t/x", "/healthz", "/readyz", "/api/agents", "/api/threads", "/api/threads/t",
		"/api/threads/t/events", "/api/threads/t/messages", "/api/threads/t/state", "/api/threads/t/runs",
		"/api/threads/t/runs/r1", "/api/threads/t/runs/r2", "/api/threads/nobody"} {
		get, _ := s.request("GET", path, "")
		head, body := s.request("HEAD", path, "")
		if head.StatusCode != get.StatusCode || body != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: %d %q %v, GET %d %v", path, head.StatusCode, body, head.Header, get.StatusCode, get.Header)
		}
	}
}

func TestAgentsAreListed(t *testing.T) {
	s := open(t, plan{})
	_, body := s.request("GET", "/api/agents", "")
	want := `{"agents":[{"id":"demo","type":"demo","default":true},{"id":"other","type":"agui","default":false}]}` + "\n"
	if body != want {
		t.Fatalf("got %s", body)
	}
}

func TestAnswersOfTheAPIAreNotCached(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	for _, path := range []string{"/api/agents", "/api/threads", "/api/threads/nobody", "/api/threads/t/messages",
		"/api/threads/t/state", "/api/threads/t/runs", "/api/threads/t/runs/r1"} {
		response, _ := s.request("GET", path, "")
		if h := response.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestDeletingAThreadStopsItsRun(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	if response, body := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 204 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	<-agent.Cancelled()
	if st, err := s.runner.Status(within(t), thread.ID("t")); err != nil || st.Running {
		t.Fatalf("%+v, %v", st, err)
	}
	if response, _ := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 404 {
		t.Fatalf("again: %d", response.StatusCode)
	}
}

// frozen is a directory that does not answer.
type frozen struct{ web.Directory }

func (frozen) Thread(ctx context.Context, _ thread.ID) (thread.Thread, error) {
	<-ctx.Done()
	return thread.Thread{}, context.Cause(ctx)
}

func TestDeletingAThreadGivesUpWhereTheHistoryDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := open(t, plan{pipe: true, parts: func(p *web.Parts) { p.Directory = frozen{p.Directory} }})
		began := time.Now()
		response, body := s.request("DELETE", "/api/threads/t", "")
		if took := time.Since(began); response.StatusCode != 503 || took > 8*time.Second {
			t.Errorf("after %v it is answered %d %s", took, response.StatusCode, body)
		}
	})
}
