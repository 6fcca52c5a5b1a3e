package web

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/wire"
)

// maxWaiting bounds the requests of one topic that wait for their turn.
const maxWaiting = 64

// channel is one membership of a session in a topic. Its requests run one after the other; its pump, once joined,
// moves batches from the hub to the socket.
type channel struct {
	ss      *session
	id      thread.ID
	topic   string
	joinRef string
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	waiting []func()
	working bool
	pumping chan struct{} // closed when the pump has ended; nil before it begins

	sub   *hub.Subscription // set by join
	start thread.Cursor
	joining
}

func newChannel(ss *session, f wire.Frame, id thread.ID) *channel {
	ch := &channel{ss: ss, id: id, topic: f.Topic, joinRef: f.JoinRef}
	ch.ctx, ch.cancel = context.WithCancel(ss.ctx)
	return ch
}

// do runs fn after what was asked before it, in a goroutine that lives only while there is something to do.
func (ch *channel) do(f wire.Frame, fn func()) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.waiting) >= maxWaiting {
		go ch.ss.refuse(f, errRateLimited)
		return
	}
	ch.waiting = append(ch.waiting, fn)
	if !ch.working {
		ch.working = true
		ch.ss.busy.Go(ch.work)
	}
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

// wait waits until the pump of a cancelled channel has ended, so that nothing of it follows.
func (ch *channel) wait() {
	ch.mu.Lock()
	pumping := ch.pumping
	ch.mu.Unlock()
	if pumping != nil {
		<-pumping
	}
}

// join subscribes, answers, and starts the pump.
func (ch *channel) join(f wire.Frame) {
	st, err := ch.subscribe(f)
	if err == nil && ch.ctx.Err() != nil {
		ch.sub.Close()
		return // left, or joined anew, meanwhile
	}
	if err != nil {
		ch.cancel()
		ch.ss.forget(ch)
		ch.ss.refuse(f, err)
		return
	}
	ch.mu.Lock()
	ch.pumping = make(chan struct{})
	ch.mu.Unlock()
	ch.ss.reply(f, "ok", joinReply{
		Cursor: ch.start.String(), Resumed: ch.sub.Resumed(), statusReply: replyOf(st), Role: "owner",
	}.json())
	ch.ss.busy.Go(ch.pump)
}

func (ch *channel) subscribe(f wire.Frame) (thread.Status, error) {
	if err := thread.CheckID("thread id", string(ch.id)); err != nil {
		return thread.Status{}, err
	}
	opts, err := parseJoin(f.Payload)
	if err != nil {
		return thread.Status{}, err
	}
	ch.joining = opts
	sub, err := ch.ss.srv.Hub.Subscribe(ch.ctx, ch.id, opts.Options)
	if err != nil {
		return thread.Status{}, err
	}
	ch.sub, ch.start = sub, sub.Start()
	st, err := ch.ss.srv.Runs.Status(ch.ctx, ch.id)
	if err != nil {
		sub.Close()
	}
	return st, err
}

// pump writes what lies ahead of the subscription until the membership or the socket ends.
func (ch *channel) pump() {
	defer close(ch.pumping)
	defer ch.sub.Close()
	var buf []byte
	for {
		b, err := ch.sub.Next(ch.ctx)
		if err != nil {
			ch.end(err)
			return
		}
		if buf, err = ch.frame(buf[:0], b); err != nil {
			ch.end(err)
			return
		}
		ch.ss.write(buf)
		if cap(buf) > 64<<10 {
			buf = nil
		}
	}
}

// frame makes the frame of a batch.
func (ch *channel) frame(dst []byte, b hub.Batch) ([]byte, error) {
	event, payload := wire.EventEvents, []byte(nil)
	switch b.Kind {
	case hub.Events:
		e := wire.Events{
			RunID: string(b.RunID), From: b.From.String(), To: b.To.String(), Replay: b.Replay, Events: b.Events,
		}
		if ch.inputAsEvents {
			e.Events = projected(b.Events)
		}
		payload = e.Append(make([]byte, 0, e.Size()))
	case hub.Reset:
		event, payload = wire.EventReset, wire.AppendReset(nil, string(b.RunID), b.From.String())
	case hub.CaughtUp:
		st, err := ch.ss.srv.Runs.Status(ch.ctx, ch.id)
		if err != nil {
			return dst, err
		}
		event, payload = wire.EventCaughtUp, wire.AppendCaughtUp(nil, b.To.String(), st.Running)
	}
	return wire.AppendPush(dst, ch.joinRef, ch.topic, event, payload), nil
}

// projected is events with the input of each run as events behind its RUN_STARTED.
func projected(events [][]byte) [][]byte {
	out := make([][]byte, 0, len(events))
	for _, event := range events {
		out = append(out, agui.ProjectInput(event)...)
	}
	return out
}

// end tells the client why nothing more follows, unless it asked for that.
func (ch *channel) end(err error) {
	if ch.ctx.Err() != nil {
		return
	}
	ch.ss.forget(ch)
	if errors.Is(err, thread.ErrDeleted) {
		ch.ss.push(ch.joinRef, ch.topic, wire.EventDeleted, []byte("{}"))
		ch.ss.push(ch.joinRef, ch.topic, wire.EventClose, []byte("{}"))
		return
	}
	if !errors.Is(err, thread.ErrDraining) {
		ch.ss.srv.report(problem(err), "subscription failed", fmt.Errorf("thread %s: %w", ch.id, err))
	}
	// The client joins again after its back-off, with its cursor.
	ch.ss.push(ch.joinRef, ch.topic, wire.EventError, []byte("{}"))
}
