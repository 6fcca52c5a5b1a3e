package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// plan is what a test wants to be different from a plain server.
type plan struct {
	agent  runner.Agent // default: whole
	cfg    web.Config
	hub    hub.Config
	runner runner.Config
	log    func(hub.Log) hub.Log
	parts  func(*web.Parts)
	wrap   func(*echo.Echo)
	pipe   bool // serve in memory, for bubbles
	server func(*http.Server)
}

// site is a whole server over a live log in memory and a history in a SQLite file.
type site struct {
	*testing.T
	web    *web.Server
	hub    *hub.Hub
	runner *runner.Runner
	live   *memlog.Log
	past   *history.History
	log    *syncBuffer
	url    string
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Events of the scripts.
const (
	started  = `{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`
	finished = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`
	begin    = `{"type":"TEXT_MESSAGE_START","messageId":"m-{run}","role":"assistant"}`
	word     = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"{i} "}`
	end      = `{"type":"TEXT_MESSAGE_END","messageId":"m-{run}"}`
)

// said is a run that says n words.
func said(n int, apart time.Duration) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, apart),
		agenttest.Emit(end), agenttest.Emit(finished)}
}

// held is a run that says n words and then waits at the gate "go".
func held(n int) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, 0),
		agenttest.Mark("held"), agenttest.WaitFor("go"), agenttest.Emit(end), agenttest.Emit(finished)}
}

func open(t *testing.T, p plan) *site {
	t.Helper()
	s := &site{T: t, live: memlog.New(), log: &syncBuffer{}}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	file, err := sqlitefile.Open(t.Context(), filepath.Join(t.TempDir(), "web.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	past, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	if p.agent == nil {
		p.agent = agenttest.New(said(5, 0))
	}
	if p.hub.Compact == nil {
		p.hub.Compact = runner.Compact
	}
	p.cfg.Logger, p.runner.Logger = logger, logger
	if p.log == nil {
		p.log = func(l hub.Log) hub.Log { return l }
	}
	s.past = past
	s.hub = hub.New(p.log(s.live), past, p.hub)
	past.Listen(s.hub.Listed)
	stores := runner.Stores{Log: s.live, Heads: s.live, Leaser: s.live, Owners: s.live, History: past, Records: past, Backlog: past, Line: past, Story: past}
	s.runner = runner.New(stores, map[string]runner.Agent{"demo": p.agent, "other": p.agent}, "demo", p.runner)
	parts := web.Parts{
		Hub: s.hub, Runs: s.runner, Directory: past, Asker: s.runner, NoPage: []byte("<p>no page</p>"),
		Agents: []web.Agent{{ID: "demo", Type: "demo", Default: true}, {ID: "other", Type: "agui"}},
	}
	if p.parts != nil {
		p.parts(&parts)
	}
	s.web = web.New(parts, p.cfg)
	stop := s.serve(p)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.web.Drain(ctx)
		now, cut := context.WithCancel(ctx)
		cut()
		if _, err := s.runner.Drain(now, ctx); err != nil {
			t.Error(err)
		}
		stop()
		s.hub.Close()
		_ = s.live.Close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.log)
		}
	})
	return s
}

