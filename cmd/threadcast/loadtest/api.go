package loadtest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
)

// nodes are the servers that carry the load.
type nodes struct{ *client.Nodes }

func newNodes(c Config) *nodes {
	return &nodes{client.New(client.Options{URLs: c.URLs, Patience: c.Patience})}
}

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
	if err := n.Call(ctx, client.Request{Method: http.MethodGet, Path: "/api/agents"}, &list); err != nil {
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
	ask := client.Request{Method: http.MethodPost, Path: client.ThreadPath(id) + "/runs", Body: r}
	if err := n.Call(ctx, ask, &answer); err != nil {
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
	ask := client.Request{Method: http.MethodPost, Path: client.ThreadPath(id) + "/stop", Body: map[string]string{"runId": run}}
	err := n.Call(ctx, ask, &answer)
	return answer, err
}

func (n *nodes) delete(ctx context.Context, id string) error {
	return n.Call(ctx, client.Request{Method: http.MethodDelete, Path: client.ThreadPath(id)}, nil)
}

// record reads a run as the API has it, and checks that its batches follow each other.
func (n *nodes) record(ctx context.Context, id string, run uint64) (*passage, error) {
	p := newPassage(run)
	for more := true; more && !p.done(); {
		var page struct {
			Batches []client.Batch `json:"batches"`
			More    bool           `json:"more"`
		}
		path := client.ThreadPath(id) + "/events?replay=raw&limit=5000&after=" + p.at.String()
		if err := n.Call(ctx, client.Request{Method: http.MethodGet, Path: path}, &page); err != nil {
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
func (p *passage) takePage(batches []client.Batch) error {
	for _, b := range batches {
		s, err := b.Step(p.at)
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
