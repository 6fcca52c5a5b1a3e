package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
)

const (
	copilotPath = "/api/copilotkit"
	ssePath     = copilotPath + "-sse"
)

// credentials is an answer to run or connect.
type credentials struct {
	ThreadID, RunID, JoinToken string
	Realtime                   struct{ ClientURL, Topic string }
}

func TestCopilotInfo(t *testing.T) {
	down := func(p *web.Parts) { p.Runs, p.Directory, p.Hub = nil, nil, nil }
	for name, tt := range map[string]struct {
		cfg           web.Config
		path, method  string
		header        string
		mode, wantURL string
	}{
		"over sockets":     {path: copilotPath + "/info", mode: "intelligence", wantURL: "ws://HOST/client"},
		"over SSE":         {path: ssePath + "/info", mode: "sse"},
		"through TLS":      {path: copilotPath + "/info", header: "https", mode: "intelligence", wantURL: "wss://HOST/client"},
		"by another path":  {cfg: web.Config{CopilotPath: "/chat"}, path: "/chat/info", mode: "intelligence", wantURL: "ws://HOST/client"},
		"by a public name": {cfg: web.Config{PublicURL: "https://chat.example/tc/"}, path: copilotPath + "/info", mode: "intelligence", wantURL: "wss://chat.example/tc/client"},
		"by a plain one":   {cfg: web.Config{PublicURL: "http://chat.example"}, path: copilotPath + "/info", header: "https", mode: "intelligence", wantURL: "ws://chat.example/client"},
		"in an envelope":   {path: copilotPath, method: "POST", mode: "intelligence", wantURL: "ws://HOST/client"},
		"with a slash":     {path: copilotPath + "/", method: "POST", mode: "intelligence", wantURL: "ws://HOST/client"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{cfg: tt.cfg, parts: down})
			method := tt.method
			if method == "" {
				method = "GET"
			}
			response, err := s.ask(method, tt.path, `{"method":"info"}`, "X-Forwarded-Proto", tt.header)
			if err != nil || response.StatusCode != 200 {
				t.Fatalf("%v, %v", response, err)
			}
			var info struct {
				Mode         string
				Agents       map[string]struct{ Description *string }
				Intelligence *struct{ WsURL string }
				Suggestions  bool
			}
			if err := json.NewDecoder(response.Body).Decode(&info); err != nil {
				t.Fatal(err)
			}
			url := ""
			if info.Intelligence != nil {
				url = strings.Replace(info.Intelligence.WsURL, strings.TrimPrefix(s.url, "http://"), "HOST", 1)
			}
			if info.Mode != tt.mode || url != tt.wantURL || len(info.Agents) != 2 || info.Agents["demo"].Description == nil || !info.Suggestions {
				t.Errorf("got %+v, sockets at %s", info, url)
			}
		})
	}
}

