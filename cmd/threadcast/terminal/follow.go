package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// pingEvery is how often a silent connection is tried, and how long the answer may take.
const pingEvery = 20 * time.Second

// follower reads one thread over sockets, one after the other, each of which goes on where the one before ended.
type follower struct {
	nodes  *client.Nodes
	thread string
	pos    thread.Cursor // up to which it has everything
	now    bool          // it begins with what comes after its first join
	raw    bool
	facts  chan fact

	broken *thread.Cursor // where something was missing, or came again, since the last batch
}

// fact is one thing that a follower has learnt.
type fact struct {
	// event says which: one of the pushes of package wire, wire.EventJoin for a join, or eventLost.
	event  string
	step   client.Step // of events, a reset and a caught_up
	status threadStatus
	err    error // why a connection was lost
}

// eventLost is the fact that the connection is gone. Another one is being tried for.
const eventLost = "lost"

// threadStatus is how a thread stands, in the answer to a join and in a status (docs/protocol.md, sections 3 and 4.3).
type threadStatus struct {
	Running bool              `json:"running"`
	RunID   string            `json:"runId"`
	AgentID string            `json:"agentId"`
	Cursor  string            `json:"cursor"`
	Outcome string            `json:"outcome"`
	Pending []json.RawMessage `json:"pending"`
	Calls   []json.RawMessage `json:"pendingToolCalls"`
	Queue   []struct {
		RunID string `json:"runId"`
	} `json:"queue"`
}

// errDeleted says that the thread is no more.
var errDeleted = errors.New("the thread was deleted")

// follow tells facts until ctx ends, and what cannot be mended: the first connection that cannot be made, a join that is
// refused, the end of the thread.
func (f *follower) follow(ctx context.Context) error {
	try := 0
	for joined := false; ; {
		s, err := f.join(ctx)
		if err == nil {
			joined = true
			before := f.pos
			err = f.read(ctx, s)
			s.Cut()
			if f.pos != before {
				try = 0
			}
		}
		var refused *client.Refusal
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errDeleted), !joined && errors.Is(err, client.ErrUnreachable):
			return err
		case errors.As(err, &refused) && refused.Code == "bad_cursor" && joined:
			err = f.restart(ctx) // what was shown is not there any more
		case errors.As(err, &refused) && !refused.Again() && (!joined || refused.Status < 500):
			return err
		default:
			err = f.tell(ctx, fact{event: eventLost, err: err})
		}
		if err != nil {
			return err
		}
		if err := client.Backoff(ctx, try); err != nil {
			return err
		}
		try++
	}
}

// join opens a socket and joins at the position.
func (f *follower) join(ctx context.Context) (*client.Socket, error) {
	m := client.Membership{Thread: f.thread, After: f.pos.String()}
	if f.now {
		m.After, m.From = "", "now"
	}
	if f.raw {
		m.Replay = "raw"
	}
	s, err := f.nodes.Join(ctx, f.nodes.Any(), m)
	if err != nil {
		return nil, err
	}
	var status threadStatus
	err = json.Unmarshal(s.Joined, &status)
	if err == nil && f.now {
		f.pos, err = thread.ParseCursor(status.Cursor)
		f.now = false
	}
	if err == nil {
		err = f.tell(ctx, fact{event: wire.EventJoin, status: status})
	}
	if err != nil {
		s.Cut()
		return nil, fmt.Errorf("read the answer to the join: %w", err)
	}
	return s, nil
}

// read tells what comes on a socket until that ends.
func (f *follower) read(ctx context.Context, s *client.Socket) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() { s.Watch(ctx, pingEvery) })
	for {
		frame, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if err := f.take(ctx, frame); err != nil {
			return err
		}
	}
}

// take tells what a frame says, and keeps the position.
func (f *follower) take(ctx context.Context, frame wire.Frame) error {
	switch frame.Event {
	case wire.EventEvents, wire.EventReset, wire.EventCaughtUp:
	case wire.EventStatus:
		var status threadStatus
		if err := json.Unmarshal(frame.Payload, &status); err != nil {
			return fmt.Errorf("read a status: %w", err)
		}
		return f.tell(ctx, fact{event: frame.Event, status: status})
	case wire.EventDeleted:
		return errDeleted
	case wire.EventClose, wire.EventError:
		return errors.New("the server ended the membership")
	default:
		return nil
	}
	step, err := client.Next(f.pos, frame.Event, frame.Payload)
	var broken *client.Break
	switch {
	case errors.As(err, &broken) && !broken.Skips():
		return f.mend(ctx, broken)
	case err != nil && broken == nil:
		return err
	case frame.Event != wire.EventCaughtUp:
		f.broken = nil
	}
	f.pos = step.To
	return f.tell(ctx, fact{event: frame.Event, step: step})
}

// mend is for what the server never lets happen: the follower joins again where it is, and if that does not help, begins
// anew.
func (f *follower) mend(ctx context.Context, b *client.Break) error {
	if f.broken != nil && *f.broken == f.pos {
		if err := f.restart(ctx); err != nil {
			return err
		}
		return b
	}
	at := f.pos
	f.broken = &at
	return b
}

// restart goes back to the beginning of the thread.
func (f *follower) restart(ctx context.Context) error {
	f.pos, f.broken = thread.Cursor{}, nil
	return f.tell(ctx, fact{event: wire.EventReset, step: client.Step{Event: wire.EventReset}})
}

func (f *follower) tell(ctx context.Context, what fact) error {
	select {
	case f.facts <- what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
