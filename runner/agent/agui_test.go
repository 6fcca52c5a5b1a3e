package agent_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
	"github.com/threadcast/threadcast/runner/agenttest"
)

const (
	started  = `{"type":"RUN_STARTED","threadId":"t1","runId":"r1"}`
	finished = `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1"}`
)

// script serves one script, and returns the address of the agent.
func script(t *testing.T, steps ...agenttest.Step) (*agenttest.Server, string) {
	t.Helper()
	srv := agenttest.NewServer(t)
	srv.Handle("a", steps)
	return srv, srv.URL("a")
}

// serve serves a handler, and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
	})
	header := http.Header{"Authorization": {"Bearer x"}, "accept": {"*/*"}, "Content-Type": {"text/plain"}}
	a := newAGUI(t, address+"/run?team=1", agent.AGUIOptions{Header: header})
	header.Set("Authorization", "changed afterwards")
	if _, err := collect(t, a); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.RequestURI != "/run?team=1" {
		t.Errorf("%s %s was asked for", got.Method, got.RequestURI)
	}
	want := map[string][]string{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}, "Authorization": {"Bearer x"}}
	for name, values := range want {
		if diff := cmp.Diff(values, got.Header[name]); diff != "" {
			t.Errorf("header %s (-want +got):\n%s", name, diff)
		}
	}
	if string(body) != string(input.JSON) || got.ContentLength != int64(len(body)) {
		t.Errorf("the body was %q with length %d", body, got.ContentLength)
	}
}

