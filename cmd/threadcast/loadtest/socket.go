package loadtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// socket is a connection that has joined one thread.
type socket struct{ conn *websocket.Conn }

// joinRef is the ref of the only request that a socket makes.
const joinRef = "1"

// join opens a socket to a node and joins a thread after a position.
func (n *nodes) join(ctx context.Context, url, id string, after thread.Cursor) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, min(n.patience, 30*time.Second))
	defer cancel()
	target := strings.Replace(url, "http", "ws", 1) + "/socket/websocket?vsn=2.0.0"
	conn, _, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPClient: n.client}) //nolint:bodyclose // Dial closes it
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	conn.SetReadLimit(-1)
	s := &socket{conn}
	if err := s.join(ctx, id, after); err != nil {
		s.cut()
		return nil, fmt.Errorf("join after %s: %w", after, err)
	}
	return s, nil
}

func (s *socket) join(ctx context.Context, id string, after thread.Cursor) error {
	text, err := json.Marshal([]any{joinRef, joinRef, "thread:" + id, wire.EventJoin,
		map[string]string{"after": after.String(), "replay": "raw"}})
	if err != nil {
		return err
	}
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return err
	}
	f, err := s.next(ctx)
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
	if reply.Status == "ok" {
		return nil
	}
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(reply.Response, &problem) == nil && (problem.Code == "unavailable" || problem.Code == "draining") {
		return fmt.Errorf("answered %s", problem.Code)
	}
	return &refusal{what: string(reply.Response)}
}

// next returns the next frame. When ctx ends, so does the socket.
func (s *socket) next(ctx context.Context) (wire.Frame, error) {
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		return wire.Frame{}, err
	}
	return wire.Parse(text)
}

// cut ends the connection without a word.
func (s *socket) cut() { _ = s.conn.CloseNow() }
