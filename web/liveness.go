package web

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

// errSilent ends a socket whose client does not answer a ping.
var errSilent = errors.New("the client did not answer a ping")

// pulse is the pings of a socket. There is one under way at a time. What it carries is the position that was written last
// before it, and the pong proves that this has arrived, as frames do in order. No goroutine waits in between.
type pulse struct {
	every  time.Duration // from one ping to the next, and
	answer time.Duration // for how long the pong may take
	apart  time.Duration // how soon the next one follows while something is not acknowledged; 0 for no sooner
	send   func(payload []byte)
	fail   func(error)

	mu      sync.Mutex
	timer   *time.Timer // nil before start and after stop
	at      copilotkit.Position
	written uint64 // how many writes there were,
	asked   uint64 // how many of them the last ping came after,
	flying  bool   // whether it is under way,
	payload []byte // what it carried,
	last    time.Time
}

func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.every, p.tick)
}

func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// tick sends the next ping, or ends the socket of a client that left the last one unanswered.
func (p *pulse) tick() {
	p.mu.Lock()
	switch now := time.Now(); {
	case p.timer == nil:
		p.mu.Unlock()
	case !p.flying:
		payload := p.ask(now, p.written)
		p.mu.Unlock()
		p.send(payload)
	case now.Sub(p.last) < p.answer: // the timer went off for an earlier one
		p.timer.Reset(p.answer - now.Sub(p.last))
		p.mu.Unlock()
	default:
		p.mu.Unlock()
		p.fail(errSilent)
	}
}

// ask notes a ping that follows so many writes, and returns what it carries.
func (p *pulse) ask(now time.Time, writes uint64) []byte {
	p.asked, p.flying, p.last = writes, true, now
	p.payload = p.at.Append(p.payload[:0])
	p.timer.Reset(p.answer)
	return bytes.Clone(p.payload)
}

// writing returns the ping that goes with a write which takes the client to a position; nil if none is due.
func (p *pulse) writing(at copilotkit.Position) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.at = at
	if p.timer == nil || p.apart == 0 || p.flying || now.Sub(p.last) < p.apart {
		return nil
	}
	return p.ask(now, p.written+1)
}

// wrote notes that what [pulse.writing] was asked about is on its way.
func (p *pulse) wrote() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written++
	p.hurry()
}

// hurry sees to it that a ping follows soon if something is not acknowledged.
func (p *pulse) hurry() {
	if p.timer != nil && p.apart > 0 && !p.flying && p.asked < p.written {
		p.timer.Reset(max(0, p.apart-time.Since(p.last)))
	}
}

// pong takes the payload of a pong. It returns how many writes have arrived by it; ok is false if it answers no ping.
func (p *pulse) pong(payload []byte) (writes uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.flying || !bytes.Equal(payload, p.payload) {
		return 0, false
	}
	p.flying = false
	if p.timer != nil {
		p.timer.Reset(p.every)
	}
	p.hurry()
	return p.asked, true
}

// goAway closes the socket so that the client comes back: to another node, or to this one once it is up again.
func (ss *session) goAway() {
	ss.goodbye(closeRestart, "the server is restarting")
	ss.cancel(thread.ErrDraining)
}

// cut ends the socket at once.
func (ss *session) cut() { ss.cancel(thread.ErrDraining) }

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
