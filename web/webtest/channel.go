package webtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Push is what the server sent to a membership by itself.
type Push struct {
	Event   string
	Payload json.RawMessage
}

// Reply is the server's answer to a request.
type Reply struct {
	Status   string          `json:"status"` // "ok" or "error"
	Response json.RawMessage `json:"response"`
}

func (r Reply) refusal() error {
	if r.Status == "ok" {
		return nil
	}
	refused := &Refused{}
	if err := json.Unmarshal(r.Response, refused); err != nil {
		return fmt.Errorf("refused with %.200q: %w", r.Response, err)
	}
	refused.Response = r.Response
	return refused
}

// Refused is an error that the server answered with, on the socket or to the handshake.
type Refused struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	RunID   string `json:"runId"`

	HTTP     int    `json:"-"` // the status of a refused handshake, else 0
	Response []byte `json:"-"` // the whole answer
}

func (r *Refused) Error() string {
	return fmt.Sprintf("refused: %s: %s", cmp.Or(r.Code, fmt.Sprint(r.HTTP)), cmp.Or(r.Message, string(r.Response)))
}

// Code returns the code of a [*Refused], or "" for any other error.
func Code(err error) string {
	var refused *Refused
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func refusedHandshake(response *http.Response, err error) error {
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		return err
	}
	refused := &Refused{HTTP: response.StatusCode}
	refused.Response, _ = io.ReadAll(response.Body) // the library has kept the beginning of it
	_ = json.Unmarshal(refused.Response, refused)   // some refusals are plain text
	return refused
}

// encode makes the JSON of a payload. Text is sent as it is.
func encode(payload any) ([]byte, error) {
	switch p := payload.(type) {
	case nil:
		return []byte("{}"), nil
	case string:
		return []byte(p), nil
	case []byte:
		return p, nil
	case json.RawMessage:
		return p, nil
	}
	return json.Marshal(payload)
}

// Channel is a membership in a topic.
type Channel struct {
	client  *Client
	topic   string
	joinRef string
	joined  json.RawMessage

	mu     sync.Mutex
	pushes []Push
	more   chan struct{} // holds one value when pushes has some
}

// Join joins a topic and waits for the answer. payload is JSON text, a value to be marshalled, or nil for {}.
// A join that the server refuses is a [*Refused].
func (c *Client) Join(ctx context.Context, topic string, payload any) (*Channel, error) {
	ref, reply := c.nextRef()
	ch := &Channel{client: c, topic: topic, joinRef: ref, more: make(chan struct{}, 1)}
	c.mu.Lock()
	c.joined[member{topic, ref}] = ch
	c.mu.Unlock()
	err := c.send(ref, Message{JoinRef: ref, Topic: topic, Event: "phx_join", Payload: payload})
	var r Reply
	if err == nil {
		r, err = c.await(ctx, reply)
	}
	if err == nil {
		err = r.refusal()
	}
	if err != nil {
		c.forget(ch)
		return nil, fmt.Errorf("join %s: %w", topic, err)
	}
	ch.joined = r.Response
	return ch, nil
}

func (c *Client) forget(ch *Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.joined, member{ch.topic, ch.joinRef})
}

// JoinRef returns the ref of the join that opened this membership.
func (ch *Channel) JoinRef() string { return ch.joinRef }

// Joined returns the server's answer to the join.
func (ch *Channel) Joined() json.RawMessage { return ch.joined }

// Push sends a request and returns the answer. One that the server refuses is a [*Refused].
func (ch *Channel) Push(ctx context.Context, event string, payload any) (json.RawMessage, error) {
	r, err := ch.client.Request(ctx, Message{JoinRef: ch.joinRef, Topic: ch.topic, Event: event, Payload: payload})
	if err == nil {
		err = r.refusal()
	}
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", event, ch.topic, err)
	}
	return r.Response, nil
}

// Leave leaves the topic and waits for the answer. What the server pushes afterwards counts as stray.
func (ch *Channel) Leave(ctx context.Context) error {
	_, err := ch.Push(ctx, "phx_leave", nil)
	ch.client.forget(ch)
	return err
}

// Next returns the next push, in order, and waits for it. At the end of the socket it returns what came before,
// and then why the socket ended. One goroutine at a time may call it.
func (ch *Channel) Next(ctx context.Context) (Push, error) {
	for {
		if p, ok := ch.pop(); ok {
			return p, nil
		}
		select {
		case <-ch.more:
		case <-ch.client.ended:
			if p, ok := ch.pop(); ok {
				return p, nil
			}
			return Push{}, fmt.Errorf("%s: the socket ended: %w", ch.topic, ch.client.err)
		case <-ctx.Done():
			return Push{}, fmt.Errorf("%s: no push: %w", ch.topic, context.Cause(ctx))
		}
	}
}

func (ch *Channel) pop() (Push, bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.pushes) == 0 {
		return Push{}, false
	}
	p := ch.pushes[0]
	ch.pushes[0] = Push{}
	ch.pushes = ch.pushes[1:]
	return p, true
}

func (ch *Channel) push(p Push) {
	ch.mu.Lock()
	ch.pushes = append(ch.pushes, p)
	ch.mu.Unlock()
	select {
	case ch.more <- struct{}{}:
	default:
	}
}