// serve serves until the function it returns is called.
func (s *site) serve(p plan) (stop func()) {
	s.Helper()
	var listener net.Listener
	if p.pipe {
		pipe := webtest.NewPipe()
		listener, s.url, s.dial = pipe, "http://server", pipe.Dial
	} else {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.Fatal(err)
		}
		listener, s.url, s.dial = tcp, "http://"+tcp.Addr().String(), new(net.Dialer).DialContext
	}
	handler := s.web.Handler()
	if p.wrap != nil {
		e := echo.New()
		p.wrap(e)
		s.web.Register(e)
		handler = e
	}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.NewTextHandler(s.log, nil), slog.LevelError)}
	if p.server != nil {
		p.server(server)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

// within is a context for one test: long enough for a busy machine, short enough for a person.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// client opens a socket, which is closed when the test is over.
func (s *site) client(opts webtest.Options) *webtest.Client {
	s.Helper()
	opts.Dial = s.dial
	c, err := webtest.Dial(within(s.T), s.url, &opts)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	return c
}

// join opens a socket and joins a thread on it.
func (s *site) join(id string, payload any) *webtest.Channel {
	s.Helper()
	ch, err := s.client(webtest.Options{}).Join(within(s.T), "thread:"+id, payload)
	if err != nil {
		s.Fatal(err)
	}
	return ch
}

// viewer joins a thread as a viewer, on a socket of its own.
func (s *site) viewer(id string, options map[string]any) *webtest.Viewer {
	s.Helper()
	v := webtest.NewViewer(id, options)
	if err := v.Join(within(s.T), s.client(webtest.Options{})); err != nil {
		s.Fatal(err)
	}
	return v
}

// until waits until the viewer has seen what done asks for.
func (s *site) until(v *webtest.Viewer, done func(*webtest.Viewer) bool) {
	s.Helper()
	if err := v.Until(within(s.T), done); err != nil {
		s.Fatal(err)
	}
}

// next returns the next push of a membership, which must be of that event.
func (s *site) next(ch *webtest.Channel, event string) string {
	s.Helper()
	p, err := ch.Next(within(s.T))
	if err != nil {
		s.Fatal(err)
	}
	if p.Event != event {
		s.Fatalf("got %s %s, want %s", p.Event, p.Payload, event)
	}
	return string(p.Payload)
}

// start starts a run without a socket.
func (s *site) start(id, run string) {
	s.Helper()
	_, err := s.runner.Run(s.Context(), thread.Request{Thread: thread.ID(id), RunID: thread.RunID(run),
		Input: func(run thread.RunID) ([]byte, error) {
			return json.Marshal(map[string]any{"threadId": id, "runId": run, "messages": []any{}, "tools": []any{},
				"context": []any{}, "state": nil, "forwardedProps": nil})
		}})
	if err != nil {
		s.Fatal(err)
	}
}

// finish runs a run to its end.
func (s *site) finish(id, run string) {
	s.Helper()
	v := webtest.NewViewer(id, nil)
	c := s.client(webtest.Options{})
	if err := v.Join(within(s.T), c); err != nil {
		s.Fatal(err)
	}
	s.start(id, run)
	s.until(v, webtest.Ended(run))
	c.Close()
	s.saved(id, run)
}

// saved waits until the history has the end of a thread's latest run, a moment after its last event was shown.
func (s *site) saved(id, run string) {
	s.Helper()
	ctx := within(s.T)
	for {
		th, err := s.past.Thread(ctx, thread.ID(id))
		if err != nil {
			s.Fatal(err)
		}
		if th.Latest.ID == thread.RunID(run) && !th.Latest.Ended.IsZero() {
			return
		}
		<-time.After(time.Millisecond)
	}
}

// logged waits until the log has an entry of a thread's active run: an agent may be ahead of it.
func (s *site) logged(id, cursor string) {
	s.Helper()
	ctx := within(s.T)
	for {
		_, body := s.request("GET", "/api/threads/"+id, "")
		if strings.Contains(body, `"cursor":"`+cursor+`"`) {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("the log never got to %s: %s", cursor, body)
		}
		<-time.After(time.Millisecond)
	}
}

// request sends an HTTP request and returns the answer with its body.
func (s *site) request(method, path, body string) (*http.Response, string) {
	s.Helper()
	return s.requestWith(nil, method, path, body)
}

// requestWith is request with headers besides.
func (s *site) requestWith(header http.Header, method, path, body string) (*http.Response, string) {
	s.Helper()
	client := &http.Client{
		Transport:     &http.Transport{DialContext: s.dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r, err := http.NewRequestWithContext(within(s.T), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	maps.Copy(r.Header, header)
	response, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response, string(text)
}

// decode reads JSON.
func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// syncBuffer is a log that may be written and read at once.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, fn func(t *testing.T)) { t.Helper(); synctest.Test(t, fn) }
