package web

import (
	"context"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/persistence/thread"
)

// schedulePing arms the next ping. No goroutine waits in between.
func (ss *session) schedulePing() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.ctx.Err() != nil {
		return
	}
	ss.pings = time.AfterFunc(ss.srv.cfg.Ping, ss.ping)
}

func (ss *session) stopPings() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.pings != nil { // a socket may end before its first ping is armed
		ss.pings.Stop()
	}
}

// ping asks the peer for a sign of life and ends the socket of one that gives none.
func (ss *session) ping() {
	ctx, cancel := context.WithTimeout(ss.ctx, ss.srv.cfg.Pong)
	defer cancel()
	if err := ss.conn.Ping(ctx); err != nil {
		ss.fail(err)
		return
	}
	ss.schedulePing()
}

// goAway closes the socket so that the client comes back: to another node, or to this one once it is up again.
func (ss *session) goAway() {
	ss.goodbye(closeRestart, "the server is restarting")
	ss.cancel(thread.ErrDraining)
}

// goodbye closes the socket with a code, and waits a few seconds for the client's goodbye. Nothing is pushed any more.
func (ss *session) goodbye(code websocket.StatusCode, reason string) {
	ss.mu.Lock()
	ss.away = true
	for _, ch := range ss.topics {
		ch.cancel()
	}
	ss.mu.Unlock()
	_ = ss.conn.Close(code, reason)
}

// shorten fits a reason into a close frame (RFC 6455, 5.5: 123 bytes).
func shorten(reason string) string {
	if len(reason) > 120 {
		reason = strings.ToValidUTF8(reason[:120], "")
	}
	return reason
}

// fail ends the socket at once, unless it is being closed with a code: that takes its time.
func (ss *session) fail(err error) {
	ss.mu.Lock()
	away := ss.away
	ss.mu.Unlock()
	if !away {
		ss.cancel(err)
	}
}
