package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestHandshakeIsAccepted(t *testing.T) {
	s := open(t, plan{})
	tests := map[string]webtest.Options{
		"plain":                      {},
		"another minor version":      {Path: "/socket/websocket?vsn=2.1.0"},
		"a doubled slash":            {Path: "//socket/websocket?vsn=2.0.0"},
		"another doubled slash":      {Path: "/socket//websocket?vsn=2.0.0"},
		"more parameters":            {Path: "/socket/websocket?token=x&vsn=2.0.0"},
		"the subprotocol of phoenix": {Subprotocols: []string{"phoenix", "base64url.bearer.phx.dG9rZW4"}},
		"the server's own origin":    {Header: http.Header{"Origin": {s.url}}},
	}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			c := (&site{T: t, url: s.url, dial: s.dial}).client(opts)
			if err := c.Heartbeat(within(t)); err != nil {
				t.Fatal(err)
			}
			want := ""
			if opts.Subprotocols != nil {
				want = "phoenix"
			}
			if got := c.Response().Header.Get("Sec-WebSocket-Protocol"); got != want {
				t.Fatalf("subprotocol %q", got)
			}
		})
	}
}

func TestHandshakeIsRefusedBeforeTheUpgrade(t *testing.T) {
	s := open(t, plan{})
	tests := map[string]struct {
		opts   webtest.Options
		status int
		code   string
	}{
		"no vsn":           {webtest.Options{Path: "/socket/websocket"}, 400, "bad_input"},
		"an empty vsn":     {webtest.Options{Path: "/socket/websocket?vsn="}, 400, "bad_input"},
		"vsn=1.0.0":        {webtest.Options{Path: "/socket/websocket?vsn=1.0.0"}, 400, "bad_input"},
		"vsn=20":           {webtest.Options{Path: "/socket/websocket?vsn=20"}, 400, "bad_input"},
		"a foreign origin": {webtest.Options{Header: http.Header{"Origin": {"https://evil.example"}}}, 403, "not_authorized"},
		"an opaque origin": {webtest.Options{Header: http.Header{"Origin": {"null"}}}, 403, "not_authorized"},
		"long polling":     {webtest.Options{Path: "/socket/longpoll?vsn=2.0.0"}, 404, "not_found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.opts.Dial = s.dial
			_, err := webtest.Dial(within(t), s.url, &tt.opts)
			var refused *webtest.Refused
			if !errors.As(err, &refused) || refused.HTTP != tt.status || refused.Code != tt.code {
				t.Fatalf("got %v", err)
			}
		})
	}
	if n := s.web.Sessions(); n != 0 {
		t.Fatalf("%d sockets", n)
	}
	if response, _ := s.request("GET", "/socket/websocket?vsn=2.0.0", ""); response.StatusCode != http.StatusUpgradeRequired {
		t.Fatalf("without an upgrade: %d", response.StatusCode)
	}
}

func TestHeartbeatIsAnswered(t *testing.T) {
	s := open(t, plan{})
	tape := newTape()
	c := s.client(webtest.Options{OnFrame: tape.record})
	send(t, c, `[null,"7","phoenix","heartbeat",{}]`)
	frames := tape.await(t, `"7"`)
	if want := `[null,"7","phoenix","phx_reply",{"status":"ok","response":{}}]`; frames[0] != want {
		t.Fatalf("got %s", frames[0])
	}
}

func TestMalformedFramesCloseTheSocket(t *testing.T) {
	for name, spoil := range map[string]func(c *webtest.Client) error{
		"no JSON":             func(c *webtest.Client) error { return c.SendText([]byte("hello")) },
		"four elements":       func(c *webtest.Client) error { return c.SendText([]byte(`["1","1","t","e"]`)) },
		"no UTF-8":            func(c *webtest.Client) error { return c.SendText([]byte("[\"\xff\",\"1\",\"t\",\"e\",{}]")) },
		"a binary half frame": func(c *webtest.Client) error { return c.SendBinary([]byte{0, 9, 9}) },
		"a long name in the reason": func(c *webtest.Client) error {
			return c.SendText([]byte(`["1","1","t","e",` + strings.Repeat("ä", 300) + `]`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := agenttest.New(held(1))
			s := open(t, plan{agent: agent})
			c := s.client(webtest.Options{})
			if _, err := c.Join(within(t), "thread:t", nil); err != nil {
				t.Fatal(err)
			}
			if err := spoil(c); err != nil {
				t.Fatal(err)
			}
			if code, err := c.Closed(within(t)); code != 1002 || err != nil {
				t.Fatalf("closed with %d, %v", code, err)
			}
		})
	}
}

func TestBinaryPushIsAnsweredWithAnError(t *testing.T) {
	s := open(t, plan{})
	tape := newTape()
	c := s.client(webtest.Options{OnFrame: tape.record})
	if err := c.SendBinary([]byte("\x00\x01\x01\x08\x0234thread:tup\x01\x02\x03")); err != nil {
		t.Fatal(err)
	}
	frames := tape.await(t, "phx_reply")
	want := `["3","4","thread:t","phx_reply",{"status":"error","response":{"code":"bad_input","message":"binary payloads are not taken"}}]`
	if frames[0] != want {
		t.Fatalf("got %s", frames[0])
	}
}

func TestTooLargeAMessageClosesTheSocket(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxFrame: 10_000}})
	big := func(n int) string {
		head, tail := `[null,"1","phoenix","heartbeat",{"x":"`, `"}]`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	fits := s.client(webtest.Options{})
	send(t, fits, big(10_000))
	if err := fits.Heartbeat(within(t)); err != nil {
		t.Fatalf("a message of the greatest size: %v", err)
	}
	for range 20 {
		c := s.client(webtest.Options{})
		send(t, c, big(1_000_000))
		if code, err := c.Closed(within(t)); code != 1009 || err != nil {
			t.Fatalf("closed with %d, %v", code, err)
		}
	}
}

func TestAPeerThatAnswersPingsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, plan{pipe: true})
		c := s.client(webtest.Options{})
		<-time.After(time.Hour)
		if err := c.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAPeerThatDoesNotAnswerPingsIsClosed(t *testing.T) {
	for name, opts := range map[string]webtest.Options{"mute": {Mute: true}, "frozen": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, plan{pipe: true, cfg: web.Config{Ping: 20 * time.Second, Pong: 15 * time.Second}})
				c := s.client(opts)
				if !opts.Mute {
					c.StopReading()
				}
				began := time.Now()
				<-time.After(34 * time.Second)
				if n := s.web.Sessions(); n != 1 && opts.Mute {
					t.Fatalf("closed after %v", time.Since(began))
				}
				<-time.After(2 * time.Second)
				synctest.Wait()
				if n := s.web.Sessions(); n != 0 {
					t.Fatal("it is still there")
				}
				c.ResumeReading()
				if err := c.Heartbeat(t.Context()); err == nil {
					t.Fatal("it still works")
				}
			})
		})
	}
}

func TestAViewerThatDoesNotReadIsClosedAndHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := agenttest.New(said(1000, 15*time.Millisecond))
		s := open(t, plan{pipe: true, agent: agent, cfg: web.Config{WriteTimeout: 5 * time.Second, Ping: time.Hour}})
		good := s.viewer("t", nil)
		good.Exact = true
		c := s.client(webtest.Options{})
		stalled := webtest.NewViewer("t", map[string]any{"replay": "raw"})
		if err := stalled.Join(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.start("t", "r1")
		s.until(good, webtest.Seen(100))
		s.until(stalled, webtest.Seen(100))
		c.StopReading()
		began := time.Now()
		for s.web.Sessions() == 2 {
			was := len(good.Events())
			s.until(good, webtest.Seen(was+1))
			if time.Since(began) > 6*time.Second {
				t.Fatal("it is still there")
			}
		}
		if took := time.Since(began); took < 4*time.Second {
			t.Fatalf("closed after %v", took)
		}
		s.until(good, webtest.Ended("r1"))
		if n := len(good.Events()); n != 1004 {
			t.Fatalf("the other viewer has %d events", n)
		}
		c.ResumeReading()
		if code, _ := c.Closed(t.Context()); code != webtest.CloseAbnormal {
			t.Fatalf("closed with %d", code)
		}
		if !strings.Contains(s.log.String(), "does not read") {
			t.Fatalf("the log does not tell: %s", s.log)
		}
		if err := stalled.Join(t.Context(), s.client(webtest.Options{})); err != nil {
			t.Fatal(err)
		}
		s.until(stalled, webtest.Ended("r1"))
		if n := len(stalled.Events()); n != 1004 || stalled.Resets != 0 {
			t.Fatalf("it resumed to %d events with %d resets", n, stalled.Resets)
		}
	})
}

func TestDrainTellsClientsToComeBack(t *testing.T) {
	agent := agenttest.New(said(100_000, time.Millisecond))
	s := open(t, plan{agent: agent})
	var clients []*webtest.Client
	for range 20 {
		c := s.client(webtest.Options{})
		v := webtest.NewViewer("t", nil)
		if err := v.Join(within(t), c); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	s.start("t", "r1")
	s.web.Drain(within(t))
	for _, c := range clients {
		if code, err := c.Closed(within(t)); code != 1012 || err != nil {
			t.Errorf("closed with %d, %v", code, err)
		}
	}
	if n := s.web.Sessions(); n != 0 {
		t.Errorf("%d sockets are left", n)
	}
	_, err := webtest.Dial(within(t), s.url, nil)
	var refused *webtest.Refused
	if !errors.As(err, &refused) || refused.HTTP != 503 || refused.Code != "draining" {
		t.Errorf("a new socket: %v", err)
	}
	if response, body := s.request("POST", "/api/threads/x/runs", `{"messages":[]}`); response.StatusCode != 503 ||
		!strings.Contains(body, `"draining"`) || response.Header.Get("Retry-After") != "1" {
		t.Errorf("a run: %d %s %v", response.StatusCode, body, response.Header)
	}
	if response, body := s.request("GET", "/readyz", ""); response.StatusCode != 503 || body != "draining\n" {
		t.Errorf("readyz: %d %s", response.StatusCode, body)
	}
	if response, _ := s.request("GET", "/healthz", ""); response.StatusCode != 200 {
		t.Errorf("healthz: %d", response.StatusCode)
	}
	if s.runner.Active() != 1 {
		t.Error("the run was ended, which is not for the web to do")
	}
}

func TestDrainDoesNotWaitForClientsThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, plan{pipe: true, agent: agenttest.New(said(1000, time.Millisecond)),
			cfg: web.Config{WriteTimeout: time.Hour, Ping: time.Hour}})
		c := s.client(webtest.Options{})
		if _, err := c.Join(t.Context(), "thread:t", nil); err != nil {
			t.Fatal(err)
		}
		c.StopReading()
		s.start("t", "r1")
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s.web.Drain(ctx)
		if took := time.Since(began); took > 6*time.Second || s.web.Sessions() != 0 {
			t.Fatalf("it took %v, and %d sockets are left", took, s.web.Sessions())
		}
	})
}

func TestDrainWithNoTimeLeft(t *testing.T) {
	s := open(t, plan{})
	for range 20 {
		s.client(webtest.Options{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.web.Drain(ctx)
	if n := s.web.Sessions(); n != 0 {
		t.Fatalf("%d sockets are left", n)
	}
}
