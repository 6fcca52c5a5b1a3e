package history

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/threadcast/threadcast/persistence/thread"
)

// SaveResult stores what a tool answered, apart from the events of its run. Storing it again changes nothing.
// [thread.ErrNotFound] if the run is not there; [thread.ErrLeaseLost] if a greater token is noted with it; [thread.ErrBadInput] if the content is not JSON in UTF-8;
// [thread.ErrTooLarge] if the database does not take so much.
func (h *History) SaveResult(ctx context.Context, r thread.Result) error {
	err := checkJSON(r.Content)
	if err != nil {
		err = fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	if err == nil {
		err = h.write(ctx, func(tx *gorm.DB) error {
			if _, err := lockThread(tx, r.Thread); err != nil { // or a deletion could overlook it
				return err
			}
			row, err := findRow(tx, r.Thread, r.RunID)
			if err != nil {
				return err
			}
			if row.Number != r.Run {
				return thread.ErrNotFound
			}
			if row.Token > r.Token {
				return thread.ErrLeaseLost
			}
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&RunResult{
				ThreadID: Text(r.Thread), Number: r.Run, Place: r.Place, Content: string(r.Content),
			}).Error
		})
	}
	if err != nil {
		return fmt.Errorf("store result %d of run %q of thread %q: %w", r.Place, r.RunID, r.Thread, err)
	}
	return nil
}

// Result returns a result that was stored apart, or [thread.ErrNotFound].
func (h directory) Result(ctx context.Context, id thread.ID, run thread.RunID, place int) (thread.Result, error) {
	var stored RunResult
	row, err := findRow(h.read(ctx).Omit("input"), id, run)
	if err == nil {
		err = found(h.read(ctx).Where("thread_id = ? AND number = ? AND place = ?", Text(id), row.Number, place).Take(&stored).Error)
	}
	if err != nil {
		return thread.Result{}, fmt.Errorf("read result %d of run %q of thread %q: %w", place, run, id, meaning(ctx, err))
	}
	return thread.Result{Thread: id, RunID: run, Run: row.Number, Place: place, Content: []byte(stored.Content)}, nil
}
