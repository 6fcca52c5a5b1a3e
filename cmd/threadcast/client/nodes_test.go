package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// serve starts a server, and returns it as nodes.
func serve(t *testing.T, opts client.Options, handler http.HandlerFunc) *client.Nodes {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	opts.URLs = []string{server.URL + "/"}
	n := client.New(opts)
	t.Cleanup(n.Close)
	return n
}

const unavailable = `{"code":"unavailable","message":"Try again."}`

func TestCallAsksAgainWhereThatIsWorthIt(t *testing.T) {
	var asked atomic.Int64
	n := serve(t, client.Options{Patience: 20 * time.Second, Token: "secret"}, func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, unavailable)
		case 2: // the answer is lost
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		default:
			fmt.Fprintf(w, `{"who":%q,"path":%q}`, r.Header.Get("Authorization"), r.URL.EscapedPath())
		}
	})
	var answer struct{ Who, Path string }
	err := n.Call(t.Context(), client.Request{Method: http.MethodGet, Path: client.ThreadPath("a/b c")}, &answer)
	if err != nil || answer.Who != "Bearer secret" || answer.Path != "/api/threads/a%2Fb%20c" || asked.Load() != 3 {
		t.Errorf("after %d requests it has %+v, %v", asked.Load(), answer, err)
	}
}

func TestCallTellsRefusalsFromSilence(t *testing.T) {
	tests := map[string]struct {
		opts    client.Options
		status  int // 0: the connection is cut
		body    string
		refused *client.Refusal
		asked   bool // more than once
	}{
		"a refusal":        {client.Options{Patience: time.Minute}, 409, `{"code":"thread_busy","message":"Busy.","runId":"r"}`, &client.Refusal{Status: 409, Code: "thread_busy", Message: "Busy.", RunID: "r"}, false},
		"of somebody else": {client.Options{Patience: time.Minute}, 404, "<p>no</p>", &client.Refusal{Status: 404}, false},
		"for too long":     {client.Options{Patience: 150 * time.Millisecond, Timeout: time.Minute}, 503, unavailable, &client.Refusal{Status: 503, Code: "unavailable", Message: "Try again."}, true},
		"silence":          {client.Options{Patience: 150 * time.Millisecond, Timeout: time.Minute}, 0, "", nil, true},
		"silence at first": {client.Options{Patience: time.Minute, Hasty: true}, 0, "", nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			n := serve(t, test.opts, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				if test.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			})
			err := n.Call(t.Context(), client.Request{Method: http.MethodPost, Path: "/x", Body: map[string]int{"a": 1}}, nil)
			var refused *client.Refusal
			if errors.Is(err, client.ErrUnreachable) != (test.refused == nil) || errors.As(err, &refused) != (test.refused != nil) {
				t.Fatalf("it ends with %v", err)
			}
			if want := test.refused; want != nil && (refused.Status != want.Status || refused.Code != want.Code || refused.Message != want.Message || refused.RunID != want.RunID) {
				t.Errorf("it ends with %+v", refused)
			}
			if (asked.Load() > 1) != test.asked {
				t.Errorf("it was asked %d times", asked.Load())
			}
		})
	}
}

func TestURLsAreChecked(t *testing.T) {
	for u, fits := range map[string]bool{"http://127.0.0.1:8080": true, "https://x/y/": true, "localhost:8080": false, "ftp://x": false, "http://": false, ":": false} {
		if err := client.CheckURL(u); (err == nil) != fits {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// joinable answers a join with a reply of that status, and then does as it is told.
func joinable(status, response string, then func(*websocket.Conn, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_, join, err := conn.Read(r.Context())
		if err != nil || !strings.HasPrefix(string(join), `["1","1","thread:t","phx_join",{"after":"1-2","replay":"raw"}]`) {
			return
		}
		_ = conn.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `["1","1","thread:t","phx_reply",{"status":%q,"response":%s}]`, status, response))
		if then != nil {
			then(conn, r)
		}
	}
}

var membership = client.Membership{Thread: "t", After: "1-2", Replay: "raw"}

func TestJoin(t *testing.T) {
	read := func(conn *websocket.Conn, r *http.Request) { _, _, _ = conn.Read(r.Context()) }
	n := serve(t, client.Options{Patience: time.Minute}, joinable("ok", `{"cursor":"1-2"}`, read))
	s, err := n.Join(t.Context(), n.Any(), membership)
	if err != nil || string(s.Joined) != `{"cursor":"1-2"}` {
		t.Fatalf("it is joined with %+v, %v", s, err)
	}
	s.Cut()
	if _, err := s.Next(t.Context()); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("the end of the socket is %v", err)
	}
}

func TestJoinThatIsRefused(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		status  int
		code    string
		again   bool
	}{
		"by the thread": {joinable("error", `{"code":"bad_cursor","message":"."}`, nil), 0, "bad_cursor", false},
		"for now":       {joinable("error", unavailable, nil), 0, "unavailable", true},
		"before it begins": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"code":"not_authorized"}`, http.StatusForbidden)
		}, 403, "not_authorized", false},
		"while it drains": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"code":"draining"}`, http.StatusServiceUnavailable)
		}, 503, "draining", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := serve(t, client.Options{Patience: time.Minute}, test.handler)
			_, err := n.Join(t.Context(), n.Any(), membership)
			var refused *client.Refusal
			if !errors.As(err, &refused) || refused.Status != test.status || refused.Code != test.code || refused.Again() != test.again {
				t.Errorf("it ends with %+v, %v", refused, err)
			}
		})
	}
}

// A server that answers no ping is taken for dead.
func TestWatchCutsADeadConnection(t *testing.T) {
	over := make(chan struct{})
	mute := func(*websocket.Conn, *http.Request) { <-over }
	n := serve(t, client.Options{Patience: time.Minute}, joinable("ok", `{}`, mute))
	defer close(over)
	s, err := n.Join(t.Context(), n.Any(), membership)
	if err != nil {
		t.Fatal(err)
	}
	go s.Watch(t.Context(), 50*time.Millisecond)
	if _, err := s.Next(t.Context()); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("it ends with %v", err)
	}
}