func TestCopilotRunOverSockets(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	for range 2 { // the second time it is found
		response, body := s.request("POST", copilotPath+"/agent/demo/run", input("t/ü", "r1"))
		got := decode[credentials](t, []byte(body))
		if response.StatusCode != 200 || got.ThreadID != "t/ü" || got.RunID != "r1" || got.JoinToken == "" ||
			got.Realtime.ClientURL != "ws"+strings.TrimPrefix(s.url, "http")+"/client" || got.Realtime.Topic != "thread:t/ü" {
			t.Fatalf("%d %s", response.StatusCode, body)
		}
	}
	if n := agent.Invocations(); n > 1 {
		t.Errorf("the agent was asked %d times", n)
	}
	t.Run("a second run is refused in words", func(t *testing.T) {
		response, body := s.request("POST", copilotPath+"/agent/demo/run", input("t/ü", "r2"))
		if response.StatusCode != 409 || !strings.HasPrefix(body, "run r1 is active on this thread") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
	t.Run("connect tells which run is active", func(t *testing.T) {
		response, body := s.request("POST", copilotPath+"/agent/demo/connect", `{"threadId":"t/ü","runId":"x","messages":[],"lastSeenEventId":null}`)
		if got := decode[credentials](t, []byte(body)); response.StatusCode != 200 || got.RunID != "r1" || got.JoinToken == "" {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
	agent.Release("go")
	s.saved("t/ü", "r1")
	t.Run("connect to an idle thread names none", func(t *testing.T) {
		response, body := s.request("POST", copilotPath, `{"method":"agent/connect","params":{"agentId":"demo"},"body":{"threadId":"t/ü","runId":"x","messages":[]}}`)
		if got := decode[credentials](t, []byte(body)); response.StatusCode != 200 || got.RunID != "" || got.JoinToken == "" {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
	t.Run("connect to a thread that never was, or is no more, is no content", func(t *testing.T) {
		s.request("DELETE", "/api/threads/t%2F%C3%BC", "")
		for _, id := range []string{"nobody", "t/ü"} {
			response, body := s.request("POST", copilotPath+"/agent/demo/connect", fmt.Sprintf(`{"threadId":%q}`, id))
			if response.StatusCode != 204 || body != "" {
				t.Errorf("%s: %d %s", id, response.StatusCode, body)
			}
		}
	})
}

func TestCopilotInputIsCleaned(t *testing.T) {
	agent := agenttest.New(said(1, 0))
	s := open(t, plan{agent: agent})
	body := `{"threadId":"t","runId":"r1","messages":[{"id":"a","role":"assistant","content":"x","metadata":{"cpki_event_id":"1-1","cpki_event_seq":2}}],` +
		`"tools":[],"context":[],"resume":[{"interruptId":"i1","status":"resolved","payload":{"ok":true}}],"lastSeenEventId":"1-1"}`
	s.rest(s.stream("POST", ssePath+"/agent/demo/run", body))
	want := `{"threadId":"t","runId":"r1","state":{},"messages":[{"id":"a","role":"assistant","content":"x"}],"tools":[],"context":[],` +
		`"forwardedProps":{},"resume":[{"interruptId":"i1","status":"resolved","payload":{"ok":true}}]}`
	if got := string(agent.Inputs()[0].JSON); got != want {
		t.Errorf("the agent got %s", got)
	}
	_, events := s.request("GET", "/api/threads/t/events", "")
	if strings.Contains(events, "cpki_") {
		t.Errorf("the history has %s", events)
	}
}

func TestCopilotOverSSE(t *testing.T) {
	t.Run("a run streams to its end", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(said(3, 0))})
		if got := brief(s.rest(s.stream("POST", ssePath+"/agent/demo/run", input("t", "r1")))); got != whole {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a stop ends the answer of the run, in a form that the client knows", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New(held(1))})
		stream := s.stream("POST", ssePath+"/agent/demo/run", input("t", "r1"))
		s.take(stream, 3)
		if _, body := s.request("POST", ssePath+"/agent/demo/stop/t", `{"runId":"r1"}`); !strings.Contains(body, `"stopped":true`) {
			t.Errorf("stop: %s", body)
		}
		events := s.rest(stream)
		if got := brief(events); got != "1-4=TEXT_MESSAGE_END 1-5=RUN_FINISHED" || strings.Contains(events[1].Data, "outcome") {
			t.Errorf("got %v", events)
		}
	})
	t.Run("what the client does not know is left out", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(`{"type":"UNHEARD_OF"}`), agenttest.Emit(finished)})})
		if got := brief(s.rest(s.stream("POST", ssePath+"/agent/demo/run", input("t", "r1")))); got != "1-1=RUN_STARTED 1-3=RUN_FINISHED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("connect replays, and follows the active run to its end", func(t *testing.T) {
		agent := agenttest.New(said(1, 0), held(3))
		s := open(t, plan{agent: agent})
		s.finish("t", "r1")
		s.take(s.stream("POST", ssePath+"/agent/demo/run", input("t", "r2")), 5)
		stream := s.stream("POST", ssePath+"/agent/demo/connect", input("t", "x"))
		s.take(stream, 8)
		agent.Release("go")
		if got := brief(s.rest(stream)); got != "2-6=TEXT_MESSAGE_END 2-7=RUN_FINISHED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("connect to a thread that never was is an empty answer", func(t *testing.T) {
		s := open(t, plan{})
		if got := s.rest(s.stream("POST", ssePath+"/agent/demo/connect", input("t", "x"))); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a failure of long ago is no news, one of now is", func(t *testing.T) {
		fails := []agenttest.Step{agenttest.Emit(started), agenttest.Mark("held"), agenttest.WaitFor("go"), agenttest.Emit(`{"type":"RUN_ERROR","message":"no","code":"x"}`)}
		agent := agenttest.New([]agenttest.Step{agenttest.Emit(`{"type":"RUN_ERROR","message":"no"}`)}, fails)
		s := open(t, plan{agent: agent})
		s.finish("t", "r1")
		s.start("t", "r2")
		<-agent.Mark("held")
		s.logged("t", "2-1")
		stream := s.stream("POST", ssePath+"/agent/demo/connect", input("t", "x"))
		s.take(stream, 3)
		agent.Release("go")
		now := s.rest(stream)
		s.saved("t", "r2")
		later := s.rest(s.stream("POST", ssePath+"/agent/demo/connect", input("t", "x")))
		if len(now) != 1 || !strings.Contains(now[0].Data, `"code":"x"`) {
			t.Errorf("now: %v", now)
		}
		for _, i := range []int{1, 3} {
			if !strings.Contains(later[i].Data, `"RUN_ERROR"`) || !strings.Contains(later[i].Data, `"code":"abort"`) {
				t.Errorf("later: %v", later)
			}
		}
	})
}

func TestCopilotStop(t *testing.T) {
	s := open(t, plan{agent: agenttest.New(held(1))})
	s.take(s.stream("POST", ssePath+"/agent/demo/run", input("a/b", "r1")), 3)
	const path = copilotPath + "/agent/demo/stop/a%2Fb"
	for _, tt := range []struct {
		path, body string
		status     int
		want       string
	}{
		{path, `{"runId":"other"}`, 200, `{"message":"No such run is active on this thread.","stopped":false}`},
		{path, `{"force":true}`, 400, "a request to stop may hold runId and nothing else"},
		{path, `[]`, 400, "the body is not a JSON object"},
		{copilotPath + "/agent/demo/stop/%0A", ``, 400, "thread id holds a control character"},
		{copilotPath, `{"method":"agent/stop","params":{"agentId":"demo","threadId":"a/b"}}`, 200, `{"stopped":true,"runId":"r1","cursor":"1-6"}`},
	} {
		response, body := s.request("POST", tt.path, tt.body)
		if response.StatusCode != tt.status || strings.TrimSpace(body) != tt.want {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, response.StatusCode, body)
		}
	}
	s.saved("a/b", "r1")
	if _, body := s.request("POST", path, ""); !strings.Contains(body, `"stopped":false`) {
		t.Errorf("once it is over: %s", body)
	}
}

