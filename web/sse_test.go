package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// ask sends a request for a stream, with headers as pairs.
func (s *site) ask(method, path, body string, headers ...string) (*http.Response, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Hour) // of a bubble, perhaps
	s.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
	return (&http.Client{Transport: transport}).Do(r)
}

// stream opens a stream, which is closed when the test is over.
func (s *site) stream(method, path, body string, headers ...string) *webtest.Stream {
	s.Helper()
	response, err := s.ask(method, path, body, headers...)
	if err != nil {
		s.Fatal(err)
	}
	stream, err := webtest.NewStream(response)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(stream.Close)
	return stream
}

// input is a RunAgentInput.
func input(thread, run string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"state":{},"messages":[{"id":"u-%s","role":"user","content":"hi"}],`+
		`"tools":[],"context":[],"forwardedProps":{}}`, thread, run, run)
}

// take returns the next n events.
func (s *site) take(stream *webtest.Stream, n int) (events []webtest.Event) {
	s.Helper()
	for range n {
		e, err := stream.Event()
		if err != nil {
			s.Fatalf("after %v: %v", events, err)
		}
		events = append(events, e)
	}
	return events
}

// rest returns the events up to the end of the answer, which must be a proper one.
func (s *site) rest(stream *webtest.Stream) (events []webtest.Event) {
	s.Helper()
	for {
		e, err := stream.Event()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			s.Fatalf("after %v: %v", events, err)
		}
		events = append(events, e)
	}
}

// brief writes events as their position and type, or name and data.
func brief(events []webtest.Event) string {
	var all []string
	for _, e := range events {
		_, kind, _ := strings.Cut(e.Data, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		switch {
		case e.Name != "":
			kind = e.Name + e.Data
		case kind == "TEXT_MESSAGE_CONTENT":
			_, kind, _ = strings.Cut(e.Data, `"delta":"`)
			kind, _, _ = strings.Cut(kind, `"`)
		}
		id := e.ID
		if id == "" {
			id = "-"
		}
		all = append(all, id+"="+strings.TrimSpace(kind))
	}
	return strings.Join(all, " ")
}

func TestStreamsSayWhatTheyAre(t *testing.T) {
	s := open(t, plan{})
	stream := s.stream("POST", "/agui/demo", input("t", "r1"), "Accept", "application/vnd.ag-ui.event+proto", "Accept-Encoding", "gzip")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
		"Content-Encoding": "", "Content-Length": "", "X-Content-Type-Options": "nosniff",
	} {
		if got := stream.Response.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	s.rest(stream)
}

func TestStreamsWorkThroughMiddleware(t *testing.T) {
	for name, stack := range around() {
		t.Run(name, func(t *testing.T) {
			agent := agenttest.New(held(3))
			s := open(t, plan{agent: agent, wrap: func(e *echo.Echo) { e.Use(stack...) }})
			stream := s.stream("POST", "/agui/demo", input("t", "r1"), "Accept-Encoding", "gzip")
			if got := brief(s.take(stream, 5)); got != "1-1=RUN_STARTED 1-2=TEXT_MESSAGE_START 1-3=0 1-4=1 1-5=2" {
				t.Errorf("while the agent waits came %s", got)
			}
			agent.Release("go")
			if got := brief(s.rest(stream)); got != "1-6=TEXT_MESSAGE_END 1-7=RUN_FINISHED" {
				t.Errorf("at the end came %s", got)
			}
		})
	}
}

func TestASilentStreamIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := agenttest.New(held(1))
		s := open(t, plan{pipe: true, agent: agent})
		stream := s.stream("POST", "/agui/demo", input("t", "r1"))
		began := time.Now()
		s.take(stream, 3)
		for i := 1; i <= 3; i++ {
			e, err := stream.Next()
			if err != nil || e.Comment != "keep-alive" {
				t.Fatalf("got %+v, %v", e, err)
			}
			if took, want := time.Since(began), time.Duration(i)*15*time.Second; took != want {
				t.Errorf("comment %d came after %s, want %s", i, took, want)
			}
		}
		agent.Release("go")
		s.rest(stream)
	})
}

