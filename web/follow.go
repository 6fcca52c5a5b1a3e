package web

import (
	"context"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// followThread answers with the events of a thread, all runs, from where the client is, and goes on with what comes.
func (s feeds) followThread(c echo.Context) error {
	f := following{reset: true}
	var err error
	if f.thread, err = threadID(c); err != nil {
		return err
	}
	if f.After, err = lastEvent(c); err != nil {
		return err
	}
	if f.Replay, err = parseReplay(c.QueryParam("replay")); err != nil {
		return err
	}
	if f.Discarded, err = parseDiscarded(c.QueryParam("discarded")); err != nil {
		return err
	}
	switch until := c.QueryParam("until"); until {
	case "", "idle":
		f.untilIdle = until != ""
	default:
		return badInput(`until must be "idle" if it is given`)
	}
	return s.streamThread(c, &f)
}

// following is what somebody wants of a thread's events as an answer to a request.
type following struct {
	hub.Options
	thread    thread.ID
	untilIdle bool                                    // end when no run is active and none waits
	reset     bool                                    // the client knows what a reset is
	shape     func(b hub.Batch) func(e []byte) []byte // of a batch: what the client gets of an event; see watched.shape

	caughtUp bool
	over     thread.RunID // whose terminal event was shown last
}

// retry makes an EventSource whose connection was lost come back after a second.
const retry = "retry: 1000\n\n"

// streamThread answers with the events of a thread.
func (s feeds) streamThread(c echo.Context, f *following) error {
	ctx, cancel := look(c.Request().Context())
	defer cancel()
	if f.untilIdle && f.After != (thread.Cursor{}) {
		if has, err := s.hasAll(ctx, f); has || err != nil {
			return noMore(c, err)
		}
	}
	sub, err := s.Hub.Subscribe(ctx, f.thread, f.Options)
	if err != nil {
		return err
	}
	defer sub.Close()
	cancel()
	return s.stream(c, func(st *stream) error {
		if f.reset {
			if err := st.write([]byte(retry)); err != nil {
				return err
			}
		}
		err := st.pump(sub, func(dst []byte, b hub.Batch) ([]byte, bool, error) { return s.showThread(st.ctx, dst, f, b) })
		if errors.Is(err, thread.ErrDeleted) {
			if !f.reset {
				return nil
			}
			return st.write(wire.SSE{Event: wire.EventDeleted, Data: []byte("{}")}.Append(nil))
		}
		return err
	})
}

// errRepeats ends the answer to a client that can only take each event once.
var errRepeats = errors.New("what the client has must be sent again")

// showThread makes the frames of a batch.
func (s feeds) showThread(ctx context.Context, dst []byte, f *following, b hub.Batch) (frames []byte, last bool, err error) {
	look := true // whether there may be nothing more to wait for
	switch b.Kind {
	case hub.Events:
		var shape func([]byte) []byte
		if f.shape != nil {
			shape = f.shape(b)
		}
		var terminal bool
		if dst, terminal = appendEvents(dst, b, shape); terminal {
			f.over = b.RunID
		}
		look = terminal || len(b.Events) == 0
	case hub.Reset:
		switch {
		case f.reset:
			dst = appendReset(dst, b)
		case b.From.Seq == 0: // else the run was replaced, and nothing of it follows
			return dst, false, errRepeats
		}
	case hub.CaughtUp:
		f.caughtUp = true
	case hub.Changed:
	}
	if f.untilIdle && f.caughtUp && look {
		last, err = s.idle(ctx, f, b.To)
	}
	return dst, last, err
}

// hasAll tells whether a client that comes has everything, and no more is to come.
func (s feeds) hasAll(ctx context.Context, f *following) (bool, error) {
	st, err := s.Runs.Status(ctx, f.thread)
	ended := err == nil && !st.Running && st.Latest != nil && len(st.Queue) == 0
	return ended && atEnd(f.After, st.Cursor), err
}

// idle tells whether no run is active on the thread, none waits, and nothing comes after a position.
func (s feeds) idle(ctx context.Context, f *following, at thread.Cursor) (bool, error) {
	st, err := s.Runs.Status(ctx, f.thread)
	switch {
	case err != nil, len(st.Queue) > 0:
		return false, err
	case st.RunID == "", st.RunID == f.over:
		return true, nil
	}
	// A run that was lost is not running, and has not ended yet.
	return !st.Running && st.Latest != nil && reaches(at, st.Cursor), nil
}
