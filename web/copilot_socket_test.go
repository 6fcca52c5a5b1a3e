package web_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// refusal opens a socket that must be refused, and returns the answer.
func (s *site) refusal(opts webtest.Options) *webtest.Refused {
	s.Helper()
	opts.Dial = s.dial
	_, err := webtest.Dial(within(s.T), s.url, &opts)
	var refused *webtest.Refused
	if !errors.As(err, &refused) {
		s.Fatalf("it was let in: %v", err)
	}
	return refused
}

func TestOnlyTicketsLetCopilotKitIn(t *testing.T) {
	secret := []byte("the secret of two nodes")
	shared := func(p *web.Parts) { p.Secret = secret }
	s, other := open(t, plan{parts: shared}), open(t, plan{parts: shared})
	good := s.web.Ticket("connect", "t", "")
	flipped := good[:len(good)-2] + string(good[len(good)-2]^1) + good[len(good)-1:]
	client := func(token string) webtest.Options {
		return webtest.Options{Path: "/client/websocket?join_token=" + token + "&vsn=2.0.0"}
	}
	foreign := client(good)
	foreign.Header = http.Header{"Origin": {"https://evil.example"}}
	for name, tt := range map[string]struct {
		opts   webtest.Options
		status int
		code   string
	}{
		"none":                      {webtest.Options{Path: "/client/websocket?vsn=2.0.0"}, 401, "not_authenticated"},
		"rubbish":                   {client("rubbish"), 403, "not_authorized"},
		"no base64":                 {client("%2F%2F"), 403, "not_authorized"},
		"a changed one":             {client(flipped), 403, "not_authorized"},
		"one of an earlier process": {client(other.web.Ticket("connect", "t", "")), 403, "not_authorized"},
		"a good one without vsn":    {webtest.Options{Path: "/client/websocket?join_token=" + good}, 400, "bad_input"},
		"a good one from elsewhere": {foreign, 403, "not_authorized"},
		"long polling":              {webtest.Options{Path: "/client/longpoll?join_token=" + good + "&vsn=2.0.0"}, 404, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := (&site{T: t, url: s.url, dial: s.dial}).refusal(tt.opts)
			if refused.HTTP != tt.status || refused.Code != tt.code {
				t.Errorf("got %d %s", refused.HTTP, refused.Response)
			}
			if strings.Contains(string(refused.Response), good) {
				t.Errorf("the answer tells the token: %s", refused.Response)
			}
		})
	}
	for _, path := range []string{"/client/websocket", "//client/websocket", "/client//websocket"} {
		s.client(webtest.Options{Path: path + "?join_token=" + s.web.Ticket("connect", "t", "") + "&vsn=2.0.0"})
	}
	if strings.ContainsAny(good, "/+= ") {
		t.Errorf("a token that has to be escaped: %s", good)
	}
	if log := s.log.String(); strings.Contains(log, good) || strings.Contains(log, "join_token") {
		t.Errorf("the log tells tokens: %s", log)
	}
}

func TestATicketOpensItsTopicAlone(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	for name, tt := range map[string]struct{ topic, payload, code string }{
		"another thread":  {"thread:t2", `{"stream_mode":"run","run_id":"r1"}`, "unmatched_topic"},
		"another kind":    {"user_meta:x", `{}`, "unmatched_topic"},
		"another mode":    {"thread:t", `{"stream_mode":"connect","last_seen_event_id":null}`, "bad_input"},
		"another run":     {"thread:t", `{"stream_mode":"run","run_id":"r2"}`, "bad_input"},
		"the native form": {"thread:t", `{}`, "bad_input"},
	} {
		t.Run(name, func(t *testing.T) {
			c := (&site{T: t, url: s.url, dial: s.dial}).client(webtest.Options{
				Path: "/client/websocket?join_token=" + s.web.Ticket("run", "t", "r1") + "&vsn=2.0.0"})
			if _, err := c.Join(within(t), tt.topic, tt.payload); webtest.Code(err) != tt.code {
				t.Errorf("got %v", err)
			}
		})
	}
	c := s.client(webtest.Options{Path: "/client/websocket?join_token=" + s.web.Ticket("run", "t", "r1") + "&vsn=2.0.0"})
	ch, err := c.Join(within(t), "thread:t", `{"stream_mode":"run","run_id":"r1"}`)
	s.must(err)
	if _, err := ch.Push(within(t), "run", `{}`); webtest.Code(err) != "unknown_event" {
		t.Errorf("another request: %v", err)
	}
}

func TestATicketIsGoodForAMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := open(t, plan{pipe: true})
		path := func(token string) webtest.Options {
			return webtest.Options{Path: "/client/websocket?join_token=" + token + "&vsn=2.0.0"}
		}
		early, late := s.web.Ticket("connect", "t", ""), s.web.Ticket("connect", "t", "")
		<-time.After(59 * time.Second)
		c := s.client(path(early))
		<-time.After(2 * time.Second)
		if refused := s.refusal(path(late)); refused.HTTP != 403 {
			t.Errorf("a late one: %v", refused)
		}
		c.Drop()
		s.client(path(early)) // nothing was sent on it, so that it goes on
		list := s.web.Ticket("list", "", "")
		s.client(path(list)).Drop()
		<-time.After(23 * time.Hour)
		s.client(path(list))
		<-time.After(2 * time.Hour)
		if refused := s.refusal(path(list)); refused.HTTP != 403 {
			t.Errorf("a list's after a day: %v", refused)
		}
	})
}

func TestPipelinesLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := open(t, plan{pipe: true})
		s.start("t", "r1")
		p := s.runs("t", "r1")
		s.must(p.join(within(t)))
		s.must(p.finish(within(t)))
		<-time.After(time.Second)
		if all, resting := s.web.Pipelines(); all != 0 || resting != 0 {
			t.Errorf("after one that is done: %d, %d", all, resting)
		}
		for range 3 { // of these nobody hears again
			c := s.client(webtest.Options{Path: "/client/websocket?join_token=" + s.web.Ticket("connect", "t", "") + "&vsn=2.0.0"})
			c.Drop()
		}
		<-time.After(time.Minute)
		if all, resting := s.web.Pipelines(); all != 3 || resting != 3 {
			t.Errorf("after sockets that dropped: %d, %d", all, resting)
		}
		<-time.After(5 * time.Minute)
		if all, resting := s.web.Pipelines(); all != 0 || resting != 0 {
			t.Errorf("some minutes later: %d, %d", all, resting)
		}
	})
}

func TestAMessageOfAClientIsSmall(t *testing.T) {
	s := open(t, plan{})
	c := s.client(webtest.Options{Path: "/client/websocket?join_token=" + s.web.Ticket("connect", "t", thread.RunID("")) + "&vsn=2.0.0"})
	send(t, c, `[null,"1","phoenix","heartbeat",{"x":"`+strings.Repeat("x", 300_000)+`"}]`)
	if code, err := c.Closed(within(t)); code != 1009 || err != nil {
		t.Errorf("closed with %d, %v", code, err)
	}
}