func TestTheTimeoutsOfTheServerEndNoStream(t *testing.T) {
	agent := agenttest.New(held(1))
	short := 500 * time.Millisecond
	s := open(t, plan{agent: agent, cfg: web.Config{KeepAlive: short / 2}, server: func(srv *http.Server) {
		srv.ReadTimeout, srv.WriteTimeout = short, short
	}})
	stream := s.stream("POST", "/agui/demo", input("t", "r1"))
	s.take(stream, 3)
	for began := time.Now(); time.Since(began) < 3*short; {
		if _, err := stream.Next(); err != nil {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
	}
	agent.Release("go")
	if got := brief(s.rest(stream)); got != "1-4=TEXT_MESSAGE_END 1-5=RUN_FINISHED" {
		t.Errorf("at the end came %s", got)
	}
}

func TestAReaderThatDoesNotReadIsCutAndHarmsNobody(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	big := `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"{i}` + long + `"}`
	agent := agenttest.New([]agenttest.Step{
		agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(500, big, 0), agenttest.Emit(end), agenttest.Emit(finished),
	})
	s := open(t, plan{agent: agent, cfg: web.Config{WriteTimeout: time.Second}})
	stuck := s.stream("GET", "/agui/threads/t/events?replay=raw", "")
	stream := s.stream("POST", "/agui/demo", input("t", "r1"))
	if n := len(s.rest(stream)); n != 504 {
		t.Errorf("beside it came %d events", n)
	}
	ctx := within(t)
	for !strings.Contains(s.log.String(), "does not read") {
		if ctx.Err() != nil {
			t.Fatal("the reader was not cut")
		}
		<-time.After(time.Millisecond)
	}
	for {
		_, err := stuck.Next()
		if errors.Is(err, io.EOF) {
			t.Fatal("its answer ended as if all had been said")
		}
		if err != nil {
			break
		}
	}
	// It comes back from where it got to.
	again := s.stream("GET", "/agui/threads/t/events?replay=raw&until=idle", "", "Last-Event-ID", stuck.LastID())
	events := s.rest(again)
	if last := events[len(events)-1]; last.ID != "1-504" || len(events) >= 504 {
		t.Errorf("after %s came %d events up to %s", stuck.LastID(), len(events), last.ID)
	}
}

func TestDrainCutsStreams(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	run := s.stream("POST", "/agui/demo", input("t", "r1"))
	follow := s.stream("GET", "/agui/threads/t/events", "")
	s.take(run, 3)
	s.take(follow, 2)
	s.web.Drain(within(t))
	for name, stream := range map[string]*webtest.Stream{"a run": run, "a thread": follow} {
		for {
			_, err := stream.Next()
			if errors.Is(err, io.EOF) {
				t.Errorf("the answer with %s ended as if all had been said", name)
			}
			if err != nil {
				break
			}
		}
	}
	for _, r := range [][2]string{{"POST", "/agui/demo"}, {"GET", "/agui/threads/t/events"}} {
		if response, body := s.request(r[0], r[1], input("t2", "r1")); response.StatusCode != 503 || !strings.Contains(body, "draining") {
			t.Errorf("%v: %d %s", r, response.StatusCode, body)
		}
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("logged: %s", s.log)
	}
	agent.Release("go")
}

func TestLeavingAStreamDoesNotStopItsRun(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	stream := s.stream("POST", "/agui/demo", input("t", "r1"))
	s.take(stream, 3)
	stream.Close()
	agent.Release("go")
	s.saved("t", "r1")
	th, err := s.past.Thread(t.Context(), "t")
	if err != nil || th.Latest.End.Outcome != "finished" {
		t.Fatalf("the run ended %+v, %v", th.Latest, err)
	}
}