func TestCopilotRefusesInWords(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxFrame: 1000}, parts: func(p *web.Parts) {
		p.Identify = func(r *http.Request) (thread.User, error) {
			if r.Header.Get("Authorization") == "nobody" {
				return "", fmt.Errorf("%w: who are you?", thread.ErrBadInput)
			}
			return "", nil
		}
	}})
	for name, tt := range map[string]struct {
		method, path, body, auth string
		status                   int
		want                     string
	}{
		"a run of no agent":           {"POST", "/agent/nobody/run", input("t", "r"), "", 404, `unknown agent: "nobody"`},
		"connect to no agent":         {"POST", "/agent/nobody/connect", input("t", "r"), "", 404, `unknown agent: "nobody"`},
		"suggestions of no agent":     {"POST", "/agent/nobody/suggest", input("t", "r"), "", 404, `unknown agent: "nobody"`},
		"a run without messages":      {"POST", "/agent/demo/run", `{"threadId":"t","runId":"r"}`, "", 400, "messages is missing"},
		"connect without a thread":    {"POST", "/agent/demo/connect", `{}`, "", 400, "threadId is missing or empty"},
		"suggestions of bad messages": {"POST", "/agent/demo/suggest", `{"threadId":"t","runId":"r","messages":[1]}`, "", 400, "messages[0]"},
		"what is too large":           {"POST", "/agent/demo/run", strings.Repeat("x", 1001), "", 413, "Request Entity Too Large."},
		"a wrong method":              {"GET", "/agent/demo/run", "", "", 405, "method_not_allowed"},
		"a memory":                    {"POST", "/memories", "{}", "", 404, "there is nothing at /"},
		"a search of memories":        {"POST", "/memories/recall", "{}", "", 404, "/memories/recall"},
		"a transcription":             {"POST", "/transcribe", "{}", "", 404, "there is nothing at /"},
		"an annotation":               {"POST", "/annotate", "{}", "", 404, "there is nothing at /"},
		"an envelope of nothing":      {"POST", "", "{}", "", 400, "the body is not a request with a method"},
		"an unknown method":           {"POST", "", `{"method":"transcribe"}`, "", 404, "this server does not know the method transcribe"},
		"an unknown resource":         {"POST", "", `{"method":"resource/request","params":{"path":"/memories","httpMethod":"GET"}}`, "", 404, "there is nothing at /memories"},
		"a resource of another":       {"POST", "", `{"method":"resource/request","params":{"path":"//evil.example/threads","httpMethod":"GET"}}`, "", 404, "there is nothing at //evil.example/threads"},
		"a caller who may not":        {"POST", "/agent/demo/run", input("t", "r"), "nobody", 400, "who are you?"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, base := range []string{copilotPath, ssePath} {
				s := &site{T: t, url: s.url, dial: s.dial}
				response, err := s.ask(tt.method, base+tt.path, tt.body, "Authorization", tt.auth)
				if err != nil {
					t.Fatal(err)
				}
				text := make([]byte, 1000)
				n, _ := response.Body.Read(text)
				if response.StatusCode != tt.status || !strings.Contains(string(text[:n]), tt.want) {
					t.Errorf("%s: %d %s", base, response.StatusCode, text[:n])
				}
				if tt.status == 405 && response.Header.Get("Allow") != "OPTIONS, POST" {
					t.Errorf("Allow is %q", response.Header.Get("Allow"))
				}
			}
		})
	}
	if response, _ := s.request("GET", copilotPath+"/inspector-metadata", ""); response.StatusCode != 204 {
		t.Errorf("inspector-metadata: %d", response.StatusCode)
	}
}

