package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// openStream asks for a stream. The connection is of no use for anything else, and closed with the test.
func (n *node) openStream(method, path, last string, body any) *webtest.Stream {
	n.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		n.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, bytes.NewReader(text))
	if err != nil {
		n.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	r.Header.Set("Accept-Encoding", "gzip") // as browsers do
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	stream, err := webtest.NewStream(response)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(stream.Close)
	return stream
}

// streamsThroughNginx lets an answer come through nginx, with pauses that nginx has no patience for, and breaks it off: by
// leaving, and by ending the node.
func streamsThroughNginx(t *testing.T, c *cluster, p *node) {
	const id, events, apart = "streamed", 40, 25 * time.Millisecond
	req := load("r1", events, int(time.Second/apart), 100, true)
	req["threadId"], req["tools"], req["context"], req["state"] = id, []any{}, []any{}, map[string]any{}
	path := "/agui/threads/" + id + "/events?replay=raw"
	stream := p.openStream(http.MethodPost, "/agui/demo", "", req)
	var seen []json.RawMessage
	var came []time.Time
	for len(seen) < events/2 {
		e, err := stream.Event()
		if err != nil {
			t.Fatal(err)
		}
		seen, came = append(seen, json.RawMessage(e.Data)), append(came, time.Now())
	}
	if took, least := came[len(came)-1].Sub(came[2]), time.Duration(len(came)-6)*apart; took < least {
		t.Errorf("%d events came within %s: nginx held them back, or they were not %s apart", len(came), took, apart)
	}
	stream.Close()

	// The rest, from another connection. Then the agent is silent, for longer than nginx waits.
	again := p.openStream(http.MethodGet, path, stream.LastID(), nil)
	silence := 2 * nginxTimeout
	for quiet := time.Now(); time.Since(quiet) < silence; {
		e, err := again.Next()
		if err != nil {
			t.Fatalf("after %s of silence: %v", time.Since(quiet), err)
		}
		if e.Data != "" {
			seen, quiet = append(seen, json.RawMessage(e.Data)), time.Now()
		}
	}
	if code := p.do(http.MethodPost, threadPath(id)+"/stop", nil, nil); code != http.StatusOK {
		t.Errorf("stop was answered %d", code)
	}
	rest := p.openStream(http.MethodGet, path+"&until=idle", again.LastID(), nil)
	seen = append(seen, untilEnd(t, rest)...)
	p.ended(id, "r1")
	same(t, "what came through nginx", seen, allEvents(p.record(id, "", "raw")))
	measured(t, "%d events through nginx one by one, with %s of silence, broken off and resumed twice", len(seen), silence)
}

// untilEnd reads a stream to its proper end.
func untilEnd(t *testing.T, stream *webtest.Stream) (events []json.RawMessage) {
	t.Helper()
	for {
		e, err := stream.Event()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, json.RawMessage(e.Data))
	}
}

// cutThroughNginx ends a node in an orderly way under a stream that comes from it through a nginx of its own: the client must
// see that its connection was cut, and resumes through the other nginx on another node.
func cutThroughNginx(t *testing.T, c *cluster, p *node) {
	leaving := c.add()
	alone := behindNginx(t, leaving)
	const id = "cut/off"
	if err := c.nodes[0].tryRun(id, load("r1", 200, 40, 100, false)); err != nil {
		t.Fatal(err)
	}
	path := "/agui/threads/" + url.PathEscape(id) + "/events?replay=raw"
	stream := alone.openStream(http.MethodGet, path, "", nil)
	var seen []json.RawMessage
	for {
		e, err := stream.Event()
		if errors.Is(err, io.EOF) {
			t.Fatal("its answer ended as if all had been said")
		}
		if err != nil {
			break
		}
		if seen = append(seen, json.RawMessage(e.Data)); len(seen) == 20 {
			leaving.term()
		}
	}
	seen = append(seen, untilEnd(t, p.openStream(http.MethodGet, path+"&until=idle", stream.LastID(), nil))...)
	p.ended(id, "r1")
	same(t, "what came from two nodes", seen, allEvents(p.record(id, "", "raw")))
}
