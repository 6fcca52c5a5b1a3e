package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/threadcast/threadcast/web/copilotkit"
)

const (
	// pipelineRest is for how long a pipeline whose socket has dropped may be gone on with.
	pipelineRest = 5 * time.Minute
	// maxResting bounds how many of them are remembered.
	maxResting = 10_000
)

// errTaken ends a socket in whose place another has come.
var errTaken = errors.New("another socket has come in its place")

// pipeline is what a client of CopilotKit does with one ticket of a thread: it joins, takes events until it has what it came
// for, and leaves. Should its socket drop, it comes back with the same ticket and the same payload, and does not look
// whether it has an event already. It is let in if everything that was sent has arrived, and gets what follows.
type pipeline struct {
	grant
	nonce string
	all   *pipelines

	mu      sync.Mutex
	owner   *session            // the socket that has it; nil after it dropped
	joined  bool                // the client's first join has been dealt with, and at says where it stands
	member  *pipe               // the membership that began last,
	back    copilotkit.Position // and where the client stood then
	at      copilotkit.Position // after what was sent last
	start   copilotkit.Position // where it stood at its first join
	facts   facts               // what was found out then
	sent    uint64              // how many writes the present socket began,
	arrived uint64              // and how many of them have arrived
	landing chan struct{}       // closed when all have; nil if nobody waits for it
	over    bool                // the client has all it came for
	left    bool                // the client left the topic
	timer   *time.Timer         // ends the rest after the drop of a socket
}

// facts are what a pipeline has to know of its thread.
type facts struct {
	known bool
	run   uint64 // the number of its run, of "run"
	ended uint64 // the number up to which the runs of the thread had ended, of "connect"
}

// resume lets another socket have the pipeline, if the client has everything that was sent.
func (p *pipeline) resume(ss *session) error {
	p.mu.Lock()
	if p.over || p.arrived < p.sent {
		p.mu.Unlock()
		return errTicketSpent
	}
	old := p.owner
	p.owner, p.sent, p.arrived = ss, 0, 0
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
		p.all.resting(-1)
	}
	p.mu.Unlock()
	if old != nil {
		old.cancel(errTaken)
	}
	p.watch(ss)
	return nil
}

// watch lets go of the socket when it ends.
func (p *pipeline) watch(ss *session) {
	context.AfterFunc(ss.ctx, func() { p.letGo(ss) })
}

// letGo notes the end of a socket.
func (p *pipeline) letGo(ss *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != ss {
		return
	}
	p.owner = nil
	if p.over || p.left || !p.all.resting(+1) {
		p.over = true
		p.all.remove(p)
		return
	}
	p.timer = time.AfterFunc(pipelineRest, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.owner == nil && !p.over {
			p.over, p.timer = true, nil
			p.all.resting(-1)
			p.all.remove(p)
		}
	})
}

// begin takes a join, whose payload says where the client stands if it is the first. It returns where the client stands in
// fact; ok is false if its socket has the pipeline no more, or the client has left before it was dealt with.
func (p *pipeline) begin(m *pipe, first copilotkit.Position) (at copilotkit.Position, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.ctx.Err() != nil {
		return p.at, false
	}
	if !p.joined {
		p.joined, p.at, p.start = true, first, first
	}
	p.left, p.member, p.back = false, m, p.at
	return p.at, p.owner == m.ss
}

// moved tells whether a position is another than where the client stood at its first join: then it comes from here.
func (p *pipeline) moved(at copilotkit.Position) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return at != p.start
}

// learn keeps what was found out, and recall returns it.
func (p *pipeline) learn(f facts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = f
}

func (p *pipeline) recall() facts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts
}

// sending notes that a write which takes the client to a position is about to be made on a socket. It is false if the socket
// has the pipeline no more.
func (p *pipeline) sending(ss *session, at copilotkit.Position) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != ss {
		return false
	}
	p.at = at
	p.sent++
	return true
}

// arrive notes how many writes of a socket have arrived.
func (p *pipeline) arrive(ss *session, writes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != ss {
		return
	}
	p.arrived = max(p.arrived, writes)
	if p.landing != nil && p.arrived >= p.sent {
		close(p.landing)
		p.landing = nil
	}
}

// landed is closed when everything that was sent has arrived.
func (p *pipeline) landed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	landing := p.landing
	if landing == nil {
		landing = make(chan struct{})
		p.landing = landing
	}
	if p.arrived >= p.sent {
		close(landing)
		p.landing = nil
	}
	return landing
}

// finish notes that the client has all it came for. Its ticket opens nothing any more: should the last frames be lost
// with their connection, the client asks for another and gets them from where it is.
func (p *pipeline) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.all.remove(p)
}

// leave notes that the client left the topic. If it joins again on the same socket it has nothing of what came between its
// joins: it leaves when it gave up waiting for the answer to the first, or for good. A membership that never began took it nowhere.
func (p *pipeline) leave(m *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner != m.ss {
		return
	}
	if p.left = true; p.member == m {
		p.at = p.back
	}
}

// pipelines are those of a server, by the nonces of their tickets.
type pipelines struct {
	mu      sync.Mutex
	byNonce map[string]*pipeline
	idle    int // how many have no socket
}

func (r *pipelines) find(nonce string) *pipeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNonce[nonce]
}

func (r *pipelines) add(p *pipeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byNonce[p.nonce] = p
}

func (r *pipelines) remove(p *pipeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byNonce, p.nonce)
}

// resting counts pipelines without a socket in or out. It is false if there are too many.
func (r *pipelines) resting(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && r.idle >= maxResting {
		return false
	}
	r.idle += n
	return true
}