func TestNewAGUIRefuses(t *testing.T) {
	const secret = "hunter2"
	good := "http://localhost/"
	tests := map[string]struct {
		address string
		opts    agent.AGUIOptions
		want    string // part of the error
	}{
		"no scheme":         {"localhost:8000", agent.AGUIOptions{}, "http or https"},
		"another scheme":    {"ftp://u:" + secret + "@localhost/", agent.AGUIOptions{}, "http or https"},
		"no host":           {"http:///agent", agent.AGUIOptions{}, "http or https"},
		"no URL":            {"http://u:" + secret + "@local host/", agent.AGUIOptions{}, "agent address"},
		"header name":       {good, agent.AGUIOptions{Header: http.Header{"X Key": {secret}}}, `"X Key"`},
		"empty header name": {good, agent.AGUIOptions{Header: http.Header{"": {secret}}}, "name"},
		"header value":      {good, agent.AGUIOptions{Header: http.Header{"X-Key": {secret + "\n"}}}, "X-Key"},
		"fixed header":      {good, agent.AGUIOptions{Header: http.Header{"Host": {"x"}}}, "Host"},
		"dial timeout":      {good, agent.AGUIOptions{DialTimeout: -1}, "dial timeout"},
		"header timeout":    {good, agent.AGUIOptions{HeaderTimeout: -1}, "header timeout"},
		"event limit":       {good, agent.AGUIOptions{MaxEvent: -1}, "event limit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := agent.NewAGUI(test.address, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want an error about %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

// TestStreamInAllShapes is the replay case c34, with each of its ways to cut the stream.
func TestStreamInAllShapes(t *testing.T) {
	data, err := os.ReadFile("testdata/c34-sse-variants.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		AgentEvents json.RawMessage `json:"agentEvents"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	c, err := agenttest.ParseCase(file.AgentEvents)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Runs) < 390 {
		t.Fatalf("the case has %d ways to cut the stream", len(c.Runs))
	}
	want := []string{
		started,
		"{\"type\":\"TEXT_MESSAGE_START\",\n\"messageId\":\"m1\",\"role\":\"assistant\"}",
		"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"你好 😀 \u2028x\u0085y\"}",
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`,
		finished,
	}
	srv := agenttest.NewServer(t)
	srv.Handle("a", c.Runs...)
	a := newAGUI(t, srv.URL("a"), agent.AGUIOptions{})
	for i := range c.Runs {
		events, err := collect(t, a)
		if err != nil {
			t.Fatalf("cut %d: %v", i, err)
		}
		if diff := cmp.Diff(want, texts(events)); diff != "" {
			t.Fatalf("cut %d (-want +got):\n%s", i, diff)
		}
	}
}

func texts(events [][]byte) []string {
	var out []string
	for _, e := range events {
		out = append(out, string(e))
	}
	return out
}

func TestEventsComeAsTheyAreSent(t *testing.T) {
	srv, address := script(t, agenttest.Emit(started), agenttest.WaitFor("go"), agenttest.Emit(finished))
	got := make(chan string)
	done := make(chan error, 1)
	a := newAGUI(t, address, agent.AGUIOptions{})
	go func() {
		done <- a.Run(t.Context(), input, func(event []byte) error { got <- string(event); return nil })
	}()
	if event := <-got; event != started {
		t.Errorf("got %s first", event)
	}
	srv.Release("go") // only now the agent goes on
	if event := <-got; event != finished {
		t.Errorf("got %s second", event)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	stopped := errors.New("stopped by somebody")
	tests := map[string][]agenttest.Step{
		"in silence":          {agenttest.Emit(started), agenttest.WaitFor("never")},
		"in the middle of it": {agenttest.Emit(started), agenttest.Repeat(1e6, `{"type":"CUSTOM","name":"n","value":"{i}"}`, 0)},
		"within a frame":      {agenttest.Emit(started), agenttest.SSE("data: {", agenttest.OnePiece), agenttest.WaitFor("never")},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			srv, address := script(t, steps...)
			ctx, cancel := context.WithCancelCause(t.Context())
			a := newAGUI(t, address, agent.AGUIOptions{})
			err := a.Run(ctx, input, func([]byte) error { cancel(stopped); return nil })
			if err != stopped {
				t.Errorf("Run returned %v; want the cause", err)
			}
			awaitHangup(t, srv)
		})
	}
}

func awaitHangup(t *testing.T, srv *agenttest.Server) {
	t.Helper()
	select {
	case got := <-srv.Closed():
		if want := (agenttest.Hangup{Agent: "a", ThreadID: "t1", RunID: "r1"}); got != want {
			t.Errorf("the server noticed %v; want %v", got, want)
		}
	case <-time.After(time.Second):
		t.Error("a second later the connection is still open")
	}
}

func TestCancelWhileTheRunnerIsBusy(t *testing.T) {
	srv, address := script(t, agenttest.Emit(started), agenttest.WaitFor("never"))
	ctx, cancel := context.WithCancel(t.Context())
	full := errors.New("no more events are taken")
	err := newAGUI(t, address, agent.AGUIOptions{}).Run(ctx, input, func([]byte) error {
		cancel()
		awaitHangup(t, srv) // the connection does not wait for emit
		return full
	})
	if err != full {
		t.Errorf("Run returned %v; want the error of emit", err)
	}
}

func TestCancelBeforeTheAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
		close(gone)
	})
	err := newAGUI(t, address, agent.AGUIOptions{}).Run(ctx, input, func([]byte) error { return nil })
	if err != context.Canceled {
		t.Errorf("Run returned %v; want %v", err, context.Canceled)
	}
	<-gone
}

func TestErrorOfEmitEndsTheRun(t *testing.T) {
	srv, address := script(t, agenttest.Emit(started), agenttest.Emit(finished), agenttest.WaitFor("never"))
	full := errors.New("no more events are taken")
	calls := 0
	err := newAGUI(t, address, agent.AGUIOptions{}).Run(t.Context(), input, func([]byte) error { calls++; return full })
	if err != full || calls != 1 {
		t.Errorf("Run returned %v after %d events; want the error of emit after the first", err, calls)
	}
	awaitHangup(t, srv)
}

func TestConnectionIsUsedAgain(t *testing.T) {
	peers := map[string]bool{}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		peers[r.RemoteAddr] = true
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: "+finished+"\n\n")
	})
	a := newAGUI(t, address, agent.AGUIOptions{})
	for range 5 {
		if _, err := collect(t, a); err != nil {
			t.Fatal(err)
		}
	}
	if len(peers) != 1 {
		t.Errorf("five runs, one after the other, used %d connections", len(peers))
	}
}

// failure is how a run is meant to end.
type failure struct {
	code    string
	message string // of the error, whole
	cause   string // part of what is behind it
}

func checkFailure(t *testing.T, err error, want failure) {
	t.Helper()
	var got *runner.AgentError
	if !errors.As(err, &got) {
		t.Fatalf("Run returned %v; want an AgentError", err)
	}
	if got.Code != want.code || got.Message != want.message {
		t.Errorf("got %s: %s", got.Code, got.Message)
	}
	if got.Err == nil || !strings.Contains(got.Err.Error(), want.cause) {
		t.Errorf("behind it is %v; want something with %s", got.Err, want.cause)
	}
}

func TestAnswersThatAreNoStream(t *testing.T) {
	const notAStream = "The agent did not answer with an event stream."
	answer := func(status int, header, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(status)
			if status != http.StatusNoContent {
				_, _ = io.WriteString(w, strings.Repeat("secret ", 1000))
			}
		}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		want    failure
	}{
		"503":               {answer(503, "Content-Type", "text/plain"), failure{"agent_status", "The agent answered HTTP 503.", "secret"}},
		"401":               {answer(401, "Content-Type", "text/event-stream"), failure{"agent_status", "The agent answered HTTP 401.", "secret"}},
		"204":               {answer(204, "Content-Type", "text/event-stream"), failure{"agent_status", "The agent answered HTTP 204.", "204"}},
		"303":               {answer(303, "Location", "/elsewhere"), failure{"agent_status", "The agent answered HTTP 303.", "303"}},
		"307 to elsewhere":  {answer(307, "Location", "http://agent.invalid/"), failure{"agent_status", "The agent answered HTTP 307.", "307"}},
		"307 in a circle":   {answer(307, "Location", "/"), failure{"agent_status", "The agent answered HTTP 307.", "307"}},
		"a page":            {answer(200, "Content-Type", "text/html; charset=utf-8"), failure{"agent_content_type", notAStream, "text/html"}},
		"protobuf":          {answer(200, "Content-Type", "application/vnd.ag-ui.event+proto"), failure{"agent_content_type", notAStream, "proto"}},
		"an image":          {answer(200, "Content-Type", "IMAGE/PNG"), failure{"agent_content_type", notAStream, "PNG"}},
		"what nobody reads": {answer(200, "Content-Encoding", "br"), failure{"agent_content_type", notAStream, "br"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := collect(t, newAGUI(t, serve(t, test.handler), agent.AGUIOptions{}))
			checkFailure(t, err, test.want)
			if len(events) != 0 {
				t.Errorf("%d events came", len(events))
			}
		})
	}
}

func TestRefusalIsNotLoggedWhole(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("x", 1<<20), http.StatusBadGateway)
	})
	_, err := collect(t, newAGUI(t, address, agent.AGUIOptions{}))
	if n := len(errors.Unwrap(err).Error()); n < 2<<10 || n > 3<<10 {
		t.Errorf("%d bytes are kept for the log", n)
	}
}

func TestRefusalThatDoesNotEnd(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "wait a moment")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	_, err := collect(t, newAGUI(t, address, agent.AGUIOptions{}))
	checkFailure(t, err, failure{"agent_status", "The agent answered HTTP 503.", "wait a moment"})
}

func TestRedirectToTheSamePlaceIsFollowed(t *testing.T) {
	var bodies []string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+string(body))
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/agent/", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "data: "+finished+"\n\n")
	})
	events, err := collect(t, newAGUI(t, address+"/", agent.AGUIOptions{}))
	if err != nil || len(events) != 1 {
		t.Errorf("got %d events and %v", len(events), err)
	}
	whole := "POST" + string(input.JSON)
	if diff := cmp.Diff([]string{whole, whole}, bodies); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestCompressedStreamIsRefused(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = io.WriteString(zw, "data: "+finished+"\n\n")
		_ = zw.Close()
	})
	_, err := collect(t, newAGUI(t, address, agent.AGUIOptions{}))
	checkFailure(t, err, failure{"agent_content_type", "The agent did not answer with an event stream.", "gzip"})
}

func TestUnreachable(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	withTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	withTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	withTLS.StartTLS()
	defer withTLS.Close()
	hangsUp := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	const noWay, tooLate = "The agent could not be reached.", "The agent did not answer in time."
	secret := "/?token=hunter2"
	tests := map[string]struct {
		address string
		want    failure
	}{
		"nobody listens":      {closed.URL, failure{"agent_unreachable", noWay, "refused"}},
		"no such host":        {"http://agent.invalid", failure{"agent_unreachable", noWay, "agent.invalid"}},
		"unknown certificate": {withTLS.URL, failure{"agent_unreachable", noWay, "certificate"}},
		"no TLS":              {strings.Replace(hangsUp, "http:", "https:", 1), failure{"agent_unreachable", noWay, "HTTPS"}},
		"it hangs up":         {hangsUp, failure{"agent_unreachable", noWay, "EOF"}},
		"no answer":           {"http://" + silent.Addr().String(), failure{"agent_unreachable", tooLate, "timeout"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, newAGUI(t, test.address+secret, agent.AGUIOptions{HeaderTimeout: 50 * time.Millisecond}))
			checkFailure(t, err, test.want)
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "hunter2") {
					t.Errorf("the error tells a secret: %v", e)
				}
			}
		})
	}
}

func TestStreamsThatBreak(t *testing.T) {
	const brokeOff, noEvent = "The connection to the agent broke off.", "The agent sent something that is not an event."
	piece := func(text string) agenttest.Step { return agenttest.SSE(text, agenttest.OnePiece) }
	tests := map[string]struct {
		steps []agenttest.Step
		want  failure
	}{
		"cut within a frame":   {[]agenttest.Step{piece(`data: {"type":"X"}`), agenttest.Panic("cut")}, failure{"agent_truncated", brokeOff, "EOF"}},
		"cut between frames":   {[]agenttest.Step{agenttest.Panic("cut")}, failure{"agent_truncated", brokeOff, "EOF"}},
		"ended within a frame": {[]agenttest.Step{piece(`data: {"type":"X`)}, failure{"agent_truncated", brokeOff, `{\"type\":\"X`}},
		"not JSON":             {[]agenttest.Step{piece("data: oops\n\n"), agenttest.WaitFor("never")}, failure{"agent_bad_stream", noEvent, "oops"}},
		"done marker":          {[]agenttest.Step{piece("data: [DONE]\n\n")}, failure{"agent_bad_stream", noEvent, "[DONE]"}},
		"empty data":           {[]agenttest.Step{piece("data:\n\n")}, failure{"agent_bad_stream", noEvent, "not JSON"}},
		"no type":              {[]agenttest.Step{agenttest.Emit(`{"Type":"X"}`)}, failure{"agent_bad_stream", noEvent, "no event type"}},
		"too large":            {[]agenttest.Step{agenttest.BigResult("c", "m", 5000), agenttest.WaitFor("never")}, failure{"event_too_large", "The agent sent an event that is too large.", "4096"}},
		"larger and larger":    {[]agenttest.Step{piece("data: " + strings.Repeat("x", 5000)), agenttest.WaitFor("never")}, failure{"event_too_large", "The agent sent an event that is too large.", "4096"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, address := script(t, append([]agenttest.Step{agenttest.Emit(started)}, test.steps...)...)
			events, err := collect(t, newAGUI(t, address, agent.AGUIOptions{MaxEvent: 4096}))
			checkFailure(t, err, test.want)
			if diff := cmp.Diff([]string{started}, texts(events)); diff != "" {
				t.Errorf("events before the end (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventAsLargeAsAllowed(t *testing.T) {
	const limit = 1 << 20
	_, address := script(t, agenttest.BigResult("c", "m", limit-100), agenttest.Emit(finished))
	events, err := collect(t, newAGUI(t, address, agent.AGUIOptions{MaxEvent: limit}))
	if err != nil || len(events) != 2 {
		t.Fatalf("got %d events and %v", len(events), err)
	}
	if n := len(events[0]); n < limit-100 || n > limit {
		t.Errorf("the event has %d bytes", n)
	}
}

func TestEndWithoutTerminalEventIsNoError(t *testing.T) {
	_, address := script(t, agenttest.Emit(started), agenttest.SSE(": bye\n", agenttest.OnePiece))
	events, err := collect(t, newAGUI(t, address, agent.AGUIOptions{}))
	if err != nil || len(events) != 1 {
		t.Errorf("got %d events and %v", len(events), err)
	}
}
