package web

import (
	"context"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// maxClientFrame bounds what a client of CopilotKit sends on its socket: joins and stops. Runs are asked for over HTTP.
const maxClientFrame = 256 << 10

// ackEvery is how long a socket of a pipeline waits from one ping to the next while it sends. A client whose connection breaks
// while something is not acknowledged takes 3 s to come back instead of 0.1 s: of models that say a word every 40 ms, a ping
// every 50 ms would leave five in six to that.
const ackEvery = 10 * time.Millisecond

// copilotSocket is the handshake of a socket of CopilotKit's client. What lets it in is the join token; a refusal makes the
// client ask for another after some tries.
func (s *Server) copilotSocket(c echo.Context) error {
	r := c.Request()
	if err := s.admissible(r); err != nil {
		return err
	}
	token := r.URL.Query().Get("join_token")
	if token == "" {
		return errNoTicket
	}
	body, err := s.tickets.read(token)
	if err != nil {
		return err
	}
	ss := s.newSession(caller{User: body.User, Peer: peer(r)})
	ss.pass = &pass{grant: body.grant}
	if body.Kind == ticketList {
		if time.Now().After(body.expires()) {
			err = errTicket
		}
	} else {
		ss.pulse.apart = ackEvery
		ss.pass.pipeline, err = s.pipelines.admit(r.Context(), body, ss)
	}
	if err != nil {
		ss.cancel(err)
		return err
	}
	return s.begin(c, ss)
}

// pass is what a socket was let in with.
type pass struct {
	grant
	pipeline *pipeline // nil for a list
}

// maxCode is the greatest length of the code of a list, in bytes: it comes back in every list.
const maxCode = 64

// memberOf returns what a membership does on a socket that was let in with a ticket: it allows one topic.
func (p *pass) memberOf(ch *channel) member {
	if p.pipeline != nil && ch.topic == "thread:"+string(p.Thread) {
		return &pipe{channel: ch, pipeline: p.pipeline}
	}
	if code, ok := strings.CutPrefix(ch.topic, topicMetadata); ok && p.Kind == ticketList && thread.CheckID("code", code) == nil && len(code) <= maxCode && !strings.Contains(code, ":") {
		return newMetadata(ch, code)
	}
	return nil
}

// arrived notes how many writes the client is known to have.
func (p *pass) arrived(ss *session, writes uint64) {
	if p.pipeline != nil {
		p.pipeline.arrive(ss, writes)
	}
}

// admit lets a socket have the pipeline of a ticket: the first one that brings it, and later ones that can go on exactly.
func (r *pipelines) admit(ctx context.Context, body ticketBody, ss *session) (*pipeline, error) {
	if p := r.find(body.Nonce); p != nil {
		return p, p.resume(ss)
	}
	if err := ss.srv.tickets.claim(ctx, body); err != nil {
		return nil, err
	}
	p := &pipeline{grant: body.grant, nonce: body.Nonce, all: r, owner: ss}
	r.add(p)
	p.watch(ss)
	return p, nil
}
