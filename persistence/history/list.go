package history

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/thread"
)

const (
	defaultPage = 50
	maxPage     = 500
)

// ThreadsPage asks for a part of the list of threads. A Limit of 0 or less is 50, one over 500 is 500.
type ThreadsPage = thread.Page

// threadRow is a thread with what its run_state and its latest run say.
type threadRow struct {
	Thread       `gorm:"embedded"`
	Pending      string
	PendingCalls string
	Queued       int
	Latest       Particulars `gorm:"embedded;embeddedPrefix:latest_"`
}

func (r threadRow) thread() thread.Thread {
	t := thread.Thread{
		ID:       thread.ID(r.ID),
		LastRun:  r.LastRun,
		Created:  fromMillis(r.Created),
		Activity: fromMillis(r.Activity),
		Deleted:  r.Deleted != 0,
		Title:    string(r.Title),
		Pending:  jsonBytes(r.Pending),
		Calls:    jsonBytes(r.PendingCalls),
		Queued:   r.Queued,
		Owner:    thread.User(r.Owner),
		Agent:    r.AgentID,
		Name:     string(r.Name),
		Archived: fromMillis(r.Archived),
		Revision: r.Revision,
	}
	if r.Latest.ID != 0 {
		run := r.Latest.run()
		t.Latest = &run
	}
	return t
}

// threads is where a look-up of threads begins: one statement brings all of each.
func (h *database) threads(db *gorm.DB) *gorm.DB {
	return db.Table("threads").Select(h.threadColumns).
		Joins("LEFT JOIN run_state ON run_state.thread_id = threads.id").
		Joins("LEFT JOIN agent_runs latest ON latest.thread_id = threads.id AND latest.number = threads.last_run")
}

// oneThread reads a thread, or returns [thread.ErrNotFound].
func (h *database) oneThread(db *gorm.DB, id Text) (threadRow, error) {
	var rows []threadRow
	err := h.threads(db).Where("threads.id = ?", id).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = thread.ErrNotFound
	}
	if err != nil {
		return threadRow{}, err
	}
	return rows[0], nil
}

// Threads returns a page of the threads of page.Owner that are not deleted, the one that was active last first, and where the
// next page begins; that is empty after the last page. A thread that becomes active between two pages moves to the
// front; none is returned twice. [thread.ErrBadCursor] if page.Before is not what an earlier call returned.
func (h directory) Threads(ctx context.Context, page ThreadsPage) ([]thread.Thread, string, error) {
	limit := page.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	query := h.threads(h.read(ctx)).Where("threads.deleted_at = 0 AND threads.owner = ?", Text(page.Owner))
	if page.Agent != "" {
		query = query.Where("threads.agent_id = ?", messageKey(page.Agent))
	}
	if !page.Archived {
		query = query.Where("threads.archived_at = 0")
	}
	if page.Before != "" {
		activity, id, err := parsePosition(page.Before)
		if err != nil {
			return nil, "", fmt.Errorf("list threads: %w", err)
		}
		query = query.Where("(threads.activity_at, threads.id) < (?, ?)", activity, id)
	}
	var rows []threadRow
	err := query.Order("threads.activity_at DESC, threads.id DESC").Limit(limit + 1).Find(&rows).Error
	if err != nil {
		return nil, "", fmt.Errorf("list threads: %w", meaning(ctx, err))
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = position(rows[limit-1].Thread)
	}
	threads := make([]thread.Thread, len(rows))
	for i, row := range rows {
		threads[i] = row.thread()
	}
	return threads, next, nil
}

// position is the text form of a thread's place in the list.
func position(t Thread) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(t.Activity, 10) + ":" + string(t.ID)))
}

func parsePosition(s string) (activity int64, id Text, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		ms, name, _ := strings.Cut(string(raw), ":")
		activity, err = strconv.ParseInt(ms, 10, 64)
		id = Text(name)
	}
	if err != nil || id == "" {
		return 0, "", fmt.Errorf("%w: it is not the end of a page of threads", thread.ErrBadCursor)
	}
	return activity, id, nil
}

// Runs returns the particulars of up to limit runs of the thread whose numbers are greater than after, finished or
// not, without input and events, by number. A thread that is not there has none.
func (h directory) Runs(ctx context.Context, id thread.ID, after uint64, limit int) ([]thread.Run, error) {
	var rows []AgentRun
	err := h.read(ctx).Omit("events", "input").Where("thread_id = ? AND number > ?", Text(id), after).
		Order("number").Limit(max(limit, 0)).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list runs of thread %q: %w", id, meaning(ctx, err))
	}
	runs := make([]thread.Run, len(rows))
	for i, row := range rows {
		runs[i] = row.run()
	}
	return runs, nil
}
