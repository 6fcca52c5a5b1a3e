package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// stream is an answer of server-sent events. The goroutine of its request writes events; a timer writes comments, so that
// nobody on the way takes a silent agent for a dead connection.
type stream struct {
	srv    *Server
	w      http.ResponseWriter
	rc     *http.ResponseController
	peer   string
	ctx    context.Context // done when the client has gone or does not read, and when the server drains
	cancel context.CancelCauseFunc

	mu   sync.Mutex // held while something is written
	over bool
	beat *time.Timer
}

// stream answers with what serve writes. When serve returns nil, the answer has come to its end; any other error cuts the
// connection: a client would take the end of an answer for the end of a run, and shall see that there is more to come.
func (s *Server) stream(c echo.Context, serve func(*stream) error) error {
	r := c.Request()
	st := &stream{srv: s, w: innermost(c), peer: peer(r)}
	switch st.w.(type) {
	case http.Flusher, interface{ FlushError() error }:
	default:
		return errors.New("a middleware around the server, such as echo's Timeout, does not let answers stream")
	}
	st.rc = http.NewResponseController(st.w)
	st.ctx, st.cancel = context.WithCancelCause(r.Context())
	defer st.cancel(nil)
	if !s.guests.enter(st) {
		return thread.ErrDraining
	}
	defer s.guests.leave(st)
	c.Response().Status, c.Response().Committed = http.StatusOK, true
	err := st.begin()
	if err == nil {
		err = serve(st)
	}
	st.end()
	if err == nil || r.Context().Err() != nil {
		return nil // all was said, or nobody is there
	}
	if !errors.Is(err, thread.ErrDraining) {
		s.report(problem(err), "stream "+c.Path(), err)
	}
	panic(http.ErrAbortHandler)
}

// goAway ends the stream so that the client comes back.
func (st *stream) goAway() { st.cancel(thread.ErrDraining) }

// cut ends a write that waits for a client who does not read.
func (st *stream) cut() { _ = st.rc.SetWriteDeadline(time.Unix(1, 0)) }

// begin sends the header.
func (st *stream) begin() error {
	h := st.w.Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx passes on what comes, as it comes
	h.Del(echo.HeaderContentEncoding)
	st.mu.Lock()
	defer st.mu.Unlock()
	// The server's own bounds are for requests that are answered at once. What has none does not mind.
	_ = st.rc.SetReadDeadline(time.Time{})
	st.beat = time.AfterFunc(st.srv.cfg.KeepAlive, st.keepAlive)
	st.w.WriteHeader(http.StatusOK)
	return st.writeLocked(nil)
}

// end makes sure that nothing more is written.
func (st *stream) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.over = true
	st.beat.Stop()
	_ = st.rc.SetWriteDeadline(time.Now().Add(st.srv.cfg.WriteTimeout)) // for what ends the answer
}

func (st *stream) keepAlive() { _ = st.write([]byte(wire.KeepAlive)) } // an error ends the stream

// write sends frames. A client that does not take them in time loses its connection, and resumes later.
func (st *stream) write(frames []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.writeLocked(frames)
}

func (st *stream) writeLocked(frames []byte) error {
	if st.over || st.ctx.Err() != nil {
		return context.Cause(st.ctx)
	}
	// Each write has its own time. In between there is none: over HTTP/2 even an idle stream would be ended by it.
	patience := st.srv.cfg.WriteTimeout + time.Duration(len(frames)/slowLine)*time.Second
	_ = st.rc.SetWriteDeadline(time.Now().Add(patience))
	_, err := st.w.Write(frames)
	if err == nil {
		err = st.rc.Flush()
	}
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			st.srv.cfg.Logger.Info("stream closed: its client does not read", "peer", st.peer)
		}
		st.cancel(err)
		return fmt.Errorf("write to the client: %w", err)
	}
	_ = st.rc.SetWriteDeadline(time.Time{})
	st.beat.Reset(st.srv.cfg.KeepAlive)
	return nil
}

// pump writes what lies ahead of sub, in the frames that show makes of it, until show says that it was the last.
func (st *stream) pump(sub *hub.Subscription, show func(dst []byte, b hub.Batch) (frames []byte, last bool, err error)) error {
	var buf []byte
	for {
		b, err := sub.Next(st.ctx)
		if err != nil {
			return err
		}
		var last bool
		if buf, last, err = show(buf[:0], b); err != nil {
			return err
		}
		if len(buf) > 0 {
			if err := st.write(buf); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		if cap(buf) > 64<<10 {
			buf = nil
		}
	}
}
