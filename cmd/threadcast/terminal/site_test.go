package terminal_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
)

// enough bounds every wait for something that has to come.
const enough = 30 * time.Second

// site is a whole server over a live log in memory, with one scripted agent.
type site struct {
	*testing.T
	agent *agenttest.Agent
	url   string
	conns *conns
}

// open starts a server whose callers have that token, if it is not empty.
func open(t *testing.T, token string, runs ...[]agenttest.Step) *site {
	t.Helper()
	logged := &output{}
	logger := slog.New(slog.NewTextHandler(logged, nil))
	file, err := sqlitefile.Open(t.Context(), filepath.Join(t.TempDir(), "terminal.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	past, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, agent: agenttest.New(runs...)}
	live := memlog.New()
	h := hub.New(live, past, hub.Config{Compact: runner.Compact})
	stores := runner.Stores{Log: live, Heads: live, Leaser: live, Owners: live, History: past, Records: past, Backlog: past, Line: past, Story: past, Board: h}
	r := runner.New(stores, map[string]runner.Agent{"one": s.agent}, "one", runner.Config{Logger: logger})
	server := web.New(web.Parts{
		Hub: h, Runs: r, Directory: past, NoPage: []byte("<p>no page</p>"), Identify: identify(token),
		Agents: []web.Agent{{ID: "one", Type: "agui", Default: true}},
	}, web.Config{Logger: logger})
	stop := s.serve(server.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enough)
		defer cancel()
		server.Drain(ctx)
		now, cut := context.WithCancel(ctx)
		cut()
		if _, err := r.Drain(now, ctx); err != nil {
			t.Error(err)
		}
		stop()
		h.Close()
		_ = live.Close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(logged)
		}
	})
	return s
}

func identify(token string) func(*http.Request) (thread.User, error) {
	if token == "" {
		return nil
	}
	return func(r *http.Request) (thread.User, error) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return "", echo.NewHTTPError(http.StatusForbidden, "who are you?")
		}
		return "someone", nil
	}
}

func (s *site) serve(handler http.Handler) (stop func()) {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.conns = &conns{Listener: listener}
	s.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(s.conns)
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

// conns are the connections of a server, which can be cut.
type conns struct {
	net.Listener
	mu  sync.Mutex
	all []net.Conn
}

func (c *conns) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = append(c.all, conn)
	}
	return conn, err
}

// cut cuts all connections without a word.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		_ = conn.Close()
	}
	c.all = nil
}

// output collects what a command writes, and can be read while it does.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// command is one that runs.
type command struct {
	*site
	out, err output
	done     chan error
	stop     context.CancelFunc
}

// start starts a command, which is ended with the test.
func (s *site) start(change func(*terminal.Config), run func(context.Context, terminal.Config) error) *command {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &command{site: s, done: make(chan error, 1), stop: cancel}
	cfg := terminal.Config{Server: s.url, Output: terminal.Output{Out: &c.out, Err: &c.err}}
	if change != nil {
		change(&cfg)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.done <- run(ctx, cfg)
	}()
	s.Cleanup(func() {
		cancel()
		<-gone
		if s.Failed() {
			s.Logf("it wrote\n%s\nand\n%s", &c.out, &c.err)
		}
	})
	return c
}

func (s *site) tail(change func(*terminal.Config), t terminal.Tailing) *command {
	s.Helper()
	return s.start(change, func(ctx context.Context, c terminal.Config) error { return terminal.Tail(ctx, c, t) })
}

func (s *site) ask(change func(*terminal.Config), q terminal.Question) *command {
	s.Helper()
	return s.start(change, func(ctx context.Context, c terminal.Config) error { return terminal.Ask(ctx, c, q) })
}

// shows waits until an output has that text.
func (s *site) shows(o *output, text string) {
	s.Helper()
	s.eventually("there is "+text, func() bool { return strings.Contains(o.String(), text) })
}

func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.NewTimer(enough)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			s.Fatalf("%s: not within %s", what, enough)
		}
	}
}

// ends waits until the command ends, and checks its exit code.
func (c *command) ends(code int) error {
	c.Helper()
	select {
	case err := <-c.done:
		if got := terminal.ExitCode(err); got != code {
			c.Errorf("it ended with code %d, want %d: %v", got, code, err)
		}
		return err
	case <-time.After(enough):
		c.Fatalf("it has not ended within %s", enough)
		return nil
	}
}

// call asks the API.
func (s *site) call(method, path, body string) (int, string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// run starts a run with that question.
func (s *site) run(id, run, says, more string) {
	s.Helper()
	body := `{"runId":"` + run + `","messages":[{"id":"m-` + run + `","role":"user","content":"` + says + `"}]` + more + `}`
	if code, text := s.call("POST", "/api/threads/"+id+"/runs", body); code != http.StatusAccepted {
		s.Fatalf("run %s was not accepted: %d %s", run, code, text)
	}
}

// saved waits until a run has ended and is in the history.
func (s *site) saved(id, run string) {
	s.Helper()
	s.eventually("the end of run "+run, func() bool {
		_, text := s.call("GET", "/api/threads/"+id+"/runs/"+run, "")
		return strings.Contains(text, `"stored":`) && !strings.Contains(text, `"stored":null`)
	})
}

// Events of the scripts.
const (
	started  = `{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`
	finished = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`
	begin    = `{"type":"TEXT_MESSAGE_START","messageId":"a-{run}","role":"assistant"}`
	word     = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"a-{run}","delta":"w{i} "}`
	end      = `{"type":"TEXT_MESSAGE_END","messageId":"a-{run}"}`
	asks     = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt","interrupts":[` +
		`{"id":"i-{run}","reason":"confirmation","message":"Really?"}]}}`
)

// said is a run that says n words.
func said(n int) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, 0), agenttest.Emit(end), agenttest.Emit(finished)}
}

// held is a run that says n words, waits at the gate "go", and says n more.
func held(n int) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, 0),
		agenttest.WaitFor("go"), agenttest.Repeat(n, word, 0), agenttest.Emit(end), agenttest.Emit(finished)}
}

// asking is a run that ends with a question.
func asking() []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(asks)}
}
