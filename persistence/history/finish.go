package history

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// TakeRun notes run.Owner and run.Token as those of who finishes a run in another's place, so that the former
// owner's SaveRun is refused. [thread.ErrLeaseLost] if a greater token is noted already; [thread.ErrNotFound] if
// the run is not there. A run that has ended stays as it is.
func (h *History) TakeRun(ctx context.Context, run thread.Run) error {
	err := h.write(ctx, func(tx *gorm.DB) error {
		_, row, err := fenced(tx, run)
		if err != nil || row.Status == statusEnded {
			return err
		}
		err = tx.Model(&row).Select("owner", "token").
			Updates(AgentRun{Particulars: Particulars{Owner: Text(run.Owner), Token: run.Token}}).Error
		if err != nil {
			return err
		}
		return tx.Model(&RunState{ThreadID: row.ThreadID}).Update("server_id", Text(run.Owner)).Error
	})
	if err != nil {
		return fmt.Errorf("take run %q of thread %q: %w", run.ID, run.Thread, err)
	}
	return nil
}

// SaveRun records a finished run: its end, its events, the ids of the messages it created (run.Messages), and
// what waits for an answer. Saving a run again changes nothing: what viewers may have been shown stays. If
// run.Ended is zero it is now.
//
// [thread.ErrLeaseLost] if a greater token is noted; [thread.ErrNotFound] if the run is not there, or is another
// one that got its id after the thread was deleted; [thread.ErrBadInput] if there is no outcome, or an event,
// run.Pending or run.Usage is not JSON in UTF-8.
func (h *History) SaveRun(ctx context.Context, run thread.Run) error {
	if run.Ended.IsZero() {
		run.Ended = h.now()
	}
	end, events, err := ending(run)
	if err == nil {
		err = h.alter(ctx, func(tx *gorm.DB, made *changes) error {
			t, row, err := fenced(tx, run)
			if err != nil || row.Status == statusEnded {
				return err
			}
			if err := saveRun(tx, t, row, savedRun{Run: run, ending: end, events: events}); err != nil {
				return err
			}
			return made.note(endedAs(end.Outcome), t.ID)
		})
	}
	if err != nil {
		return fmt.Errorf("save run %q of thread %q: %w", run.ID, run.Thread, err)
	}
	return nil
}

// savedRun is a finished run with what its row will hold.
type savedRun struct {
	thread.Run
	ending Ending
	events string
}

// ending checks a finished run and makes what its row will hold.
func ending(run thread.Run) (Ending, string, error) {
	if run.End.Outcome == "" {
		return Ending{}, "", fmt.Errorf("%w: the run has no outcome", thread.ErrBadInput)
	}
	for what, list := range map[string][]byte{"interrupts": run.Pending, "tool calls": run.Calls, "usage": run.Usage} {
		if len(list) == 0 {
			continue
		}
		if err := checkJSON(list); err != nil {
			return Ending{}, "", fmt.Errorf("%w: %s: %w", thread.ErrBadInput, what, err)
		}
	}
	text, err := encodeEvents(run.Events)
	if err != nil {
		return Ending{}, "", err
	}
	end := Ending{
		Status:       statusEnded,
		Outcome:      string(run.End.Outcome),
		Code:         Text(run.End.Code),
		Error:        Text(run.End.Message),
		StoppedBy:    Text(run.End.By),
		EndedAt:      millis(run.Ended),
		LastSeq:      run.LastSeq,
		EventCount:   len(run.Events),
		Checksum:     checksum(text),
		Pending:      string(run.Pending),
		PendingCalls: string(run.Calls),
		Usage:        string(run.Usage),
	}
	for _, e := range run.Events {
		end.Bytes += int64(len(e.Data))
	}
	return end, textOf(text), nil
}

// fenced locks the thread and returns its row and the run's, if run.Token is not older than what is noted.
func fenced(tx *gorm.DB, run thread.Run) (Thread, AgentRun, error) {
	t, err := lockThread(tx, run.Thread)
	if err != nil {
		return Thread{}, AgentRun{}, err
	}
	row, err := findRow(tx, run.Thread, run.ID)
	switch {
	case err != nil:
		return Thread{}, AgentRun{}, err
	case run.Number != 0 && row.Number != run.Number:
		return Thread{}, AgentRun{}, fmt.Errorf("%w: the run of that id is number %d now", thread.ErrNotFound, row.Number)
	case row.Token > run.Token:
		return Thread{}, AgentRun{}, fmt.Errorf("%w: token %d is noted, %d is older", thread.ErrLeaseLost, row.Token, run.Token)
	}
	return t, row, nil
}

func saveRun(tx *gorm.DB, t Thread, row AgentRun, run savedRun) error {
	row.Token, row.Version = run.Token, eventsVersion
	row.Ending, row.Events = run.ending, run.events
	if err := tx.Model(&row).Select("*").Omit("id", "input").Updates(row).Error; err != nil {
		return err
	}
	if err := noteMessages(tx, run.Thread, run.Messages); err != nil {
		return err
	}
	columns := []string{"is_running", "current_run_id", "server_id", "updated_at"}
	if replacesPending(run.Run) {
		columns = append(columns, "pending", "pending_calls")
		if err := settle(tx, run.Run); err != nil {
			return err
		}
	} else if err := withdrawAnswers(tx, run.Run); err != nil {
		return err
	}
	state := RunState{
		ThreadID: row.ThreadID, Updated: run.ending.EndedAt, Pending: nowPending(run.Run), PendingCalls: string(run.Calls),
	}
	if err := tx.Model(&state).Select(columns).Updates(state).Error; err != nil {
		return err
	}
	t.Activity = max(t.Activity, run.ending.EndedAt)
	t.Revision++
	return tx.Model(&t).Select("activity_at", "revision").Updates(t).Error
}

// replacesPending tells whether the end of a run changes what waits for an answer on its thread: RUN_FINISHED
// does, RUN_ERROR leaves it untouched (AG-UI 1.0, section 9).
func replacesPending(run thread.Run) bool { return run.End.Finished() || len(run.Pending) > 0 }

// nowPending is what waits for an answer once run has ended, if that changes.
func nowPending(run thread.Run) string {
	if run.End.Outcome == thread.OutcomeFinished {
		return ""
	}
	return string(run.Pending)
}
