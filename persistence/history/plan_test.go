package history

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm/logger"

	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// recorder keeps the statements that are made, with their values.
type recorder struct {
	logger.Interface
	statements []string
}

func (r *recorder) Trace(_ context.Context, _ time.Time, statement func() (string, int64), _ error) {
	text, _ := statement()
	r.statements = append(r.statements, text)
}

// recorded opens a history in a file whose statements are recorded.
func recorded(t *testing.T) (*History, *sql.DB, *recorder) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "threadcast.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	h, err := NewSQLite(db, db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{Interface: logger.Discard}
	h.writer.Logger, h.reader.Logger = rec, rec
	return h, db, rec
}

// exercise uses every statement once.
func exercise(t *testing.T, h *History) {
	t.Helper()
	ctx := t.Context()
	h.Listen(func(thread.Change) {})
	run, err := h.StartRun(ctx, thread.Run{Thread: "t", ID: "r", Messages: []string{"m"}, Input: []byte("{}"), Accepted: time.UnixMilli(1)})
	if err != nil {
		t.Fatal(err)
	}
	run.Token, run.End.Outcome, run.Ended = 2, thread.OutcomeFinished, time.UnixMilli(2)
	run.Events = []thread.Event{{First: 1, Last: 1, Data: []byte(`{}`)}}
	waits := thread.Queued{Thread: "t", RunID: "q", Input: []byte("{}")}
	_, enqueue := h.Enqueue(ctx, waits, 5)
	_, queue := h.Queue(ctx, "t")
	_, nextQueued := h.NextQueued(ctx, "t")
	_, idle := h.IdleQueues(ctx, 10)
	dequeue := h.Dequeue(ctx, "t", "q")
	run.Pending, run.Calls = []byte(`[{"id":"i"}]`), []byte(`[{"toolCallId":"k"}]`)
	_, known := h.Known(ctx, "t", []string{"m"})
	_, all := h.Unfinished(ctx, "", 0, 10)
	_, one := h.Unfinished(ctx, "t", 0, 10)
	take, save := h.TakeRun(ctx, run), h.SaveRun(ctx, run)
	_, find := h.FindRun(ctx, "t", "r")
	_, next := h.NextRun(ctx, "t", 0)
	_, look := h.Thread(ctx, "t")
	_, _, first := h.Threads(ctx, ThreadsPage{})
	_, _, second := h.Threads(ctx, ThreadsPage{Before: position(Thread{ID: "u", Activity: 5})})
	_, _, agent := h.Threads(ctx, ThreadsPage{Owner: "u", Agent: "a4", Before: position(Thread{ID: "u", Activity: 5})})
	_, _, whole := h.Threads(ctx, ThreadsPage{Archived: true})
	_, edit := h.Edit(ctx, "t", thread.Edit{Name: new("name"), Archived: new(true)})
	_, runs := h.Runs(ctx, "t", 0, 10)
	answers := []thread.Answer{{Kind: thread.AnswerInterrupt, ID: "i"}, {Kind: thread.AnswerCall, ID: "k"}}
	again, err := h.StartRun(ctx, thread.Run{Thread: "t", ID: "r2", Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	again.End, again.Ended = thread.End{Outcome: thread.OutcomeFailed, Code: "x"}, time.UnixMilli(3)
	saveAgain := h.SaveRun(ctx, again)
	answered := h.Answered(ctx, "t", answers[:1])
	discard := h.Discard(ctx, "t", "r", []string{"m"})
	for i, err := range []error{enqueue, queue, nextQueued, idle, dequeue, saveAgain, answered, discard, known, all, one, take, save, find, next, look, first, second, agent, whole, edit, runs, h.DeleteThread(ctx, historytest.Holding("t"))} {
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// TestStatementsUseAnIndex keeps every statement from walking through a whole table, or from sorting one.
func TestStatementsUseAnIndex(t *testing.T) {
	h, db, rec := recorded(t)
	exercise(t, h)
	if len(rec.statements) < 60 {
		t.Fatalf("only %d statements were recorded", len(rec.statements))
	}
	for _, statement := range rec.statements {
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			scan := strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, " INDEX ")
			if scan || strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s\n\tplan: %s", statement, detail)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
}

// TestListsLeaveLongTextsAlone keeps lists from reading the events and inputs of the runs they name, and from asking for
// each thread by itself.
func TestListsLeaveLongTextsAlone(t *testing.T) {
	h, _, rec := recorded(t)
	listsLeaveLongTextsAlone(t, h, rec)
}

func listsLeaveLongTextsAlone(t *testing.T, h *History, rec *recorder) {
	t.Helper()
	for i := range 5 {
		_, err := h.StartRun(t.Context(), thread.Run{Thread: thread.ID(fmt.Sprint(i)), ID: "r"})
		if err != nil {
			t.Fatal(err)
		}
	}
	rec.statements = nil
	if _, _, err := h.Threads(t.Context(), ThreadsPage{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Thread(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Runs(t.Context(), "1", 0, 10); err != nil {
		t.Fatal(err)
	}
	if len(rec.statements) != 3 {
		t.Fatalf("%d statements, want one a call: %q", len(rec.statements), rec.statements)
	}
	for _, statement := range rec.statements {
		if strings.Contains(statement, "events") || strings.Contains(statement, "input") || strings.Contains(statement, "agent_runs.*") {
			t.Errorf("it reads long texts: %s", statement)
		}
	}
}
