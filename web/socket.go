package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Close codes of the server. It never closes with 1000, which phoenix.js up to 1.8.15 takes for good.
const (
	closeRestart  websocket.StatusCode = websocket.StatusServiceRestart // 1012
	closeProtocol websocket.StatusCode = websocket.StatusProtocolError  // 1002
	closeTooLarge websocket.StatusCode = websocket.StatusMessageTooBig  // 1009
)

// socket is the handshake of the native socket.
func (s *Server) socket(c echo.Context) error {
	if err := s.admissible(c.Request()); err != nil {
		return err
	}
	who, err := s.caller(withCredentials(c.Request()))
	if err != nil {
		return err
	}
	return s.begin(c, s.newSession(who))
}

// admissible refuses handshakes that no credentials would help. All are refused before the upgrade: a client that is let in
// and closed comes back at once, for ever.
func (s *Server) admissible(r *http.Request) error {
	vsn := r.URL.Query().Get("vsn")
	switch {
	case vsn == "":
		return badInput("the query lacks vsn; this server speaks vsn=2.0.0")
	case !strings.HasPrefix(vsn, "2."):
		return badInput("vsn " + vsn + " is not spoken here; this server speaks vsn=2.0.0")
	case s.origins.foreign(r):
		s.origins.tell(r.Header.Get("Origin"))
		return errForeign
	case s.guests.leaving.Load():
		return thread.ErrDraining
	}
	return nil
}

// begin accepts a handshake and serves the session.
func (s *Server) begin(c echo.Context, ss *session) error {
	conn, err := ss.accept(c)
	if err != nil {
		ss.cancel(err)
		if c.Response().Committed {
			return nil // the client has its answer
		}
		return err
	}
	conn.SetReadLimit(ss.maxFrame())
	if !s.guests.enter(ss) {
		ss.cancel(thread.ErrDraining)
		go func() { _ = conn.Close(closeRestart, "the server is restarting") }()
		return nil
	}
	// The connection is ours: a goroutine of its own serves it, and nothing of echo is kept.
	go ss.serve()
	return nil
}

// newSession returns the session of a socket that is about to be accepted.
func (s *Server) newSession(who caller) *session {
	ss := &session{srv: s, caller: who, topics: map[string]*channel{}}
	ss.ctx, ss.cancel = context.WithCancelCause(context.Background())
	ss.pulse = &pulse{
		every: s.cfg.Ping, answer: s.cfg.Pong, fail: ss.fail,
		send: func(payload []byte) { ss.write(newFrames().ping(payload)) },
	}
	return ss
}

// innermost is the writer of the connection itself, past those of middlewares.
func innermost(c echo.Context) http.ResponseWriter {
	w := c.Response().Writer
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// accept answers the handshake, past the writers of middlewares: one that holds the header back until there is a body,
// as echo's Gzip does, would never let the answer out.
func (ss *session) accept(c echo.Context) (*websocket.Conn, error) {
	w := innermost(c)
	if _, ok := w.(http.Hijacker); !ok {
		return nil, errors.New("a middleware around the socket, such as echo's Timeout, does not let the connection be taken over")
	}
	answer := echo.NewResponse(w, c.Echo())
	hijacker := &lineWriter{ResponseWriter: answer}
	conn, err := websocket.Accept(hijacker, c.Request(), &websocket.AcceptOptions{
		Subprotocols:       []string{"phoenix"},
		CompressionMode:    websocket.CompressionDisabled,
		InsecureSkipVerify: true, // its origin has been judged
		OnPongReceived: func(_ context.Context, payload []byte) {
			if writes, ok := ss.pulse.pong(payload); ok {
				ss.arrived(writes)
			}
		},
	})
	c.Response().Status, c.Response().Size, c.Response().Committed = answer.Status, answer.Size, true
	ss.conn, ss.line = conn, hijacker.line
	return conn, err
}

// maxFrame bounds what the client sends at a time.
func (ss *session) maxFrame() int64 {
	if ss.pass != nil {
		return min(maxClientFrame, ss.srv.cfg.MaxFrame)
	}
	return ss.srv.cfg.MaxFrame
}

// arrived notes how many writes the client is known to have.
func (ss *session) arrived(writes uint64) {
	if ss.pass != nil {
		ss.pass.arrived(ss, writes)
	}
}
