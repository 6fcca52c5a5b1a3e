package history_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/thread"
)

// schemaOf is the tables and indexes of a file, and the versions that were applied.
func schemaOf(t *testing.T, db *sql.DB) (objects []string, versions []int) {
	t.Helper()
	ask := func(query string, scan func(*sql.Rows) error) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	ask(`SELECT COALESCE(sql, name) FROM sqlite_master ORDER BY name`, func(rows *sql.Rows) error {
		var object string
		err := rows.Scan(&object)
		objects = append(objects, object)
		return err
	})
	ask(`SELECT version FROM schema_version ORDER BY version`, func(rows *sql.Rows) error {
		var version int
		err := rows.Scan(&version)
		versions = append(versions, version)
		return err
	})
	return objects, versions
}

func allVersions() []int {
	var all []int
	for v := range history.LatestSchema {
		all = append(all, v+1)
	}
	return all
}

func TestMigrationOfANewFile(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var log strings.Builder
	_, db := openHistory(t, history.Options{
		Now:    func() time.Time { return now },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	_, versions := schemaOf(t, db)
	if diff := cmp.Diff(allVersions(), versions); diff != "" {
		t.Error(diff)
	}
	var applied int64
	if err := db.QueryRowContext(t.Context(), `SELECT MIN(applied_at) FROM schema_version`).Scan(&applied); err != nil {
		t.Fatal(err)
	}
	if applied != now.UnixMilli() {
		t.Errorf("applied at %d, want %d", applied, now.UnixMilli())
	}
	if got := strings.Count(log.String(), "history schema migrated"); got != history.LatestSchema {
		t.Errorf("%d migrations are logged, want %d", got, history.LatestSchema)
	}
}

func TestMigrationOfAnOlderFile(t *testing.T) {
	_, fresh := openHistory(t, history.Options{})
	want, _ := schemaOf(t, fresh)
	for old := 1; old < history.LatestSchema; old++ {
		t.Run("from version "+string(rune('0'+old)), func(t *testing.T) {
			writer, reader := openFile(t, filepath.Join(t.TempDir(), "old.db"))
			if err := history.MigrateTo(t.Context(), writer, old); err != nil {
				t.Fatal(err)
			}
			exec(t, writer, `INSERT INTO threads (id, last_run, title, created_at, activity_at) VALUES ('t', 1, 'old', 1, 1)`)
			exec(t, writer, `INSERT INTO agent_runs (thread_id, run_id, number, token, created_at, version, status, input, events)
				VALUES ('t', 'r1', 1, 1, 1, 1, 'running', '{}', '')`)
			h, err := history.NewSQLite(writer, reader, history.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, versions := schemaOf(t, writer)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(allVersions(), versions); diff != "" {
				t.Error(diff)
			}
			run := thread.Run{Thread: "t", ID: "r1", Number: 1, Token: 1, End: thread.End{Outcome: thread.OutcomeLost}}
			run.Usage = []byte(`[{"inputTokens":1}]`)
			if err := h.SaveRun(t.Context(), run); err != nil {
				t.Errorf("save the old file's run: %v", err)
			}
			kept, err := h.NextRun(t.Context(), "t", 0)
			if err != nil {
				t.Fatal(err)
			}
			if kept.ID != "r1" || string(kept.Input) != "{}" || kept.Accepted.UnixMilli() != 1 || string(kept.Usage) != string(run.Usage) {
				t.Errorf("the old file's run is now %+v", kept)
			}
			next, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "r2"})
			if err != nil || next.Number != 2 {
				t.Errorf("the next run is %+v, %v", next, err)
			}
		})
	}
}

func TestOpeningAgainKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "threadcast.db")
	for i := range 3 {
		writer, reader := openFile(t, path)
		h, err := history.NewSQLite(writer, reader, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id := thread.RunID(string(rune('a' + i)))
		run, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if run.Number != uint64(i+1) {
			t.Errorf("run number is %d, want %d", run.Number, i+1)
		}
		run.End.Outcome = thread.OutcomeFinished
		if err := h.SaveRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignSchemasAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare []string
		says    string
	}{
		{"of a newer threadcast", []string{
			`CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)`,
			`INSERT INTO schema_version VALUES (1, 1), (4711, 1)`,
			`CREATE TABLE threads (id TEXT)`,
		}, "4711"},
		{"of the TypeScript runner", []string{
			`CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)`,
			`INSERT INTO schema_version VALUES (1, 1)`,
			`CREATE TABLE agent_runs (id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, run_id TEXT NOT NULL UNIQUE)`,
		}, "another program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			writer, reader := openFile(t, filepath.Join(t.TempDir(), "foreign.db"))
			for _, statement := range c.prepare {
				exec(t, writer, statement)
			}
			before, _ := schemaOf(t, writer)
			_, err := history.NewSQLite(writer, reader, history.Options{})
			if !errors.Is(err, history.ErrSchema) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want ErrSchema that says %q", err, c.says)
			}
			after, _ := schemaOf(t, writer)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the file was changed: %s", diff)
			}
		})
	}
}

func TestAFailedStepLeavesNothing(t *testing.T) {
	writer, reader := openFile(t, filepath.Join(t.TempDir(), "clash.db"))
	exec(t, writer, `CREATE TABLE run_state (something INTEGER)`)
	before := []string{`CREATE TABLE run_state (something INTEGER)`}
	_, err := history.NewSQLite(writer, reader, history.Options{})
	if err == nil || !strings.Contains(err.Error(), "run_state") {
		t.Fatalf("error is %v, want one that names run_state", err)
	}
	rows, err := writer.QueryContext(t.Context(), `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var after []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		after = append(after, s)
	}
	if !slices.Equal(before, after) {
		t.Errorf("the file holds %v, want %v", after, before)
	}
}

func TestProcessesThatMigrateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "threadcast.db")
	type handles struct{ writer, reader *sql.DB }
	processes := make([]handles, 8)
	for i := range processes {
		processes[i].writer, processes[i].reader = openFile(t, path)
	}
	exec(t, processes[0].writer, `PRAGMA user_version = 1`) // the file is there and in WAL mode
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() {
			h, err := history.NewSQLite(p.writer, p.reader, history.Options{})
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
	_, versions := schemaOf(t, processes[0].writer)
	if diff := cmp.Diff(allVersions(), versions); diff != "" {
		t.Error(diff)
	}
}
