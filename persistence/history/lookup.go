package history

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// NextRun returns the first finished run of the thread whose number is greater than after, with its input and
// events, or [thread.ErrNotFound]. If what is stored of the events is damaged it returns the run without
// them and a [thread.ErrCorrupt], so that a caller can go on after run.Number.
func (h *History) NextRun(ctx context.Context, id thread.ID, after uint64) (thread.Run, error) {
	var row AgentRun
	err := h.read(ctx).Where("thread_id = ? AND number > ? AND status = ?", Text(id), after, statusEnded).
		Order("number").Take(&row).Error
	if err != nil {
		return thread.Run{}, fmt.Errorf("read the run after %d of thread %q: %w", after, id, meaning(ctx, found(err)))
	}
	run := row.run()
	if run.Events, err = row.events(); err != nil {
		return run, fmt.Errorf("read the events of run %q of thread %q: %w", run.ID, id, err)
	}
	return run, nil
}

// events takes the run's events out of its row.
func (r AgentRun) events() ([]thread.Event, error) {
	text := bytesOf(r.Events)
	switch {
	case r.Version != eventsVersion:
		return nil, fmt.Errorf("%w: they have the form of version %d, not %d", thread.ErrCorrupt, r.Version, eventsVersion)
	case checksum(text) != r.Checksum:
		return nil, fmt.Errorf("%w: their checksum is not the one noted", thread.ErrCorrupt)
	}
	return decodeEvents(text, r.EventCount)
}

// FindRun returns a run's particulars and input without its events, or [thread.ErrNotFound]. Ended is zero while
// the run has not ended.
func (h *History) FindRun(ctx context.Context, id thread.ID, run thread.RunID) (thread.Run, error) {
	row, err := findRow(h.read(ctx), id, run)
	if err != nil {
		return thread.Run{}, fmt.Errorf("find run %q of thread %q: %w", run, id, meaning(ctx, err))
	}
	return row.run(), nil
}

// findRow reads a run's row without its events.
func findRow(db *gorm.DB, id thread.ID, run thread.RunID) (AgentRun, error) {
	var row AgentRun
	err := db.Omit("events").Where("thread_id = ? AND run_id = ?", Text(id), Text(run)).Take(&row).Error
	return row, found(err)
}

// Unfinished returns up to limit runs that were accepted and not finished, with their input, in the order of
// their acceptance, without the first skip of them; of all threads, or of one if id is not empty.
func (h *History) Unfinished(ctx context.Context, id thread.ID, skip, limit int) ([]thread.Run, error) {
	runs, err := unfinished(h.read(ctx), id, skip, limit)
	if err != nil {
		return nil, fmt.Errorf("look up unfinished runs: %w", meaning(ctx, err))
	}
	return runs, nil
}

// unfinished spells the status out, since an index of some rows serves only statements that name them.
func unfinished(db *gorm.DB, id thread.ID, skip, limit int) ([]thread.Run, error) {
	query := db.Omit("events").Where("status = 'running'")
	if id != "" {
		query = query.Where("thread_id = ?", Text(id))
	}
	var rows []AgentRun
	if err := query.Order("id").Offset(max(skip, 0)).Limit(max(limit, 0)).Find(&rows).Error; err != nil {
		return nil, err
	}
	runs := make([]thread.Run, len(rows))
	for i, row := range rows {
		runs[i] = row.run()
	}
	return runs, nil
}

// Thread returns what is known of a thread, deleted ones included; [thread.ErrNotFound] for one that never was. An
// interrupt that the active run answers does not wait.
func (h directory) Thread(ctx context.Context, id thread.ID) (thread.Thread, error) {
	row, err := h.oneThread(h.read(ctx), Text(id))
	if err == nil {
		err = h.withoutAnswered(ctx, &row)
	}
	if err != nil {
		return thread.Thread{}, fmt.Errorf("look up thread %q: %w", id, meaning(ctx, err))
	}
	return row.thread(), nil
}

// fence refuses who has not got the greatest token of those that runs of the thread were written with.
func fence(tx *gorm.DB, lease thread.Lease) error {
	var greater int64
	err := tx.Model(&AgentRun{}).Where("thread_id = ? AND token > ?", Text(lease.Thread), lease.Token).Count(&greater).Error
	if err == nil && greater > 0 {
		err = thread.ErrLeaseLost
	}
	return err
}

// DeleteThread removes a thread's runs and all else but its last run number and its revision, and marks it deleted; a run that
// is under way then finds no place to be saved. [thread.ErrNotFound] if there is no such thread, or it is deleted
// already.
// [thread.ErrLeaseLost] if it has a run with a greater token than the lease's.
func (h *History) DeleteThread(ctx context.Context, lease thread.Lease) error {
	id := lease.Thread
	err := h.alter(ctx, func(tx *gorm.DB, made *changes) error {
		t, err := lockThread(tx, id)
		if err != nil {
			return err
		}
		if t.Deleted != 0 {
			return thread.ErrNotFound
		}
		if err := fence(tx, lease); err != nil {
			return err
		}
		for _, model := range []any{&AgentRun{}, &RunState{}, &ThreadMessage{}, &ThreadAnswer{}, &QueuedRun{}, &RunResult{}} {
			if err := tx.Where("thread_id = ?", Text(id)).Delete(model).Error; err != nil {
				return err
			}
		}
		gone := Thread{ID: t.ID, LastRun: t.LastRun, Revision: t.Revision + 1, Deleted: millis(h.now())}
		made.add(thread.Deleted, thread.Thread{
			ID: id, LastRun: gone.LastRun, Revision: gone.Revision, Deleted: true, Owner: thread.User(t.Owner), Agent: t.AgentID,
		})
		return tx.Save(&gone).Error
	})
	if err != nil {
		return fmt.Errorf("delete thread %q: %w", id, err)
	}
	return nil
}
