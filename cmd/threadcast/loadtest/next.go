package loadtest

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

// payload is that of ag_ui_events, of reset and of caught_up, on the socket and in a page of events alike.
type payload struct {
	Reset  bool              `json:"reset"`
	RunID  thread.RunID      `json:"runId"`
	From   string            `json:"from"`
	To     string            `json:"to"`
	Replay bool              `json:"replay"`
	Events []json.RawMessage `json:"events"`
	Cursor string            `json:"cursor"`
}

// Next reads a push to a viewer that has everything up to pos. A batch has to begin there, or at the beginning of the next
// run: whether the run before was over is for the caller to say. One that does not is a [*Break], and so is a caught_up
// for another position. A reset is a Step whose To is where the viewer goes back to.
func Next(pos thread.Cursor, event string, data []byte) (Step, error) {
	s := Step{Event: event}
	if event != wire.EventEvents && event != wire.EventReset && event != wire.EventCaughtUp {
		return s, nil
	}
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return s, fmt.Errorf("%s: %w", event, err)
	}
	return p.step(pos, s)
}

func (p payload) step(pos thread.Cursor, s Step) (Step, error) {
	s.RunID, s.Replay, s.Events = p.RunID, p.Replay, p.Events
	var err error
	switch s.Event {
	case wire.EventReset:
		s.From = pos
		s.To, err = thread.ParseCursor(p.From)
		return s, err
	case wire.EventCaughtUp:
		s.From = pos
		if s.To, err = thread.ParseCursor(p.Cursor); err == nil && s.To != pos {
			err = &Break{pos, s}
		}
		return s, err
	}
	var errTo error
	s.From, err = thread.ParseCursor(p.From)
	s.To, errTo = thread.ParseCursor(p.To)
	if err := errors.Join(err, errTo); err != nil {
		return s, err
	}
	follows := s.From == pos || s.From == thread.Cursor{Run: pos.Run + 1}
	if !follows || s.From.Run != s.To.Run || !s.From.Before(s.To) {
		return s, &Break{pos, s}
	}
	return s, nil
}
