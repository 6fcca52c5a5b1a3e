package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/webtest"
)

// page is a client that does as CopilotKit's does: it applies whatever comes and looks for no repeats, rejoins with what it
// joined with first, and asks for another ticket after five refusals. A page that began a run keeps the rules of a run, and is
// done when that ends; another is done when both control frames have come.
type page struct {
	*site
	thread, run string // run is empty for a page that only connects
	pace        func() // between two tries

	token, payload string
	cursor         string // of the last event or control frame
	client         *webtest.Client
	channel        *webtest.Channel

	events   []string // as they came
	rules    agui.Verifier
	views    agui.Reducer
	replayed bool
	idle     bool
	done     bool
	failed   string // the message of a RUN_ERROR that raises an alarm
	opened   int    // how many handshakes were let in,
	refused  int    // how many were not,
	renewed  int    // and how many tickets were asked for
}

// connects is a page that opens a thread of which it has nothing, or what a page before it had.
func (s *site) connects(id string, before *page) *page {
	p := &page{site: s, thread: id, pace: func() {}}
	if before != nil {
		p.cursor, p.views, p.events = before.cursor, before.views, before.events
	}
	p.renew("")
	return p
}

// runs is a page that has begun a run.
func (s *site) runs(id, run string) *page {
	p := &page{site: s, thread: id, run: run, pace: func() {}}
	p.token = s.web.Ticket("run", thread.ID(id), thread.RunID(run))
	p.payload = fmt.Sprintf(`{"stream_mode":"run","run_id":%q}`, run)
	return p
}

// renew asks for a ticket, as a page does over /connect.
func (p *page) renew(active string) {
	p.token = p.web.Ticket("connect", thread.ID(p.thread), thread.RunID(active))
	cursor := []byte("null")
	if p.cursor != "" {
		cursor, _ = json.Marshal(p.cursor)
	}
	p.payload = `{"stream_mode":"connect","last_seen_event_id":` + string(cursor) + `}`
	p.replayed, p.idle = false, false
}

// path is where the page opens its socket.
func (p *page) path() string {
	return "/client/websocket?join_token=" + url.QueryEscape(p.token) + "&vsn=2.0.0"
}

// join opens a socket, with as many tickets as it takes, and joins.
func (p *page) join(ctx context.Context) error {
	for refused := 0; ; {
		c, err := webtest.Dial(ctx, p.url, &webtest.Options{Path: p.path(), Dial: p.dial})
		var no *webtest.Refused
		switch {
		case err == nil:
			p.opened++
			p.client = c
			return p.rejoin(ctx)
		case !errors.As(err, &no) || no.HTTP != http.StatusForbidden:
			return err
		}
		p.refused++
		if refused++; refused == 5 {
			refused = 0
			p.renewed++
			p.renew("")
		}
		p.pace()
	}
}

// rejoin joins on the present socket.
func (p *page) rejoin(ctx context.Context) (err error) {
	p.channel, err = p.client.Join(ctx, "thread:"+p.thread, p.payload)
	return err
}

// errDone is what [page.follow] returns when the page has what it came for.
var errDone = errors.New("done")

// follow takes what comes until the page is done, or enough says so.
func (p *page) follow(ctx context.Context, enough func() bool) error {
	for !p.done {
		if enough() {
			return nil
		}
		push, err := p.channel.Next(ctx)
		if err != nil {
			return err
		}
		if err := p.take(push); err != nil {
			return err
		}
	}
	return errDone
}

// never is for pages that follow to the end.
func never() bool { return false }

// finish follows to the end, whatever happens to its sockets, and closes the last of them.
func (p *page) finish(ctx context.Context) error {
	for {
		err := p.follow(ctx, never)
		if errors.Is(err, errDone) {
			p.client.Close()
			return nil
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "the socket ended") {
			return err
		}
		if err := p.join(ctx); err != nil {
			return err
		}
	}
}

// cut drops the connection, and takes what had come by then.
func (p *page) cut(ctx context.Context) error {
	p.client.Drop()
	err := p.follow(ctx, never)
	if errors.Is(err, errDone) || strings.Contains(err.Error(), "the socket ended") {
		return nil
	}
	return err
}

// take applies a push.
func (p *page) take(push webtest.Push) error {
	switch push.Event {
	case "ag_ui_event":
		return p.apply(push.Payload)
	case "replay_complete", "stream_idle":
		var at struct {
			LatestEventID string `json:"latestEventId"`
		}
		if err := json.Unmarshal(push.Payload, &at); err != nil {
			return err
		}
		if at.LatestEventID != "" {
			p.cursor = at.LatestEventID
		}
		p.replayed = p.replayed || push.Event == "replay_complete"
		p.idle = p.idle || push.Event == "stream_idle"
		p.done = p.run == "" && p.replayed && p.idle
	case "replay_failed":
	default:
		return fmt.Errorf("a page got %s %s", push.Event, push.Payload)
	}
	return nil
}

func (p *page) apply(event []byte) error {
	var e struct {
		Type, RunID, Code, Message string
		Metadata                   struct {
			ID string `json:"cpki_event_id"`
		}
	}
	if err := json.Unmarshal(event, &e); err != nil || e.Metadata.ID == "" {
		return fmt.Errorf("event without a position: %s, %w", event, err)
	}
	p.cursor = e.Metadata.ID
	p.events = append(p.events, string(event))
	if err := p.views.Apply(event); err != nil {
		return err
	}
	if e.Type == "RUN_ERROR" && e.Code != "abort" {
		p.failed = e.Message
	}
	if p.run == "" {
		return nil
	}
	if err := p.rules.Verify(event); err != nil {
		return fmt.Errorf("%s at %s: %w", e.Type, e.Metadata.ID, err)
	}
	if e.Type == "RUN_STARTED" && e.RunID != p.run {
		return fmt.Errorf("a foreign run: %s", event)
	}
	p.done = e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR"
	return nil
}

// stamped is the metadata of a message, where the events that made it had no other.
var stamped = regexp.MustCompile(`,"metadata":{"cpki_event_id":"[^"]*","cpki_event_seq":[0-9]+}`)

// messages are what the page shows, without the positions.
func (p *page) messages() string { return stamped.ReplaceAllString(string(p.views.Messages()), "") }

// types are the types of the events that came, those of deltas in a row once.
func (p *page) types() string {
	var all []string
	for _, event := range p.events {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(event), &e)
		all = append(all, e.Type)
	}
	text := strings.Join(all, " ")
	for _, typ := range []string{"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS"} {
		text = regexp.MustCompile("("+typ+" )+"+typ).ReplaceAllString(text, typ+"...")
	}
	return text
}

// truth is the messages of a thread, as the server has them.
func (s *site) truth(id string) string {
	s.Helper()
	_, body := s.request("GET", "/api/threads/"+id+"/messages", "")
	return string(decode[struct{ Messages json.RawMessage }](s.T, []byte(body)).Messages)
}

// must fails the test for an error.
func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
