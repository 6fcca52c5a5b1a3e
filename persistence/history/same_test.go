package history_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/losslesstest"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// TestBothDatabasesHoldTheSameBytes makes the same history in both and compares what stands in their tables.
func TestBothDatabasesHoldTheSameBytes(t *testing.T) {
	opts := history.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	inPostgres, pool, _ := openPostgres(t, pgtest.Database(t), opts)
	writer, reader := openFile(t, filepath.Join(t.TempDir(), "threadcast.db"))
	inFile, err := history.NewSQLite(writer, reader, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*history.History{inPostgres, inFile} {
		fill(t, h)
	}
	for _, table := range []string{"threads", "agent_runs", "run_state", "thread_messages", "thread_answers", "queued_runs", "run_results"} {
		want, got := contents(t, writer, table), contents(t, pool, table)
		if len(want) == 0 {
			t.Errorf("%s is empty", table)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-SQLite +Postgres):\n%s", table, diff)
		}
	}
}

// fill makes a history of odd texts.
func fill(t *testing.T, h *history.History) {
	t.Helper()
	ctx := context.Background()
	for i, text := range losslesstest.Texts() {
		data := []byte(text.JSON)
		odd := "\x00" + text.JSON + "\xff"
		run, err := h.StartRun(ctx, thread.Run{
			Thread: thread.ID(text.Name), ID: "r", Agent: odd, Parent: odd, Owner: odd, Title: odd, Token: uint64(i),
			Input: data, Messages: []string{"m", odd, `"`, "\xed\xa0\x80"}, Accepted: time.UnixMilli(int64(i) + 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.SaveResult(ctx, thread.Result{Thread: run.Thread, RunID: "r", Run: 1, Token: run.Token, Place: 1, Content: data}); err != nil {
			t.Fatal(err)
		}
		run.End = thread.End{Outcome: thread.OutcomeWaiting, Code: odd, Message: odd, By: odd}
		run.Events = []thread.Event{{First: 1, Last: 1<<63 - 1, Data: data}, {First: 2, Last: 2, Data: []byte(`{}`)}}
		run.Pending, run.Calls, run.Usage, run.LastSeq = []byte(`[{"id":"i"}]`), data, data, 3
		if err := h.SaveRun(ctx, run); err != nil {
			t.Fatal(err)
		}
		answers := []thread.Answer{{Kind: thread.AnswerInterrupt, ID: "i", Digest: "d"}}
		if _, err := h.StartRun(ctx, thread.Run{Thread: run.Thread, ID: "s", Answers: answers}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Enqueue(ctx, thread.Queued{Thread: run.Thread, RunID: "q", Input: data, Title: odd, By: odd, Agent: odd}, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// contents are the rows of a table, each with its values by the names of their columns.
func contents(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT * FROM `+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		columns := make([]string, len(names))
		for i, name := range names {
			columns[i] = fmt.Sprintf("%s=%T:%q", name, values[i], fmt.Sprint(values[i]))
		}
		slices.Sort(columns)
		all = append(all, strings.Join(columns, "\n"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
