package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// Step is what a push of the server does to the position of a viewer.
type Step struct {
	// Event is the push's event, one of those of package wire. Of EventEvents, EventReset and EventCaughtUp the fields
	// below are filled in.
	Event    string
	RunID    thread.RunID
	From, To thread.Cursor // To is the viewer's new position
	Replay   bool
	Running  bool // of a caught_up: whether a run is active
	Events   []json.RawMessage
}

// Break is a push that does not continue what came before it: something is missing, or comes again.
type Break struct {
	At   thread.Cursor // the viewer's position
	Step Step
}

func (b *Break) Error() string {
	return fmt.Sprintf("at %s there came %s from %s to %s with %d events", b.At, b.Step.Event, b.Step.From, b.Step.To, len(b.Step.Events))
}

// Skips tells whether all that is missing are whole runs. So it is where runs were replaced, which are left out of replay
// (docs/protocol.md, sections 5.1 and 5.2).
func (b *Break) Skips() bool {
	if b.Step.Event == wire.EventCaughtUp {
		return b.At.Run < b.Step.To.Run
	}
	return b.At.Run < b.Step.From.Run && b.Step.From.Seq == 0 && b.Step.From.Run == b.Step.To.Run && b.Step.From.Before(b.Step.To)
}

// Batch is the payload of ag_ui_events, of reset and of caught_up, on the socket and in a page of events alike.
type Batch struct {
	Reset   bool              `json:"reset"` // in a page of events: it is that of a reset
	RunID   thread.RunID      `json:"runId"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Replay  bool              `json:"replay"`
	Events  []json.RawMessage `json:"events"`
	Cursor  string            `json:"cursor"`
	Running bool              `json:"running"`
}

// Next reads a push to a viewer that has everything up to pos. A batch has to begin there, or at the beginning of the next
// run: whether the run before was over is for the caller to say. One that does not is a [*Break], and so is a caught_up
// for another position. A reset is a Step whose To is where the viewer goes back to.
func Next(pos thread.Cursor, event string, data []byte) (Step, error) {
	if event != wire.EventEvents && event != wire.EventReset && event != wire.EventCaughtUp {
		return Step{Event: event}, nil
	}
	var b Batch
	if err := json.Unmarshal(data, &b); err != nil {
		return Step{Event: event}, fmt.Errorf("%s: %w", event, err)
	}
	return b.step(pos, event)
}

// Step reads a batch of a page of events, as [Next] does a push.
func (b Batch) Step(pos thread.Cursor) (Step, error) {
	if b.Reset {
		return b.step(pos, wire.EventReset)
	}
	return b.step(pos, wire.EventEvents)
}

func (b Batch) step(pos thread.Cursor, event string) (Step, error) {
	s := Step{Event: event, RunID: b.RunID, Replay: b.Replay, Events: b.Events, Running: b.Running}
	var err error
	switch event {
	case wire.EventReset:
		s.From = pos
		s.To, err = thread.ParseCursor(b.From)
		return s, err
	case wire.EventCaughtUp:
		s.From = pos
		if s.To, err = thread.ParseCursor(b.Cursor); err == nil && s.To != pos {
			err = &Break{pos, s}
		}
		return s, err
	}
	var errTo error
	s.From, err = thread.ParseCursor(b.From)
	s.To, errTo = thread.ParseCursor(b.To)
	if err := errors.Join(err, errTo); err != nil {
		return s, err
	}
	follows := s.From == pos || s.From == thread.Cursor{Run: pos.Run + 1}
	if !follows || s.From.Run != s.To.Run || !s.From.Before(s.To) {
		return s, &Break{pos, s}
	}
	return s, nil
}
