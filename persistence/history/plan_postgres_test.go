package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// recordedPostgres opens a history in Postgres whose statements are recorded.
func recordedPostgres(t *testing.T) (*History, *sql.DB, *recorder) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), pgtest.Database(t), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	h, err := NewPostgres(t.Context(), pool, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{Interface: logger.Discard}
	h.writer.Logger, h.reader.Logger = rec, rec
	return h, pool, rec
}

// crowd fills a database with so much that its planner has reason to use the indexes: 20,000 threads of two runs each,
// some of which are running or wait in a queue.
var crowd = []string{
	`INSERT INTO threads (id, last_run, title, created_at, activity_at, deleted_at, archived_at, owner, agent_id)
		SELECT 'x' || n, 2, 'title', n, n, CASE WHEN n % 10 = 0 THEN 1 ELSE 0 END, CASE WHEN n % 3 = 0 THEN n ELSE 0 END,
		CASE WHEN n % 2 = 0 THEN 'u' ELSE '' END, 'a' || (n % 50) FROM generate_series(1, 20000) n`,
	`INSERT INTO agent_runs (thread_id, run_id, number, token, created_at, version, status, input, events)
		SELECT 'x' || n, 'r' || k, k, 1, n, 1, CASE WHEN k = 2 AND n % 200 = 0 THEN 'running' ELSE 'ended' END, '{}', '[]'
		FROM generate_series(1, 20000) n, generate_series(1, 2) k`,
	`INSERT INTO run_state (thread_id, updated_at) SELECT 'x' || n, n FROM generate_series(1, 20000) n`,
	`INSERT INTO thread_messages SELECT 'x' || n, 'm' || k FROM generate_series(1, 20000) n, generate_series(1, 4) k`,
	`INSERT INTO thread_answers SELECT 'x' || n, 'interrupt', 'i' || k, 'r1', '' FROM generate_series(1, 20000) n, generate_series(1, 2) k`,
	`INSERT INTO run_results SELECT 'x' || n, k, 1, '{}' FROM generate_series(1, 20000) n, generate_series(1, 2) k`,
	`INSERT INTO queued_runs (thread_id, run_id, after_run, created_at, input)
		SELECT 'x' || n * 200, 'q' || k, 2, n, '{}' FROM generate_series(1, 100) n, generate_series(1, 3) k`,
	`ANALYZE`,
}

// TestPostgresStatementsUseAnIndex keeps every statement from walking through a whole table, or from sorting one.
func TestPostgresStatementsUseAnIndex(t *testing.T) {
	h, pool, rec := recordedPostgres(t)
	for _, statement := range crowd {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	err := h.reader.Callback().Row().Register("test", func(tx *gorm.DB) {
		t.Errorf("a statement has no deadline: %s", tx.Statement.SQL.String())
	})
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, h)
	if len(rec.statements) < 60 {
		t.Fatalf("only %d statements were recorded", len(rec.statements))
	}
	for _, statement := range rec.statements {
		for _, fault := range faults(explain(t, pool, statement)) {
			t.Errorf("%s\n\tplan: %s", statement, fault)
		}
	}
}

// node is a part of a plan of Postgres.
type node struct {
	Type  string  `json:"Node Type"`
	Table string  `json:"Relation Name"`
	Rows  float64 `json:"Plan Rows"`
	Plans []node
}

func explain(t *testing.T, pool *sql.DB, statement string) node {
	t.Helper()
	var text []byte
	if err := pool.QueryRowContext(t.Context(), "EXPLAIN (FORMAT JSON) "+statement).Scan(&text); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	return plans[0].Plan
}

// faults are what a plan does that takes the longer the more there is. The queue is short: it may be read as a whole.
func faults(n node) []string {
	var all []string
	if strings.Contains(n.Type, "Seq Scan") && n.Table != "queued_runs" {
		all = append(all, n.Type+" of "+n.Table)
	}
	if strings.Contains(n.Type, "Sort") && n.Rows > 1000 {
		all = append(all, n.Type)
	}
	for _, below := range n.Plans {
		all = append(all, faults(below)...)
	}
	return all
}

func TestPostgresListsLeaveLongTextsAlone(t *testing.T) {
	h, _, rec := recordedPostgres(t)
	listsLeaveLongTextsAlone(t, h, rec)
}

// TestStatementsDoNotGrowWithTheRun counts what accepting and saving a run takes.
func TestStatementsDoNotGrowWithTheRun(t *testing.T) {
	h, _, rec := recordedPostgres(t)
	count := func(id thread.ID, events int) int {
		rec.statements = nil
		run := thread.Run{Thread: id, ID: "r", Token: 1}
		for range events {
			run.Messages = append(run.Messages, string(rune('a'+len(run.Messages))))
		}
		run, err := h.StartRun(context.Background(), run)
		if err != nil {
			t.Fatal(err)
		}
		run.End.Outcome = thread.OutcomeFinished
		for i := range events {
			run.Events = append(run.Events, thread.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: []byte(`{}`)})
		}
		if err := h.SaveRun(context.Background(), run); err != nil {
			t.Fatal(err)
		}
		return len(rec.statements)
	}
	if few, many := count("t", 1), count("u", 400); few != many {
		t.Errorf("%d statements for one message and event, %d for 400", few, many)
	}
}
