package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// Close codes of the server. It never closes with 1000, which phoenix.js up to 1.8.15 takes for good.
const (
	closeRestart  websocket.StatusCode = websocket.StatusServiceRestart // 1012
	closeProtocol websocket.StatusCode = websocket.StatusProtocolError  // 1002
	closeSlow     websocket.StatusCode = 4408
)

// socket is the handshake. It refuses before the upgrade: a client that is let in and closed comes back at once, for ever.
func (s *Server) socket(c echo.Context) error {
	r := c.Request()
	vsn := r.URL.Query().Get("vsn")
	switch {
	case vsn == "":
		return badInput("the query lacks vsn; this server speaks vsn=2.0.0")
	case !strings.HasPrefix(vsn, "2."):
		return badInput("vsn " + vsn + " is not spoken here; this server speaks vsn=2.0.0")
	case s.draining.Load():
		return thread.ErrDraining
	}
	ss := &session{srv: s, peer: peer(r), topics: map[string]*channel{}}
	ss.ctx, ss.cancel = context.WithCancelCause(context.Background())
	conn, err := websocket.Accept(c.Response(), r, &websocket.AcceptOptions{
		Subprotocols:    []string{"phoenix"},
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		ss.cancel(err)
		if c.Response().Committed {
			return nil // Accept has answered
		}
		return err
	}
	ss.conn = conn
	conn.SetReadLimit(s.cfg.MaxFrame)
	if !s.add(ss) {
		ss.cancel(thread.ErrDraining)
		go func() { _ = conn.Close(closeRestart, "the server is restarting") }()
		return nil
	}
	// The connection is ours: a goroutine of its own serves it, and nothing of echo is kept.
	go ss.serve()
	return nil
}

// peer names who is on the other side, for the record of who stopped a run.
func peer(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// session is one socket. Its serve goroutine reads; channels write.
type session struct {
	srv    *Server
	conn   *websocket.Conn
	peer   string
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	topics map[string]*channel // by topic
	busy   sync.WaitGroup      // goroutines of channels
	pings  *time.Timer         // guarded by mu
	away   bool                // goAway closes the socket
}

// serve reads frames until the socket ends, and then waits for all that belongs to it.
func (ss *session) serve() {
	defer ss.srv.remove(ss)
	ss.schedulePing()
	err := ss.read()
	ss.cancel(err)
	ss.mu.Lock()
	ss.pings.Stop()
	away := ss.away
	ss.mu.Unlock()
	switch {
	case away:
	case errors.Is(err, wire.ErrFrame):
		_ = ss.conn.Close(closeProtocol, shorten(err.Error()))
	default:
		_ = ss.conn.CloseNow()
	}
	ss.busy.Wait()
}

// shorten fits a reason into a close frame (RFC 6455, 5.5: 123 bytes).
func shorten(reason string) string {
	if len(reason) > 120 {
		reason = strings.ToValidUTF8(reason[:120], "")
	}
	return reason
}

func (ss *session) read() error {
	for {
		kind, data, err := ss.conn.Read(ss.ctx)
		if err != nil {
			return err
		}
		parse := wire.Parse
		if kind == websocket.MessageBinary {
			parse = wire.ParseBinary
		}
		f, err := parse(data)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			ss.refuse(f, badInput("binary payloads are not taken"))
			continue
		}
		ss.dispatch(f)
	}
}

// dispatch hands a frame to whom it concerns. It does not block but for a write.
func (ss *session) dispatch(f wire.Frame) {
	switch {
	case f.Topic == wire.TopicPhoenix && f.Event == wire.EventHeartbeat:
		ss.reply(f, "ok", []byte("{}"))
	case f.Event == wire.EventJoin:
		ss.join(f)
	case f.Event == wire.EventLeave:
		ss.leave(f)
	default:
		ch := ss.channel(f.Topic)
		if ch == nil || (f.JoinRef != "" && f.JoinRef != ch.joinRef) {
			ss.refuse(f, errUnmatched)
			return
		}
		ch.do(f, func() { ch.handle(f) })
	}
}

func (ss *session) channel(topic string) *channel {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.topics[topic]
}

// join begins a membership. A topic that is joined already is joined anew: the newer membership wins.
func (ss *session) join(f wire.Frame) {
	id, ok := strings.CutPrefix(f.Topic, "thread:")
	if !ok {
		ss.refuse(f, errUnmatched)
		return
	}
	ch := newChannel(ss, f, thread.ID(id))
	ss.mu.Lock()
	old := ss.topics[f.Topic]
	if old == nil && len(ss.topics) >= ss.srv.cfg.MaxTopics {
		ss.mu.Unlock()
		ss.refuse(f, errTooManyTopics)
		return
	}
	ss.topics[f.Topic] = ch
	ss.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	ch.do(f, func() {
		if old != nil {
			old.wait()
			ss.push(old.joinRef, f.Topic, wire.EventClose, []byte("{}"))
		}
		ch.join(f)
	})
}

// leave ends the membership that the frame belongs to, if it is still the current one.
func (ss *session) leave(f wire.Frame) {
	ss.mu.Lock()
	ch := ss.topics[f.Topic]
	if ch != nil && (f.JoinRef == "" || f.JoinRef == ch.joinRef) {
		delete(ss.topics, f.Topic)
	} else {
		ch = nil
	}
	ss.mu.Unlock()
	if ch != nil {
		ch.cancel()
	}
	ss.reply(f, "ok", []byte("{}"))
}

// forget removes a membership that ended by itself.
func (ss *session) forget(ch *channel) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.topics[ch.topic] == ch {
		delete(ss.topics, ch.topic)
	}
}

