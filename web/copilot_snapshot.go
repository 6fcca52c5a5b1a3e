package web

import (
	"context"
	"errors"
	"slices"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
)

// restate puts a client right that cannot go on from where it is: it tells it the messages and the state of the thread as
// they are, ends what was open in the run that the client was in the middle of and has been closed since, that run too, and
// leaves it where what comes next follows.
func (m *pipe) restate() error {
	old := m.place
	events, at, err := m.snapshots()
	if err != nil {
		return err
	}
	closing, of, err := m.closing(old.Cursor)
	if err != nil {
		return err
	}
	if m.Kind == ticketRun && closing == nil {
		if err := m.goesOn(); err != nil {
			return err
		}
	}
	done := min(old.Lost-1, max(0, len(closing)-1)) // what it has already; of the last one it has nothing
	events = append(events, closing[done:]...)
	for i, event := range events {
		to := copilotkit.Position{Cursor: old.Cursor, Lost: 1 + done + max(0, i-1)}
		if i == len(events)-1 {
			to = copilotkit.Position{Cursor: at}
		}
		if err := m.add(event, of, to); err != nil {
			return err
		}
	}
	return m.flush()
}

// snapshots returns the events that tell the messages and the state of the thread, and up to where they do.
func (m *pipe) snapshots() ([][]byte, thread.Cursor, error) {
	done, err := m.ss.srv.snapshots.take(m.ctx)
	if err != nil {
		return nil, thread.Cursor{}, err
	}
	defer done()
	r, at, err := m.ss.srv.reduce(m.ctx, m.Thread, agui.Reducer{})
	if err != nil {
		return nil, thread.Cursor{}, err
	}
	return [][]byte{
		slices.Concat([]byte(`{"type":"MESSAGES_SNAPSHOT","messages":`), r.Messages(), []byte("}")),
		slices.Concat([]byte(`{"type":"STATE_SNAPSHOT","snapshot":`), r.State(), []byte("}")),
	}, at, nil
}

// closing returns the events that close what was open at a position in a finished run, and its terminal event, which comes
// last; nil if the position is not in the middle of one.
func (m *pipe) closing(at thread.Cursor) ([][]byte, origin, error) {
	of := origin{id: m.RunID}
	if at.Run == 0 || at.Seq == 0 {
		return nil, of, nil
	}
	ctx, cancel := look(m.ctx)
	defer cancel()
	run, err := m.ss.srv.Hub.Finished(ctx, m.Thread, at.Run)
	if errors.Is(err, thread.ErrNotFound) {
		return nil, of, nil
	}
	return closingOf(run, at.Seq), origin{run.ID, run.Number}, err
}

// closingOf is closing, by the events of the run as history keeps them.
func closingOf(run thread.Run, seq uint64) [][]byte {
	before := agui.NewTracker(string(run.Thread), string(run.ID))
	var terminal []byte
	ends := map[string][]byte{} // how subagents ended since
	for _, e := range run.Events {
		if e.First <= seq {
			_, _ = before.Observe(e.Data) // it was judged when it came
		}
		h, err := agui.ParseHeader(e.Data)
		switch {
		case err != nil:
		case h.Type == "RUN_FINISHED" || h.Type == "RUN_ERROR":
			if terminal = e.Data; e.Last <= seq && seq <= run.LastSeq {
				return nil // the client has it
			}
		case e.First > seq && (h.Type == "SUBAGENT_FINISHED" || h.Type == "SUBAGENT_ERROR"):
			ends[h.SubagentRunID] = e.Data
		}
	}
	if terminal == nil {
		return nil
	}
	closers := before.Closers()
	for i, event := range closers {
		if h, err := agui.ParseHeader(event); err == nil && h.Type == "SUBAGENT_ERROR" && ends[h.SubagentRunID] != nil {
			closers[i] = ends[h.SubagentRunID]
		}
	}
	return append(closers, terminal)
}

// goesOn returns [thread.ErrDeleted] if the run of the client is no more.
func (m *pipe) goesOn() error {
	ctx, cancel := context.WithTimeoutCause(m.ctx, lookTimeout, thread.ErrUnavailable)
	defer cancel()
	st, err := m.ss.srv.Runs.Status(ctx, m.Thread)
	if err != nil {
		return err
	}
	if st.RunID != m.RunID {
		return thread.ErrDeleted
	}
	return nil
}
