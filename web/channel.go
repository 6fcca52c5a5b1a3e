package web

import (
	"context"
	"sync"

	"github.com/threadcast/threadcast/web/wire"
)

// maxWaiting bounds the requests of one topic that wait for their turn.
const maxWaiting = 64

// member is what the membership of one kind of topic does. Its calls come one after the other, join first.
type member interface {
	// join answers the join and begins to push what there is. It does neither once the membership has ended.
	join(f wire.Frame)
	// handle answers a request, even if the client has left meanwhile.
	handle(f wire.Frame)
}

// channel is one membership of a session in a topic, of whatever kind. Its requests run one after the other.
type channel struct {
	ss      *session
	topic   string
	joinRef string
	member  member
	ctx     context.Context
	cancel  context.CancelFunc
	writing sync.Mutex // held while a frame of the membership is written

	mu      sync.Mutex
	waiting []func()
	working bool
}

func newChannel(ss *session, f wire.Frame) *channel {
	ch := &channel{ss: ss, topic: f.Topic, joinRef: f.JoinRef}
	ch.ctx, ch.cancel = context.WithCancel(ss.ctx)
	return ch
}

// quit ends the membership. Once it returns, nothing more of it is written but the answers to its requests.
func (ch *channel) quit() {
	ch.cancel()
	ch.writing.Lock()
	defer ch.writing.Unlock()
}

// send writes frames of the membership and tells whether it did: it does not after quit.
func (ch *channel) send(f *frames) bool {
	ch.writing.Lock()
	defer ch.writing.Unlock()
	if ch.ctx.Err() != nil {
		f.release()
		return false
	}
	return ch.ss.write(f)
}

// do runs fn after what was asked before it, in a goroutine that lives only while there is something to do. It is
// false if too much waits already.
func (ch *channel) do(fn func()) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.waiting) >= maxWaiting {
		return false
	}
	ch.waiting = append(ch.waiting, fn)
	if !ch.working {
		ch.working = true
		ch.ss.busy.Go(ch.work)
	}
	return true
}

func (ch *channel) work() {
	for {
		ch.mu.Lock()
		if len(ch.waiting) == 0 {
			ch.working = false
			ch.mu.Unlock()
			return
		}
		fn := ch.waiting[0]
		ch.waiting = ch.waiting[1:]
		ch.mu.Unlock()
		fn()
	}
}

// drop ends a membership whose join is refused, and says why.
func (ch *channel) drop(f wire.Frame, err error) {
	if ch.ctx.Err() != nil {
		return // it was left or joined anew meanwhile, and is not answered
	}
	ch.cancel()
	ch.ss.forget(ch)
	ch.ss.refuse(f, err)
}
