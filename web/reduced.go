package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

const (
	maxViews = 4 // views that are made at a time
	maxTries = 5 // how often a view is begun, as runs end while it is made

	viewWait  = 20 * time.Second // for a place
	leastTime = 20 * time.Second // that a reader has for an answer,
	leastRate = 256 << 10        // and how many bytes a second it takes beyond that

	answerPiece = 64 << 10         // of an answer,
	pieceTime   = 10 * time.Second // and how long a reader has for each: one that takes nothing holds its place no longer
)

// errReset ends a walk that must begin again: a run that was half read is to be had compacted only, by now.
var errReset = errors.New("a run has been compacted meanwhile")

// view makes an answer of what a thread's events amount to, and writes it. It holds one of the few places for that until the
// answer is written, so that readers who take their time do not add up in memory.
func (s *Server) view(c echo.Context, id thread.ID, plan agui.Reducer, parts func(*agui.Reducer, thread.Cursor) [][]byte) error {
	done, err := s.views.take(c.Request().Context())
	if err != nil {
		return err
	}
	defer done()
	r, at, err := s.reduce(c.Request().Context(), id, plan)
	if err != nil {
		return err
	}
	return answer(c, parts(r, at))
}

// reduce makes of a thread's events, the running run's included as far as they have come, what r holds of them
// (AG-UI 1.0, section 13), and returns the position up to which they were read.
func (s *Server) reduce(ctx context.Context, id thread.ID, plan agui.Reducer) (*agui.Reducer, thread.Cursor, error) {
	plan.MaxBytes = s.cfg.ViewBytes
	for range maxTries {
		r, at := plan, thread.Cursor{}
		err := s.Hub.Walk(ctx, id, hub.Options{Replay: hub.Stored}, func(b hub.Batch) error {
			if b.Kind == hub.Reset {
				return errReset
			}
			for _, event := range b.Events {
				_ = r.Apply(event) // what cannot be read was not shown by anybody either
			}
			at = b.To
			return ctx.Err()
		})
		if !errors.Is(err, errReset) {
			return &r, at, err
		}
	}
	return nil, thread.Cursor{}, fmt.Errorf("read thread %s: %w: %w", id, thread.ErrUnavailable, errReset)
}

// getMessages answers with the messages of a thread, as a client has them who has taken all its events.
func (a api) getMessages(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	st, err := a.Runs.Status(c.Request().Context(), t.ID)
	if err != nil {
		return err
	}
	return a.view(c, t.ID, agui.Reducer{NoState: true}, func(r *agui.Reducer, at thread.Cursor) [][]byte {
		silent := st.Running && at.Run < st.Cursor.Run // a run has begun and has no event yet
		return messagesView(r, at, r.Running() || silent)
	})
}

// getState answers with the state of a thread, as a client has it who has taken all its events.
func (a api) getState(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	return a.view(c, t.ID, agui.Reducer{NoMessages: true}, stateView)
}

// messagesView is the answer of getMessages, in parts: the greatest is not copied.
func messagesView(r *agui.Reducer, at thread.Cursor, running bool) [][]byte {
	tail := strconv.AppendBool(append(appendCursor(nil, at), `,"running":`...), running)
	tail = append(appendList(append(tail, `,"pending":`...), r.Pending()), truncated(r)...)
	return [][]byte{[]byte(`{"messages":`), r.Messages(), tail}
}

// stateView is the answer of getState.
func stateView(r *agui.Reducer, at thread.Cursor) [][]byte {
	return [][]byte{[]byte(`{"state":`), r.State(), append(appendCursor(nil, at), truncated(r)...)}
}

func appendCursor(dst []byte, at thread.Cursor) []byte {
	return append(at.Append(append(dst, `,"cursor":"`...)), '"')
}

// appendList appends a JSON array as it is; nil is an empty one.
func appendList(dst, list []byte) []byte {
	if list == nil {
		return append(dst, "[]"...)
	}
	return append(dst, list...)
}

// truncated ends a view, and says whether something had to be left out.
func truncated(r *agui.Reducer) string {
	if r.Truncated() {
		return `,"truncated":true}`
	}
	return "}"
}

// answer writes JSON that has been put together by hand, so that it holds values as they are stored.
func answer(c echo.Context, parts [][]byte) error {
	response := c.Response()
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	// What cannot set deadlines (a recorder in a test, say) does not wait either.
	control, whole := http.NewResponseController(response), time.Now().Add(leastTime+time.Duration(size/leastRate)*time.Second)
	response.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	response.WriteHeader(http.StatusOK)
	for _, part := range parts {
		for piece := range slices.Chunk(part, answerPiece) {
			deadline := time.Now().Add(pieceTime)
			if whole.Before(deadline) {
				deadline = whole
			}
			_ = control.SetWriteDeadline(deadline)
			if _, err := response.Write(piece); err != nil {
				return err
			}
		}
	}
	return nil
}
