package terminal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// conversation is what a thread has come to. A client sends all of it with each request for a run.
type conversation struct {
	agent    string
	messages []json.RawMessage
	state    json.RawMessage
	pending  []fields // what the thread waits for
}

// loadConversation reads what there is of a thread; nothing if it was never used.
func loadConversation(ctx context.Context, nodes *client.Nodes, id string) (c conversation, err error) {
	var info struct {
		AgentID string `json:"agentId"`
	}
	var said struct {
		Messages []json.RawMessage `json:"messages"`
		Pending  []json.RawMessage `json:"pending"`
	}
	var state struct {
		State     json.RawMessage `json:"state"`
		Truncated bool            `json:"truncated"`
	}
	for _, part := range []struct {
		path string
		into any
	}{{"", &info}, {"/messages", &said}, {"/state", &state}} {
		err := nodes.Call(ctx, client.Request{Method: http.MethodGet, Path: client.ThreadPath(id) + part.path}, part.into)
		var refused *client.Refusal
		switch {
		case errors.As(err, &refused) && refused.Code == "not_found":
			return conversation{}, nil
		case err != nil:
			return c, err
		}
	}
	c.agent = info.AgentID
	for _, raw := range said.Messages {
		if fieldsOf(raw).text("role") != "activity" { // for the eyes only (AG-UI 1.0, section 6)
			c.messages = append(c.messages, raw)
		}
	}
	for _, raw := range said.Pending {
		c.pending = append(c.pending, fieldsOf(raw))
	}
	if !state.Truncated && string(state.State) != "null" {
		c.state = state.State
	}
	return c, nil
}

// say adds a message of the user.
func (c *conversation) say(text string) {
	message, err := json.Marshal(map[string]string{"id": rand.Text(), "role": "user", "content": text})
	if err != nil {
		panic(err) // strings always encode
	}
	c.messages = append(c.messages, message)
}

// runRequest is the body of a request for a run (docs/protocol.md, section 4.1).
type runRequest struct {
	RunID    string            `json:"runId"`
	AgentID  string            `json:"agentId,omitempty"`
	Messages []json.RawMessage `json:"messages"`
	State    json.RawMessage   `json:"state,omitempty"`
	Resume   []resumeEntry     `json:"resume,omitempty"`
	OnBusy   string            `json:"onBusy,omitempty"`
}

// request asks the conversation's agent, unless the question names another one.
func (c *conversation) request(run string, q Question, resume []resumeEntry) runRequest {
	r := runRequest{RunID: run, AgentID: q.Agent, Messages: c.messages, State: c.state, Resume: resume, OnBusy: q.OnBusy}
	if r.AgentID == "" {
		r.AgentID = c.agent
	}
	if r.Messages == nil {
		r.Messages = []json.RawMessage{}
	}
	return r
}
