package history

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Enqueue records a request that waits for its turn, behind those that wait already (before those that are not Front, if
// it is), reserves what it answers, and returns it with Place, After and Since filled in. A request that is recorded
// already stays as it is, but for what it replaces. [thread.ErrQueueFull] if limit of them wait and it is not Front; a
// [thread.AnsweredError] if an answer comes too late; [thread.ErrRunIDUsed] if the thread has a run of that id; [thread.ErrNotFound] if there is no such thread;
// [thread.ErrBadInput] if an id is not one, or the input is not JSON in UTF-8.
func (h line) Enqueue(ctx context.Context, q thread.Queued, limit int) (thread.Queued, error) {
	err := checkStart(thread.Run{Thread: q.Thread, ID: q.RunID, Input: q.Input})
	if err == nil {
		err = h.alter(ctx, func(tx *gorm.DB, made *changes) error {
			placed, err := enqueue(made, q, limit)
			if err == nil {
				q = placed
			}
			return err
		})
	}
	if err != nil {
		return thread.Queued{}, fmt.Errorf("enqueue run %q of thread %q: %w", q.RunID, q.Thread, err)
	}
	return q, nil
}

func enqueue(made *changes, q thread.Queued, limit int) (thread.Queued, error) {
	tx, now := made.tx, millis(made.h.now())
	t, err := lockThread(tx, q.Thread)
	if err != nil {
		return q, err
	}
	if t.Deleted != 0 {
		return q, thread.ErrNotFound
	}
	if _, err := findRow(tx, q.Thread, q.RunID); err == nil {
		return q, thread.ErrRunIDUsed
	}
	waiting, err := queued(tx, q.Thread)
	if err != nil {
		return q, err
	}
	for _, w := range waiting {
		if w.RunID != q.RunID {
			continue
		}
		if q.Replaces != "" && w.Replaces != q.Replaces {
			w.Replaces = q.Replaces
			return w, tx.Model(&QueuedRun{}).Where("thread_id = ? AND run_id = ?", Text(q.Thread), Text(q.RunID)).
				Update("replaces", Text(q.Replaces)).Error
		}
		return w, nil
	}
	if len(waiting) >= limit && !q.Front {
		return q, thread.ErrQueueFull
	}
	if err := takeAnswers(tx, q); err != nil {
		return q, err
	}
	q.After, q.Since, q.Place = t.LastRun, fromMillis(now), 1
	for _, w := range waiting {
		if w.Front || !q.Front {
			q.Place++
		}
	}
	row := QueuedRun{
		ThreadID: Text(q.Thread), RunID: Text(q.RunID), AgentID: Text(q.Agent), AfterRun: q.After,
		Title: Text(q.Title), QueuedBy: Text(q.By), Created: now, Replaces: Text(q.Replaces), Input: string(q.Input),
	}
	if q.Front {
		row.Front = 1
	}
	if err := tx.Create(&row).Error; err != nil {
		return q, err
	}
	return q, made.queue(t)
}

// queued are the requests that wait on a thread, in order, without their inputs.
func queued(db *gorm.DB, id thread.ID) ([]thread.Queued, error) {
	var rows []QueuedRun
	err := db.Omit("input").Where("thread_id = ?", Text(id)).Order("front DESC, id").Find(&rows).Error
	if err != nil {
		return nil, err
	}
	out := make([]thread.Queued, len(rows))
	for i, row := range rows {
		out[i] = row.queued()
		out[i].Place = i + 1
	}
	return out, nil
}

func (r QueuedRun) queued() thread.Queued {
	return thread.Queued{
		Thread: thread.ID(r.ThreadID), RunID: thread.RunID(r.RunID), Agent: string(r.AgentID), Input: jsonBytes(r.Input),
		After: r.AfterRun, Title: string(r.Title), By: string(r.QueuedBy), Since: fromMillis(r.Created),
		Front: r.Front != 0, Replaces: thread.RunID(r.Replaces),
	}
}

// Queue returns the requests that wait on a thread, the next one first, without their inputs.
func (h line) Queue(ctx context.Context, id thread.ID) ([]thread.Queued, error) {
	list, err := queued(h.read(ctx), id)
	if err != nil {
		return nil, fmt.Errorf("list the queue of thread %q: %w", id, meaning(ctx, err))
	}
	return list, nil
}

// NextQueued returns the request whose turn is next, or [thread.ErrNotFound].
func (h line) NextQueued(ctx context.Context, id thread.ID) (thread.Queued, error) {
	var row QueuedRun
	if err := h.read(ctx).Where("thread_id = ?", Text(id)).Order("front DESC, id").Take(&row).Error; err != nil {
		return thread.Queued{}, fmt.Errorf("find the next of the queue of thread %q: %w", id, meaning(ctx, found(err)))
	}
	next := row.queued()
	next.Place = 1
	return next, nil
}

// IdleQueues returns up to limit threads on which requests wait while no run is active.
func (h line) IdleQueues(ctx context.Context, limit int) ([]thread.ID, error) {
	var ids []Text
	err := h.read(ctx).Model(&QueuedRun{}).
		Where("NOT EXISTS (SELECT 1 FROM agent_runs WHERE agent_runs.thread_id = queued_runs.thread_id AND status = 'running')").
		Group("thread_id").Limit(max(limit, 0)).Pluck("thread_id", &ids).Error
	if err != nil {
		return nil, fmt.Errorf("look for queues: %w", meaning(ctx, err))
	}
	out := make([]thread.ID, len(ids))
	for i, id := range ids {
		out[i] = thread.ID(id)
	}
	return out, nil
}

// Dequeue takes a request out of the queue before its turn, and gives back what it answers; [thread.ErrNotFound] if it does not wait.
func (h line) Dequeue(ctx context.Context, id thread.ID, run thread.RunID) error {
	err := h.alter(ctx, func(tx *gorm.DB, made *changes) error {
		t, err := lockThread(tx, id)
		if err != nil {
			return err
		}
		gone := tx.Where("thread_id = ? AND run_id = ?", Text(id), Text(run)).Delete(&QueuedRun{})
		if gone.Error == nil && gone.RowsAffected == 0 {
			return thread.ErrNotFound
		}
		if gone.Error != nil {
			return gone.Error
		}
		if err := tx.Where("thread_id = ? AND run_id = ?", Text(id), Text(run)).Delete(&ThreadAnswer{}).Error; err != nil {
			return err
		}
		return made.queue(t)
	})
	if err != nil {
		return fmt.Errorf("take run %q out of the queue of thread %q: %w", run, id, err)
	}
	return nil
}

// takeTurn takes a run that comes from the queue out of it, and lets no run pass those that wait before it.
func takeTurn(tx *gorm.DB, run thread.Run) error {
	var waiting []Text
	err := tx.Model(&QueuedRun{}).Where("thread_id = ?", Text(run.Thread)).Order("front DESC, id").Pluck("run_id", &waiting).Error
	switch {
	case err != nil:
		return err
	case run.Queued && !slices.Contains(waiting, Text(run.ID)):
		return thread.ErrNotFound
	case len(waiting) == 0:
		return nil
	case waiting[0] != Text(run.ID):
		return thread.ErrQueued
	}
	return tx.Where("thread_id = ? AND run_id = ?", Text(run.Thread), Text(run.ID)).Delete(&QueuedRun{}).Error
}
