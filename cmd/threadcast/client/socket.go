package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/web/wire"
)

// Membership is what a join asks for (docs/protocol.md, section 3).
type Membership struct {
	Thread string `json:"-"`
	After  string `json:"after,omitempty"`
	From   string `json:"from,omitempty"`   // "now", or empty
	Replay string `json:"replay,omitempty"` // "compact", which is the default, or "raw"
}

// Socket is a connection that has joined one thread.
type Socket struct {
	// Joined is the answer to the join.
	Joined json.RawMessage
	conn   *websocket.Conn
}

// joinRef is the ref of the only request that a socket makes.
const joinRef = "1"

// longestJoin bounds how long a join may take.
const longestJoin = 30 * time.Second

// Join opens a socket to a node and joins a thread. A join that is refused for good is a [*Refusal] for which Again is
// false; without any answer the error wraps [ErrUnreachable].
func (n *Nodes) Join(ctx context.Context, url string, m Membership) (*Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, min(n.opts.Timeout, longestJoin))
	defer cancel()
	target := strings.Replace(url, "http", "ws", 1) + "/socket/websocket?vsn=2.0.0"
	opts := &websocket.DialOptions{HTTPClient: n.http, HTTPHeader: n.header()}
	conn, resp, err := websocket.Dial(ctx, target, opts) //nolint:bodyclose // Dial closes it
	switch {
	case err != nil && resp != nil && resp.StatusCode >= 400:
		n.answered.Store(true)
		body, _ := io.ReadAll(resp.Body) // Dial has read what it keeps of it
		return nil, fmt.Errorf("open a socket: %w", newRefusal(resp.StatusCode, body))
	case err != nil:
		return nil, fmt.Errorf("open a socket: %w: %w", ErrUnreachable, err)
	}
	n.answered.Store(true)
	conn.SetReadLimit(-1)
	s := &Socket{conn: conn}
	if err := s.join(ctx, m); err != nil {
		s.Cut()
		return nil, fmt.Errorf("join after %s: %w", m.After, err)
	}
	return s, nil
}

func (s *Socket) join(ctx context.Context, m Membership) error {
	text, err := json.Marshal([]any{joinRef, joinRef, "thread:" + m.Thread, wire.EventJoin, m})
	if err != nil {
		return err
	}
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	f, err := s.Next(ctx)
	if err != nil {
		return err
	}
	var reply struct {
		Status   string          `json:"status"`
		Response json.RawMessage `json:"response"`
	}
	if err := json.Unmarshal(f.Payload, &reply); err != nil || f.Event != wire.EventReply || f.Ref != joinRef {
		return fmt.Errorf("answered with %s %.200s", f.Event, f.Payload)
	}
	if reply.Status != "ok" {
		return newRefusal(0, reply.Response)
	}
	s.Joined = reply.Response
	return nil
}

// Next returns the next frame. When ctx ends, so does the socket. The error of a socket that has ended wraps
// [ErrUnreachable].
func (s *Socket) Next(ctx context.Context) (wire.Frame, error) {
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		return wire.Frame{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return wire.Parse(text)
}

// Watch pings the server again and again, and cuts the connection when it does not answer in the same time: a connection can
// be dead without anybody saying so. It returns when ctx or the socket has ended. Somebody has to read meanwhile.
func (s *Socket) Watch(ctx context.Context, every time.Duration) {
	for Pause(ctx, every) == nil {
		answer, cancel := context.WithTimeout(ctx, every)
		err := s.conn.Ping(answer)
		cancel()
		if err != nil {
			s.Cut()
			return
		}
	}
}

// Cut ends the connection without a word.
func (s *Socket) Cut() { _ = s.conn.CloseNow() }
