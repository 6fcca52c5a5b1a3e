package web

import (
	"context"
	"encoding/json"
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
	writing sync.Mutex // held while a frame of the membership is written

	mu      sync.Mutex
	waiting []func()
	working bool

	// Set by join, for the requests after it.
	joined bool
	sub    *hub.Subscription
	start  thread.Cursor
	joining
}

func newChannel(ss *session, f wire.Frame, id thread.ID) *channel {
	ch := &channel{ss: ss, id: id, topic: f.Topic, joinRef: f.JoinRef}
	ch.ctx, ch.cancel = context.WithCancel(ss.ctx)
	return ch
}

// quit ends the membership. Once it returns, nothing more of it is written but the answers to its requests.
func (ch *channel) quit() {
	ch.cancel()
	ch.writing.Lock()
	defer ch.writing.Unlock()
}

// send writes a frame of the membership and tells whether it did: it does not after quit.
func (ch *channel) send(frame []byte) bool {
	ch.writing.Lock()
	defer ch.writing.Unlock()
	if ch.ctx.Err() != nil {
		return false
	}
	ch.ss.write(frame)
	return true
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

// join subscribes, answers, and starts the pump. One that was left or joined anew meanwhile is not answered.
func (ch *channel) join(f wire.Frame) {
	text, err := ch.subscribe(f)
	switch {
	case err == nil && ch.send(wire.AppendReply(nil, f, "ok", text)):
		ch.joined = true
		ch.ss.busy.Go(ch.pump)
		return
	case err != nil && ch.ctx.Err() == nil:
		ch.cancel()
		ch.ss.forget(ch)
		ch.ss.refuse(f, err)
	}
	if ch.sub != nil {
		ch.sub.Close()
	}
}

// subscribe begins the subscription that the join asks for, and returns the answer to it.
func (ch *channel) subscribe(f wire.Frame) ([]byte, error) {
	err := thread.CheckID("thread id", string(ch.id))
	if err != nil {
		return nil, err
	}
	if ch.joining, err = parseJoin(f.Payload); err != nil {
		return nil, err
	}
	ctx, cancel := look(ch.ctx)
	defer cancel()
	sub, err := ch.ss.srv.Hub.Subscribe(ctx, ch.id, ch.joining.Options)
	if err != nil {
		return nil, err
	}
	ch.sub, ch.start = sub, sub.Start()
	st, err := ch.ss.srv.Runs.Status(ctx, ch.id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(joinReply{
		Cursor: ch.start.String(), Resumed: sub.Resumed(), statusReply: replyOf(st), Role: "owner",
	})
}

// pump writes what lies ahead of the subscription until the membership or the socket ends.
func (ch *channel) pump() {
	defer ch.cancel()
	defer ch.sub.Close()
	var buf []byte
	for {
		b, err := ch.sub.Next(ch.ctx)
		if err == nil {
			buf, err = ch.frame(buf[:0], b)
		}
		if err != nil {
			ch.end(err)
			return
		}
		if !ch.send(buf) {
			return
		}
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
	case hub.Changed:
		st, err := ch.ss.srv.Runs.Status(ch.ctx, ch.id)
		if err != nil {
			return dst, err
		}
		event = wire.EventStatus
		if payload, err = json.Marshal(replyOf(st)); err != nil {
			return dst, err
		}
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
	ch.ss.forget(ch)        // first: what the client sends once it knows is refused
	last := wire.EventError // the client joins again after its back-off, with its cursor
	switch {
	case errors.Is(err, thread.ErrDeleted):
		last = wire.EventClose
		ch.send(wire.AppendPush(nil, ch.joinRef, ch.topic, wire.EventDeleted, []byte("{}")))
	case !errors.Is(err, thread.ErrDraining):
		ch.ss.srv.report(problem(err), "subscription", fmt.Errorf("thread %s: %w", ch.id, err))
	}
	ch.send(wire.AppendPush(nil, ch.joinRef, ch.topic, last, []byte("{}")))
}
