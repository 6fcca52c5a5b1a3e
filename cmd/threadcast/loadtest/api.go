package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// nodes are the servers, and the connections to them.
type nodes struct {
	urls     []string
	client   *http.Client
	patience time.Duration
}

func newNodes(c Config) *nodes {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 32}
	var urls []string
	for _, u := range c.URLs {
		urls = append(urls, strings.TrimRight(u, "/"))
	}
	return &nodes{urls: urls, client: &http.Client{Transport: transport}, patience: c.Patience}
}

func (n *nodes) any() string { return n.urls[rand.IntN(len(n.urls))] }

// refusal is an answer that is none of those hoped for.
type refusal struct {
	status int
	what   string
}

func (r *refusal) Error() string { return fmt.Sprintf("answered %d: %.200s", r.status, r.what) }

// again tells whether it is worth asking once more.
func (r *refusal) again() bool {
	return r.status == http.StatusServiceUnavailable || r.status == http.StatusBadGateway
}

// call asks one node after the other until one answers, and decodes the answer into value unless that is nil. All
// that is asked here may be asked twice.
func (n *nodes) call(ctx context.Context, method, path string, body, value any) error {
	deadline := time.Now().Add(n.patience)
	for try := 0; ; try++ {
		err := n.once(ctx, method, n.any()+path, body, value)
		refused, ok := err.(*refusal) //nolint:errorlint // it comes from there as it is
		if err == nil || ok && !refused.again() || time.Now().After(deadline) {
			return err
		}
		if paused := backoff(ctx, try); paused != nil {
			return paused
		}
	}
}

// backoff waits longer from one try to the next, with chance in it.
func backoff(ctx context.Context, try int) error {
	longest := min(50*time.Millisecond<<min(try, 6), 2*time.Second)
	return pause(ctx, longest/2+rand.N(longest))
}

func (n *nodes) once(ctx context.Context, method, target string, body, value any) error {
	ctx, cancel := context.WithTimeout(ctx, n.patience)
	defer cancel()
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return err
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it has been read
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, target, err)
	case resp.StatusCode >= 300:
		return &refusal{resp.StatusCode, string(data)}
	case value == nil:
		return nil
	}
	return json.Unmarshal(data, value)
}

func threadPath(id string) string { return "/api/threads/" + url.PathEscape(id) }

// agent is an agent of the nodes.
type agent struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Default bool   `json:"default"`
}

// find returns the agent of that id, or the default one.
func (n *nodes) find(ctx context.Context, id string) (agent, error) {
	var list struct {
		Agents []agent `json:"agents"`
	}
	if err := n.call(ctx, http.MethodGet, "/api/agents", nil, &list); err != nil {
		return agent{}, fmt.Errorf("ask for the agents: %w", err)
	}
	for _, a := range list.Agents {
		if a.ID == id || id == "" && a.Default {
			return a, nil
		}
	}
	return agent{}, fmt.Errorf("the server has no agent %q", id)
}

// request is a request for a run.
type request struct {
	AgentID  string         `json:"agentId"`
	RunID    string         `json:"runId"`
	Messages []message      `json:"messages"`
	Forward  map[string]any `json:"forwardedProps"`
}

type message struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// start starts a run and returns its number.
func (n *nodes) start(ctx context.Context, id string, r request) (uint64, error) {
	var answer struct {
		Cursor string `json:"cursor"`
	}
	if err := n.call(ctx, http.MethodPost, threadPath(id)+"/runs", r, &answer); err != nil {
		return 0, err
	}
	at, err := thread.ParseCursor(answer.Cursor)
	return at.Run, err
}

// stopped is the answer to a stop.
type stopped struct {
	Stopped bool   `json:"stopped"`
	Cursor  string `json:"cursor"`
}

func (n *nodes) stop(ctx context.Context, id, run string) (stopped, error) {
	var answer stopped
	err := n.call(ctx, http.MethodPost, threadPath(id)+"/stop", map[string]string{"runId": run}, &answer)
	return answer, err
}

func (n *nodes) delete(ctx context.Context, id string) error {
	return n.call(ctx, http.MethodDelete, threadPath(id), nil, nil)
}

// record reads a run as the API has it, and checks that its batches follow each other.
func (n *nodes) record(ctx context.Context, id string, run uint64) (*passage, error) {
	p := newPassage(run)
	for more := true; more && !p.done(); {
		var page struct {
			Batches []payload `json:"batches"`
			More    bool      `json:"more"`
		}
		path := threadPath(id) + "/events?replay=raw&limit=5000&after=" + p.at.String()
		if err := n.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		if err := p.takePage(page.Batches); err != nil {
			return nil, err
		}
		more = page.More
	}
	return p, nil
}

// takePage takes those batches of a page that are of this run.
func (p *passage) takePage(batches []payload) error {
	for _, b := range batches {
		event := wire.EventEvents
		if b.Reset {
			event = wire.EventReset
		}
		s, err := b.step(p.at, Step{Event: event})
		switch {
		case err != nil:
			return err
		case s.To.Run != p.number:
			return nil
		case b.Reset:
			*p = *newPassage(p.number)
			continue
		}
		s.Replay = true // what is past may be compacted
		p.take(s)
	}
	return nil
}
