package sqlitefile_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
)

var errOther = errors.New("something else")

// busyErrors makes the errors of a lock that another holds, as SQLite makes them: by name.
func busyErrors(t *testing.T) map[string]error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "busy.db")
	handle := func() *sql.Conn {
		db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_busy_timeout=1")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(); db.Close() })
		return conn
	}
	a, b := handle(), handle()
	run := func(c *sql.Conn, statement string) error {
		_, err := c.ExecContext(t.Context(), statement)
		return err
	}
	must := func(c *sql.Conn, statement string) {
		t.Helper()
		if err := run(c, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	must(a, "CREATE TABLE a (n)")
	must(a, "BEGIN IMMEDIATE")
	busy := run(b, "BEGIN IMMEDIATE")
	must(a, "COMMIT")
	must(b, "BEGIN")
	if err := b.QueryRowContext(t.Context(), "SELECT count(*) FROM a").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	must(a, "INSERT INTO a VALUES (1)")
	snapshot := run(b, "INSERT INTO a VALUES (2)")
	must(b, "ROLLBACK")
	return map[string]error{"SQLITE_BUSY": busy, "SQLITE_BUSY_SNAPSHOT": snapshot}
}

func TestIsBusy(t *testing.T) {
	for name, err := range busyErrors(t) {
		t.Run(name, func(t *testing.T) {
			if err == nil || !sqlitefile.IsBusy(err) || !sqlitefile.IsBusy(fmt.Errorf("wrapped: %w", err)) {
				t.Fatalf("%v is not busy", err)
			}
			if sqlitefile.IsCorrupt(err) {
				t.Fatalf("%v is corrupt", err)
			}
		})
	}
	for _, err := range []error{nil, errOther, sql.ErrNoRows} {
		if sqlitefile.IsBusy(err) || sqlitefile.IsCorrupt(err) {
			t.Fatalf("%v is busy or corrupt", err)
		}
	}
}

func TestRetry(t *testing.T) {
	busy := busyErrors(t)["SQLITE_BUSY"]
	times := func(n int, last error) (func(context.Context) error, *int) {
		calls := 0
		return func(context.Context) error {
			if calls++; calls <= n {
				return fmt.Errorf("try %d: %w", calls, busy)
			}
			return last
		}, &calls
	}
	t.Run("until it succeeds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fn, calls := times(20, nil)
			if err := sqlitefile.Retry(t.Context(), fn); err != nil || *calls != 21 {
				t.Fatalf("%v after %d calls, want 21", err, *calls)
			}
		})
	})
	t.Run("not what is no matter of locks", func(t *testing.T) {
		fn, calls := times(0, errOther)
		if err := sqlitefile.Retry(t.Context(), fn); !errors.Is(err, errOther) || *calls != 1 {
			t.Fatalf("%v after %d calls, want one", err, *calls)
		}
	})
	t.Run("no longer than ten seconds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			fn, _ := times(1<<30, nil)
			err := sqlitefile.Retry(t.Context(), fn)
			if !errors.Is(err, thread.ErrUnavailable) || !sqlitefile.IsBusy(err) {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(started); took < 10*time.Second || took > 11*time.Second {
				t.Fatalf("it took %v", took)
			}
		})
	})
	t.Run("no longer than its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOther)
			defer cancel()
			fn, _ := times(1<<30, nil)
			if err := sqlitefile.Retry(ctx, fn); !errors.Is(err, errOther) {
				t.Fatalf("got %v, want the cause", err)
			}
		})
	})
}
