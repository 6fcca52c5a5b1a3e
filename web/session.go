package web

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/web/wire"
)

// maxParked is how many frames of the greatest size the waiting requests of one socket may hold.
const maxParked = 4

// session is one socket. Its serve goroutine reads; channels write. The end of ctx cuts the connection.
type session struct {
	srv    *Server
	conn   *websocket.Conn // reads, answers pings, and says goodbye
	line   *line           // takes frames
	pulse  *pulse
	caller caller
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	topics map[string]*channel // by topic
	busy   sync.WaitGroup      // goroutines of channels
	parked atomic.Int64        // bytes of requests that wait for their turn
	away   bool                // goodbye closes the socket; guarded by mu
	pass   *pass               // of a socket of CopilotKit; nil for the native one
}

// serve reads frames until the socket ends, and then waits for all that belongs to it.
func (ss *session) serve() {
	defer ss.srv.guests.leave(ss)
	defer context.AfterFunc(ss.ctx, func() { _ = ss.line.Close() })()
	ss.pulse.start()
	err := ss.read()
	switch {
	case errors.Is(err, wire.ErrFrame):
		ss.goodbye(closeProtocol, shorten(err.Error()))
	case errors.Is(err, websocket.ErrMessageTooBig):
		ss.goodbye(closeTooLarge, "the message is too large")
	}
	ss.cancel(err)
	ss.pulse.stop()
	_ = ss.conn.CloseNow()
	ss.busy.Wait()
}

func (ss *session) read() error {
	for {
		kind, data, err := ss.conn.Read(context.Background())
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
		size := int64(len(f.Payload))
		if ss.parked.Add(size) > maxParked*ss.srv.cfg.MaxFrame || !ch.do(func() {
			defer ss.parked.Add(-size)
			ch.member.handle(f)
		}) {
			ss.parked.Add(-size)
			ss.refuse(f, errRateLimited)
		}
	}
}

func (ss *session) channel(topic string) *channel {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.topics[topic]
}

// join begins a membership. A topic that is joined already is joined anew: the newer membership wins.
func (ss *session) join(f wire.Frame) {
	ch := newChannel(ss, f)
	if ch.member = ss.memberOf(ch); ch.member == nil {
		ch.cancel()
		ss.refuse(f, errUnmatched)
		return
	}
	ss.mu.Lock()
	old := ss.topics[f.Topic]
	if old == nil && len(ss.topics) >= ss.srv.cfg.MaxTopics {
		ss.mu.Unlock()
		ch.cancel()
		ss.refuse(f, errTooManyTopics)
		return
	}
	ss.topics[f.Topic] = ch
	ss.mu.Unlock()
	if old != nil {
		old.quit()
		if old.joinRef != ch.joinRef && ss.pass == nil { // else the client would take it for the end of the new one
			ss.write(newFrames().push(old, wire.EventClose, []byte("{}")))
		}
	}
	ch.do(func() { ch.member.join(f) })
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
		ch.quit()
		if m, ok := ch.member.(interface{ left() }); ok {
			m.left()
		}
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
	ss.write(newFrames().reply(f, status, response))
}

func (ss *session) refuse(f wire.Frame, err error) {
	if ss.ctx.Err() != nil {
		return // nobody is there, and err may come of that
	}
	p := problem(err)
	ss.srv.report(p, f.Event, err)
	ss.reply(f, "error", p.json())
}

// slowLine is how many bytes a second a client takes at least, beyond the write timeout.
const slowLine = 128 << 10

// write writes frames, at once, and tells whether it could. A client that does not take them in time loses its socket, and
// resumes later.
func (ss *session) write(f *frames) bool {
	defer f.release()
	// Large frames may take a slow line longer than a client that does not read at all is waited for.
	patience := ss.srv.cfg.WriteTimeout + time.Duration(len(f.bytes)/slowLine)*time.Second
	err := ss.line.send(f.bytes, patience)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		ss.srv.cfg.Logger.Info("socket closed: its client does not read", "peer", ss.caller.Peer)
	}
	if err != nil {
		ss.fail(err)
	}
	return err == nil
}
