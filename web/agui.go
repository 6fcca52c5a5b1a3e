package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/wire"
)

// feeds are the answers of server-sent events: a run, or a thread, as it goes on.
type feeds struct{ *Server }

// postAGUI is an agent over HTTP (AG-UI 1.0, section 15): it starts the run that the body asks for, or finds it if it was
// started before, and answers with its events. The client may go and come back; the run does not mind.
func (s feeds) postAGUI(c echo.Context) error {
	agent, err := pathID(c, "agent", "agent id")
	if err != nil {
		return err
	}
	body, err := wholeBody(c)
	if err != nil {
		return err
	}
	req, err := parseInput(agent, body, nil)
	if err != nil {
		return err
	}
	if req.OnBusy, err = parseOnBusy(c.QueryParam("onBusy")); err != nil {
		return err
	}
	after, err := lastEvent(c)
	if err != nil {
		return err
	}
	acc, err := s.start(c.Request().Context(), req, callerOf(c))
	if err != nil {
		return err
	}
	return s.streamRun(c, watched{Accepted: acc, thread: req.Thread, after: after})
}

// lastEvent is the position that the client has: Last-Event-ID, which is later than what its URL says; zero for none.
func lastEvent(c echo.Context) (thread.Cursor, error) {
	text := c.Request().Header.Get("Last-Event-ID")
	if text == "" {
		text = c.QueryParam("after")
	}
	if text == "" {
		return thread.Cursor{}, nil
	}
	return thread.ParseCursor(text)
}

// watched is a run whose events are the answer to a request.
type watched struct {
	thread.Accepted
	thread thread.ID
	after  thread.Cursor             // where the client is
	shape  func(event []byte) []byte // what the client gets of an event; nil for nothing. Default: the event
}

// streamRun answers with the events of a run, from its first or from where the client is, and ends with its terminal event.
func (s feeds) streamRun(c echo.Context, run watched) error {
	ctx, cancel := look(c.Request().Context())
	defer cancel()
	// Raw, since who watches a run wants every event of it; and also if it is replaced, up to its end.
	opts := hub.Options{After: run.Cursor, Replay: hub.Raw, Discarded: true}
	if run.Queued == 0 && run.after.Run >= run.Cursor.Run {
		if run.after.Run > run.Cursor.Run {
			return fmt.Errorf("%w: %s is not in run %s", thread.ErrBadCursor, run.after, run.RunID)
		}
		opts.After = run.after
		if told, err := s.told(ctx, run); told || err != nil {
			return noMore(c, err)
		}
	}
	sub, err := s.Hub.Subscribe(ctx, run.thread, opts)
	if err != nil {
		return err
	}
	defer sub.Close()
	cancel()
	return s.stream(c, func(st *stream) error {
		err := st.pump(sub, func(dst []byte, b hub.Batch) ([]byte, bool, error) { return s.showRun(st.ctx, dst, run, b) })
		if errors.Is(err, thread.ErrDeleted) {
			return st.write(wire.SSE{Data: agui.RunError("The thread was deleted.", "thread_deleted")}.Append(nil))
		}
		return err
	})
}

// noMore answers that there is nothing to wait for, in the way that ends the tries of an EventSource.
func noMore(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// told tells whether the client has all of a run that has ended.
func (s feeds) told(ctx context.Context, run watched) (bool, error) {
	st, err := s.Runs.Status(ctx, run.thread)
	if err != nil {
		return false, err
	}
	end, ended := st.Cursor, !st.Running
	if st.RunID != run.RunID {
		r, err := s.Directory.FindRun(ctx, run.thread, run.RunID)
		if err != nil {
			return false, absent(run.thread, err)
		}
		end, ended = r.Cursor(), !r.Ended.IsZero()
	}
	return ended && atEnd(run.after, end), nil
}

// reaches tells whether nothing of a run that ends there comes after a position. The last entry of a run is its end, which
// is no event.
func reaches(at, end thread.Cursor) bool {
	return at.Run > end.Run || at.Run == end.Run && end.Seq > 0 && at.Seq+1 >= end.Seq
}

// atEnd tells whether a position, as a client gives it, is the end of a run that ends there, or the one before it. One further
// ahead is a mistake, or of something that was lost, and not for here to judge.
func atEnd(at, end thread.Cursor) bool {
	return at.Run == end.Run && at.Seq <= end.Seq && reaches(at, end)
}

// showRun makes the frames of what belongs to the run.
func (s feeds) showRun(ctx context.Context, dst []byte, run watched, b hub.Batch) (frames []byte, last bool, err error) {
	switch b.Kind {
	case hub.Events:
		if b.RunID != run.RunID {
			if run.Queued == 0 && b.From.Run > run.Cursor.Run {
				return dst, false, thread.ErrDeleted
			}
			return dst, false, nil // it waits for its turn
		}
		dst, last = appendEvents(dst, b, run.shape)
		return dst, last || len(b.Events) == 0, nil
	case hub.Reset:
		switch b.RunID {
		case run.RunID:
			if run.shape != nil || run.after == (thread.Cursor{}) {
				return dst, false, errRepeats // a client that has just begun knows of no reset
			}
			dst = appendReset(dst, b)
		case "": // the thread is not the one that it was
			return dst, false, thread.ErrDeleted
		}
	case hub.Changed:
		if run.Queued > 0 {
			gone, err := s.unqueued(ctx, run)
			if gone {
				dst = wire.SSE{Data: agui.RunError("The run was stopped before it began.", "stopped")}.Append(dst)
			}
			return dst, gone, err
		}
	case hub.CaughtUp:
	}
	return dst, false, nil
}

// unqueued tells whether a run that waited for its turn was taken out of the queue without having begun.
func (s feeds) unqueued(ctx context.Context, run watched) (bool, error) {
	st, err := s.Runs.Status(ctx, run.thread)
	if err != nil || st.RunID == run.RunID {
		return false, err
	}
	for _, q := range st.Queue {
		if q.RunID == run.RunID {
			return false, nil
		}
	}
	_, err = s.Directory.FindRun(ctx, run.thread, run.RunID)
	if errors.Is(err, thread.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// appendEvents appends the frames of a batch of events, and tells whether the last one is the terminal event of its run. A
// position stands only where a client may break off: not between events that a compacted run has in place of others.
func appendEvents(dst []byte, b hub.Batch, shape func([]byte) []byte) (frames []byte, terminal bool) {
	for i, event := range b.Events {
		h, err := agui.ParseHeader(event)
		terminal = err == nil && (h.Type == "RUN_FINISHED" || h.Type == "RUN_ERROR")
		frame := wire.SSE{Data: event}
		if shape != nil {
			if frame.Data = shape(event); frame.Data == nil {
				continue
			}
		}
		if at, ok := b.After(i); ok {
			frame.ID = at.String()
		}
		dst = frame.Append(dst)
	}
	return dst, terminal
}

// appendReset appends the frame that tells the client to forget the run, or the thread.
func appendReset(dst []byte, b hub.Batch) []byte {
	at := b.From.String()
	return wire.SSE{ID: at, Event: wire.EventReset, Data: wire.AppendReset(nil, string(b.RunID), at)}.Append(dst)
}
