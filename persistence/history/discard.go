package history

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Discard marks a finished run as replaced: it is left out of replay, the thread forgets that it saw its messages (the
// ids given), and what waited before it waits again. Discarding a run again changes nothing. [thread.ErrNotFound] if
// the run is not there; [thread.ErrUnfinished] if it has not ended.
func (h *History) Discard(ctx context.Context, id thread.ID, run thread.RunID, messages []string) error {
	err := h.write(ctx, func(tx *gorm.DB) error {
		t, err := lockThread(tx, id)
		if err != nil {
			return err
		}
		row, err := findRow(tx, id, run)
		switch {
		case err != nil:
			return err
		case row.Status != statusEnded:
			return thread.ErrUnfinished
		case row.Discarded != 0:
			return nil
		}
		if err := tx.Model(&row).Update("discarded", 1).Error; err != nil {
			return err
		}
		for keys := range slices.Chunk(messageKeys(messages), chunk) {
			err := tx.Where("thread_id = ? AND message_id IN ?", Text(id), keys).Delete(&ThreadMessage{}).Error
			if err != nil {
				return err
			}
		}
		if err := tx.Where("thread_id = ? AND run_id = ?", Text(id), Text(run)).Delete(&ThreadAnswer{}).Error; err != nil {
			return err
		}
		if row.Number != t.LastRun {
			return nil
		}
		return restore(tx, id)
	})
	if err != nil {
		return fmt.Errorf("discard run %q of thread %q: %w", run, id, err)
	}
	return nil
}

// restore lets wait what the thread's latest run that counts left.
func restore(tx *gorm.DB, id thread.ID) error {
	var rows []Particulars
	err := tx.Model(&AgentRun{}).Where("thread_id = ? AND discarded = 0 AND status = ?", Text(id), statusEnded).
		Where("(outcome IN ? OR (outcome IN ? AND code = ''))",
			[]thread.Outcome{thread.OutcomeFinished, thread.OutcomeWaiting}, []thread.Outcome{thread.OutcomeStopped, thread.OutcomeTimedOut}).
		Order("number DESC").Limit(1).Find(&rows).Error
	if err != nil {
		return err
	}
	var before RunState
	if len(rows) > 0 {
		before = RunState{Pending: rows[0].Pending, PendingCalls: rows[0].PendingCalls}
	}
	return tx.Model(&RunState{ThreadID: Text(id)}).Select("pending", "pending_calls").Updates(before).Error
}
