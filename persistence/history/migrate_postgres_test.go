package history_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// openPool opens a database whose schema is not touched.
func openPool(t *testing.T, url string, opts postgres.Options) *sql.DB {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// lines are the rows of a query that has one column of text.
func lines(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// schemaOfPostgres is the columns, constraints and indexes of a database.
func schemaOfPostgres(t *testing.T, db *sql.DB) []string {
	t.Helper()
	columns := lines(t, db, `SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default, is_identity)
		FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`)
	constraints := lines(t, db, `SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
		WHERE connamespace = 'public'::regnamespace ORDER BY 1`)
	indexes := lines(t, db, `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname`)
	return append(append(columns, constraints...), indexes...)
}

func versionsOfPostgres(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return lines(t, db, `SELECT version::text FROM schema_version ORDER BY version`)
}

func allPostgresVersions() []string {
	var all []string
	for _, v := range allVersions() {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func TestMigrationOfAPostgresDatabase(t *testing.T) {
	_, fresh, _ := openPostgres(t, pgtest.Database(t), history.Options{})
	want := schemaOfPostgres(t, fresh)
	if diff := cmp.Diff(allPostgresVersions(), versionsOfPostgres(t, fresh)); diff != "" {
		t.Error(diff)
	}
	t.Run("keys compare by bytes", func(t *testing.T) {
		for _, line := range want {
			_, key, _ := strings.Cut(line, " ")
			if strings.HasPrefix(key, "thread_id ") && !strings.HasPrefix(key, "thread_id text C ") {
				t.Errorf("the column is %s", line)
			}
		}
	})
	for old := 1; old < history.LatestSchema; old++ {
		t.Run(fmt.Sprint("from version ", old), func(t *testing.T) {
			url := pgtest.Database(t)
			pool := openPool(t, url, postgres.Options{})
			if err := history.MigratePostgresTo(t.Context(), pool, old); err != nil {
				t.Fatal(err)
			}
			exec(t, pool, `INSERT INTO threads (id, last_run, title, created_at, activity_at) VALUES ('t', 1, 'old', 1, 1)`)
			exec(t, pool, `INSERT INTO agent_runs (thread_id, run_id, number, token, created_at, version, status, input, events)
				VALUES ('t', 'r1', 1, 1, 1, 1, 'running', '{}', '')`)
			h, pool, _ := openPostgres(t, url, history.Options{})
			if diff := cmp.Diff(want, schemaOfPostgres(t, pool)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(allPostgresVersions(), versionsOfPostgres(t, pool)); diff != "" {
				t.Error(diff)
			}
			run := thread.Run{Thread: "t", ID: "r1", Number: 1, Token: 1, End: thread.End{Outcome: thread.OutcomeLost}}
			if err := h.SaveRun(t.Context(), run); err != nil {
				t.Errorf("save the old database's run: %v", err)
			}
			next, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r2"})
			if err != nil || next.Number != 2 {
				t.Errorf("the next run is %+v, %v", next, err)
			}
		})
	}
}

func TestForeignPostgresSchemasAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare []string
		says    string
	}{
		{"of a newer threadcast", []string{
			`CREATE TABLE schema_version (version bigint PRIMARY KEY, applied_at bigint NOT NULL)`,
			`INSERT INTO schema_version VALUES (1, 1), (4711, 1)`,
			`CREATE TABLE threads (id text)`,
		}, "4711"},
		{"of the TypeScript runner", []string{
			`CREATE TABLE schema_version (version bigint PRIMARY KEY, applied_at bigint NOT NULL)`,
			`INSERT INTO schema_version VALUES (1, 1)`,
			`CREATE TABLE agent_runs (id serial PRIMARY KEY, thread_id text NOT NULL, run_id text NOT NULL UNIQUE)`,
		}, "another program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := openPool(t, pgtest.Database(t), postgres.Options{})
			for _, statement := range c.prepare {
				exec(t, pool, statement)
			}
			before := schemaOfPostgres(t, pool)
			_, err := history.NewPostgres(t.Context(), pool, history.Options{})
			if !errors.Is(err, history.ErrSchema) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want ErrSchema that says %q", err, c.says)
			}
			if diff := cmp.Diff(before, schemaOfPostgres(t, pool)); diff != "" {
				t.Errorf("the database was changed: %s", diff)
			}
		})
	}
}

func TestNodesThatMigrateAtOnce(t *testing.T) {
	url := pgtest.Database(t)
	pools := make([]*sql.DB, 8)
	for i := range pools {
		pools[i] = openPool(t, url, postgres.Options{})
	}
	var all sync.WaitGroup
	for i, pool := range pools {
		all.Go(func() {
			h, err := history.NewPostgres(context.Background(), pool, history.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := h.StartRun(context.Background(), thread.Run{Thread: thread.ID(rune('a' + i)), ID: "r"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(allPostgresVersions(), versionsOfPostgres(t, pools[0])); diff != "" {
		t.Error(diff)
	}
}

// TestALongMigrationIsWaitedFor has one node migrate for longer than a statement may wait for a lock.
func TestALongMigrationIsWaitedFor(t *testing.T) {
	url := pgtest.Database(t)
	first := openPool(t, url, postgres.Options{})
	tx, err := first.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock($1)`, int64(history.MigrationLock)); err != nil {
		t.Fatal(err)
	}
	second := openPool(t, url, postgres.Options{LockTimeout: 20 * time.Millisecond, StatementTimeout: 20 * time.Millisecond})
	opened := make(chan error, 1)
	go func() {
		_, err := history.NewPostgres(context.Background(), second, history.Options{Patience: 20 * time.Millisecond})
		opened <- err
	}()
	const waits = `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
		AND clock_timestamp() - query_start > interval '200 milliseconds'`
	for waiting := false; !waiting; {
		if err := first.QueryRowContext(t.Context(), waits).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-opened:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("after the wait: %v", err)
	}
}
