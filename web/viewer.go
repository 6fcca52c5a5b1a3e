package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// viewer is a membership in the topic of a thread. Its pump, once joined, moves batches from the hub to the socket.
type viewer struct {
	*channel
	id thread.ID

	// Set by join, for the requests after it.
	joined bool
	sub    *hub.Subscription
	start  thread.Cursor
	joining
}

// join subscribes, answers, and starts the pump. One that was left or joined anew meanwhile is not answered.
func (v *viewer) join(f wire.Frame) {
	text, err := v.subscribe(f)
	switch {
	case err == nil && v.send(newFrames().reply(f, "ok", text)):
		v.joined = true
		v.ss.busy.Go(v.pump)
		return
	case err != nil:
		v.drop(f, err)
	}
	if v.sub != nil {
		v.sub.Close()
	}
}

// subscribe begins the subscription that the join asks for, and returns the answer to it.
func (v *viewer) subscribe(f wire.Frame) ([]byte, error) {
	err := thread.CheckID("thread id", string(v.id))
	if err != nil {
		return nil, err
	}
	if v.joining, err = parseJoin(f.Payload); err != nil {
		return nil, err
	}
	ctx, cancel := look(v.ctx)
	defer cancel()
	sub, err := v.ss.srv.Hub.Subscribe(ctx, v.id, v.joining.Options)
	if err != nil {
		return nil, err
	}
	v.sub, v.start = sub, sub.Start()
	st, err := v.ss.srv.Runs.Status(ctx, v.id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(joinReply{
		Cursor: v.start.String(), Resumed: sub.Resumed(), statusReply: replyOf(st), Role: "owner",
	})
}

// pump writes what lies ahead of the subscription until the membership or the socket ends.
func (v *viewer) pump() {
	defer v.cancel()
	defer v.sub.Close()
	for {
		b, err := v.sub.Next(v.ctx)
		f := newFrames()
		if err == nil {
			err = v.frame(f, b)
		}
		if err != nil {
			f.release()
			v.end(err)
			return
		}
		v.ss.pulse.writing(copilotkit.Position{Cursor: b.To})
		if !v.send(f) {
			return
		}
	}
}

// frame adds the frame of a batch.
func (v *viewer) frame(f *frames, b hub.Batch) error {
	event, payload := wire.EventEvents, []byte(nil)
	switch b.Kind {
	case hub.Events:
		v.events(f, b)
		return nil
	case hub.Reset:
		event, payload = wire.EventReset, wire.AppendReset(nil, string(b.RunID), b.From.String())
	case hub.Changed:
		st, err := v.ss.srv.Runs.Status(v.ctx, v.id)
		if err != nil {
			return err
		}
		event = wire.EventStatus
		if payload, err = json.Marshal(replyOf(st)); err != nil {
			return err
		}
	case hub.CaughtUp:
		st, err := v.ss.srv.Runs.Status(v.ctx, v.id)
		if err != nil {
			return err
		}
		event, payload = wire.EventCaughtUp, wire.AppendCaughtUp(nil, b.To.String(), st.Running)
	}
	f.push(v.channel, event, payload)
	return nil
}

// events adds the frame of a batch of events, which are copied once.
func (v *viewer) events(f *frames, b hub.Batch) {
	e := wire.Events{
		RunID: string(b.RunID), From: b.From.String(), To: b.To.String(), Replay: b.Replay, Events: b.Events,
	}
	if v.inputAsEvents {
		e.Events = projected(b.Events)
	}
	f.begin()
	f.bytes = slices.Grow(f.bytes, e.Size()+len(v.topic)+64)
	f.bytes = append(e.Append(wire.AppendPushHead(f.bytes, v.joinRef, v.topic, wire.EventEvents)), ']')
	f.seal()
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
func (v *viewer) end(err error) {
	if v.ctx.Err() != nil {
		return
	}
	v.ss.forget(v.channel)  // first: what the client sends once it knows is refused
	last := wire.EventError // the client joins again after its back-off, with its cursor
	switch {
	case errors.Is(err, thread.ErrDeleted):
		last = wire.EventClose
		v.send(newFrames().push(v.channel, wire.EventDeleted, []byte("{}")))
	case !errors.Is(err, thread.ErrDraining):
		v.ss.srv.report(problem(err), "subscription", fmt.Errorf("thread %s: %w", v.id, err))
	}
	v.send(newFrames().push(v.channel, last, []byte("{}")))
}