func (ss *session) reply(f wire.Frame, status string, response []byte) {
	if f.Ref == "" {
		return // nobody waits for it
	}
	ss.write(wire.AppendReply(nil, f, status, response))
}

func (ss *session) refuse(f wire.Frame, err error) {
	p := problem(err)
	ss.srv.report(p, f.Event+" failed", err)
	ss.reply(f, "error", p.json())
}

func (ss *session) push(joinRef, topic, event string, payload []byte) {
	ss.write(wire.AppendPush(make([]byte, 0, len(payload)+128), joinRef, topic, event, payload))
}

// write writes a frame. A client that does not take it in time loses its socket, and resumes later.
func (ss *session) write(frame []byte) {
	ctx, cancel := context.WithTimeout(ss.ctx, ss.srv.cfg.WriteTimeout)
	defer cancel()
	if err := ss.conn.Write(ctx, websocket.MessageText, frame); err != nil {
		if ctx.Err() != nil && ss.ctx.Err() == nil {
			ss.srv.cfg.Logger.Info("socket closed: its client does not read", "code", int(closeSlow), "peer", ss.peer)
		}
		ss.cancel(err)
	}
}

// schedulePing arms the next ping. No goroutine waits in between.
func (ss *session) schedulePing() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ctx.Err() != nil {
		return
	}
	ss.pings = time.AfterFunc(ss.srv.cfg.Ping, ss.ping)
}

// ping asks the peer for a sign of life and ends the socket of one that gives none.
func (ss *session) ping() {
	ctx, cancel := context.WithTimeout(ss.ctx, ss.srv.cfg.Pong)
	defer cancel()
	if err := ss.conn.Ping(ctx); err != nil {
		ss.cancel(err)
		return
	}
	ss.schedulePing()
}

// goAway closes the socket so that the client comes back: to another node, or to this one once it is up again.
func (ss *session) goAway() {
	ss.mu.Lock()
	ss.away = true
	ss.mu.Unlock()
	_ = ss.conn.Close(closeRestart, "the server is restarting")
	ss.cancel(thread.ErrDraining)
}