func TestCopilotSuggestions(t *testing.T) {
	t.Run("come from the agent, and leave nothing", func(t *testing.T) {
		agent := agenttest.New(held(1), said(1, 0))
		s := open(t, plan{agent: agent})
		s.take(s.stream("POST", ssePath+"/agent/demo/run", input("t", "r1")), 3)
		for _, base := range []string{copilotPath, ssePath} {
			got := brief(s.rest(s.stream("POST", base+"/agent/demo/suggest", input("t", "s1"))))
			if got != "-=RUN_STARTED -=TEXT_MESSAGE_START -=0 -=TEXT_MESSAGE_END -=RUN_FINISHED" {
				t.Errorf("got %s", got)
			}
		}
		if _, err := s.past.FindRun(t.Context(), "t", "s1"); err == nil {
			t.Error("they are recorded")
		}
		agent.Release("go")
	})
	t.Run("end when the client goes", func(t *testing.T) {
		agent := agenttest.New(held(1))
		s := open(t, plan{agent: agent})
		stream := s.stream("POST", copilotPath+"/agent/demo/suggest", input("t", "s1"))
		s.take(stream, 3)
		stream.Close()
		if cause := <-agent.Cancelled(); cause == nil {
			t.Error("without a cause")
		}
	})
	t.Run("are made for so many at a time", func(t *testing.T) {
		agent := agenttest.New(held(1))
		s := open(t, plan{agent: agent})
		for i := range 16 {
			s.take(s.stream("POST", copilotPath+"/agent/demo/suggest", input("t", fmt.Sprint(i))), 1)
		}
		response, body := s.request("POST", copilotPath+"/agent/demo/suggest", input("t", "s"))
		if response.StatusCode != 429 || !strings.Contains(body, "too many suggestions") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
	t.Run("are not made where nobody makes them, nor while the server drains", func(t *testing.T) {
		s := open(t, plan{parts: func(p *web.Parts) { p.Asker = nil }})
		if response, body := s.request("POST", copilotPath+"/agent/demo/suggest", input("t", "s")); response.StatusCode != 404 {
			t.Errorf("%d %s", response.StatusCode, body)
		}
		s.web.Drain(within(t))
		if response, _ := s.request("POST", copilotPath+"/agent/demo/suggest", input("t", "s")); response.StatusCode != 503 {
			t.Errorf("%d", response.StatusCode)
		}
	})
	t.Run("that fail say so", func(t *testing.T) {
		s := open(t, plan{agent: agenttest.Func(func(context.Context, runner.Input, func([]byte) error) error { panic("a bug") })})
		if got := brief(s.rest(s.stream("POST", copilotPath+"/agent/demo/suggest", input("t", "s")))); got != "-=RUN_STARTED -=RUN_ERROR" {
			t.Errorf("got %s", got)
		}
	})
}
