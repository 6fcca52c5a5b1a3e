package history

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/threadcast/threadcast/persistence/thread"
)

// StartRun records an accepted run and the ids of its input messages (run.Messages), and returns it with Number
// and Previous filled in, and Accepted too if it was zero. It creates the thread if needed; a deleted thread is
// created anew, and its run numbers go on. [thread.ErrRunIDUsed] if the thread has a run of that id, whether
// finished or not; a [thread.UnfinishedError] if another run of it was not finished; a [thread.AnsweredError] if one of
// run.Answers comes too late; [thread.ErrBadInput] if an id is not one, or the input is not JSON in UTF-8. A run that comes from the
// queue leaves it: [thread.ErrNotFound] if it is not there any more; one that is not the next is [thread.ErrQueued].
// [thread.ErrGap] if the thread's last run is not the one that run.Follows names.
func (h *History) StartRun(ctx context.Context, run thread.Run) (thread.Run, error) {
	if run.Accepted.IsZero() {
		run.Accepted = h.now()
	}
	run.Accepted = fromMillis(millis(run.Accepted))
	err := checkStart(run)
	if err == nil {
		err = h.alter(ctx, func(tx *gorm.DB, made *changes) error {
			started, err := startRun(tx, run, made)
			run.Number, run.Previous = started.Number, thread.RunID(started.PreviousRunID)
			return err
		})
	}
	if err != nil {
		return thread.Run{}, fmt.Errorf("start run %q of thread %q: %w", run.ID, run.Thread, err)
	}
	return run, nil
}

func checkStart(run thread.Run) error {
	if err := thread.CheckID("thread id", string(run.Thread)); err != nil {
		return err
	}
	if err := thread.CheckID("run id", string(run.ID)); err != nil {
		return err
	}
	if run.User != "" {
		if err := thread.CheckID("user", string(run.User)); err != nil {
			return err
		}
	}
	if len(run.Input) == 0 {
		return nil
	}
	if err := checkJSON(run.Input); err != nil {
		return fmt.Errorf("%w: input: %w", thread.ErrBadInput, err)
	}
	return nil
}

func startRun(tx *gorm.DB, run thread.Run, made *changes) (Particulars, error) {
	t, what, err := openThread(tx, run)
	if err != nil {
		return Particulars{}, err
	}
	if run.Follows != 0 && t.LastRun != run.Follows {
		return Particulars{}, fmt.Errorf("%w: the thread's last run is number %d, not %d", thread.ErrGap, t.LastRun, run.Follows)
	}
	if err := refuse(tx, run); err != nil {
		return Particulars{}, err
	}
	if err := takeTurn(tx, run); err != nil {
		return Particulars{}, err
	}
	previous, err := latestRunID(tx, run.Thread)
	if err != nil {
		return Particulars{}, err
	}
	row := newRow(run)
	row.Number, row.PreviousRunID = t.LastRun+1, previous
	if err := tx.Create(&row).Error; err != nil {
		return Particulars{}, err
	}
	if err := noteMessages(tx, run.Thread, run.Messages); err != nil {
		return Particulars{}, err
	}
	if err := takeAnswers(tx, thread.Queued{Thread: run.Thread, RunID: run.ID, Answers: run.Answers}); err != nil {
		return Particulars{}, err
	}
	t.LastRun = row.Number
	if t.Title == "" {
		t.Title = Text(run.Title)
	}
	t.Activity = max(t.Activity, row.Accepted)
	t.Revision++
	if err := tx.Save(&t).Error; err != nil {
		return Particulars{}, err
	}
	if err := beginState(tx, row.Particulars); err != nil {
		return Particulars{}, err
	}
	return row.Particulars, made.note(what, t.ID)
}

func newRow(run thread.Run) AgentRun {
	return AgentRun{
		Particulars: Particulars{
			ThreadID:    Text(run.Thread),
			RunID:       Text(run.ID),
			ParentRunID: Text(run.Parent),
			AgentID:     Text(run.Agent),
			Owner:       Text(run.Owner),
			Token:       run.Token,
			Accepted:    millis(run.Accepted),
			Version:     eventsVersion,
			Ending:      Ending{Status: statusRunning},
		},
		Input: string(run.Input),
	}
}

// openThread locks the thread's row and returns it, fit for a new run: created if it was not there, created anew
// if it was deleted; and what the run is in a list.
func openThread(tx *gorm.DB, run thread.Run) (Thread, thread.Happening, error) {
	accepted := millis(run.Accepted)
	fresh := Thread{
		ID: Text(run.Thread), Created: accepted, Activity: accepted, Owner: Text(run.User), AgentID: messageKey(run.Agent),
	}
	if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh).Error; err != nil {
		return Thread{}, "", err
	}
	t, err := lockThread(tx, run.Thread)
	switch {
	case err == nil && t.Deleted != 0:
		fresh.LastRun, fresh.Revision = t.LastRun, t.Revision
		return fresh, thread.Created, nil
	case t.LastRun == 0:
		return t, thread.Created, err
	}
	return t, thread.Running, err
}

// lockThread returns the thread's row, and lets no other writer at it before the transaction ends. SQLite has
// one writer anyway.
func lockThread(tx *gorm.DB, id thread.ID) (Thread, error) {
	var t Thread
	err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("id = ?", Text(id)).Take(&t).Error
	return t, found(err)
}

// found turns GORM's word for no row into the project's.
func found(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return thread.ErrNotFound
	}
	return err
}

// refuse says why the thread cannot take the run, if there is a reason.
func refuse(tx *gorm.DB, run thread.Run) error {
	_, err := findRow(tx, run.Thread, run.ID)
	if err == nil {
		return thread.ErrRunIDUsed
	}
	if !errors.Is(err, thread.ErrNotFound) {
		return err
	}
	open, err := unfinished(tx, run.Thread, 0, 1)
	if err == nil && len(open) > 0 {
		return &thread.UnfinishedError{Run: open[0]}
	}
	return err
}

func latestRunID(tx *gorm.DB, id thread.ID) (Text, error) {
	var row Particulars
	err := tx.Model(&AgentRun{}).Select("run_id").Where("thread_id = ?", Text(id)).
		Order("number DESC").Take(&row).Error
	if err = found(err); errors.Is(err, thread.ErrNotFound) {
		return "", nil
	}
	return row.RunID, err
}

// beginState notes that the run is what the thread does now. Interrupts that wait for an answer go on waiting
// until a run ends otherwise.
func beginState(tx *gorm.DB, row Particulars) error {
	state := RunState{ThreadID: row.ThreadID, IsRunning: 1, CurrentRunID: row.RunID, ServerID: row.Owner, Updated: row.Accepted}
	return tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "thread_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"is_running", "current_run_id", "server_id", "updated_at"}),
	}).Create(&state).Error
}
