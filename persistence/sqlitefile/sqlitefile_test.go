package sqlitefile_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *sqlitefile.File {
	t.Helper()
	f, err := sqlitefile.Open(t.Context(), path, sqlitefile.Options{})
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func query(t *testing.T, db *sql.DB, statement string) string {
	t.Helper()
	var got string
	if err := db.QueryRowContext(t.Context(), statement).Scan(&got); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return got
}

// filled makes a closed database with some hundred pages and returns its path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "filled.db")
	f := open(t, path)
	fill(t, f.Writer())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	exec(t, db, "CREATE TABLE a (n INTEGER PRIMARY KEY, text TEXT)",
		`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 2000)
		 INSERT INTO a SELECT n, hex(randomblob(100)) FROM c`)
}

func TestOpen(t *testing.T) {
	t.Run("a new file is made for its owner alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.db")
		f := open(t, path)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
		}
		if !filepath.IsAbs(f.Path()) {
			t.Fatalf("Path = %s, want an absolute one", f.Path())
		}
	})
	t.Run("both handles are set up as documented", func(t *testing.T) {
		f := open(t, filepath.Join(t.TempDir(), "new.db"))
		for pragma, want := range map[string][2]string{
			"journal_mode": {"wal", "wal"}, "synchronous": {"1", "2"}, "foreign_keys": {"1", "1"},
			"busy_timeout": {"5000", "5000"}, "query_only": {"0", "1"},
		} {
			for i, db := range []*sql.DB{f.Writer(), f.Reader()} {
				if got := query(t, db, "PRAGMA "+pragma); got != want[i] {
					t.Errorf("%s of %s is %s, want %s", pragma, []string{"writer", "reader"}[i], got, want[i])
				}
			}
		}
		if n := f.Writer().Stats().MaxOpenConnections; n != 1 {
			t.Errorf("the writer may open %d connections, want 1", n)
		}
		if n := f.Reader().Stats().MaxOpenConnections; n != 4 {
			t.Errorf("the reader may open %d connections, want 4", n)
		}
	})
	t.Run("the reader sees what is committed and cannot write", func(t *testing.T) {
		f := open(t, filepath.Join(t.TempDir(), "new.db"))
		exec(t, f.Writer(), "CREATE TABLE a (n)", "INSERT INTO a VALUES (7)")
		if got := query(t, f.Reader(), "SELECT n FROM a"); got != "7" {
			t.Fatalf("read %s, want 7", got)
		}
		if _, err := f.Reader().ExecContext(t.Context(), "INSERT INTO a VALUES (8)"); err == nil {
			t.Fatal("the reader wrote")
		}
	})
	t.Run("readers read while a transaction writes", func(t *testing.T) {
		f := open(t, filepath.Join(t.TempDir(), "new.db"))
		exec(t, f.Writer(), "CREATE TABLE a (n)")
		tx, err := f.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec("INSERT INTO a VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if got := query(t, f.Reader(), "SELECT count(*) FROM a"); got != "0" {
			t.Fatalf("read %s rows, want 0", got)
		}
	})
	t.Run("what was written is there when it is opened again", func(t *testing.T) {
		f := open(t, filled(t))
		if got := query(t, f.Reader(), "SELECT count(*) FROM a"); got != "2000" {
			t.Fatalf("read %s rows, want 2000", got)
		}
	})
	t.Run("an empty file is a new database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "empty.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		exec(t, open(t, path).Writer(), "CREATE TABLE a (n)")
	})
}

func TestOpenNames(t *testing.T) {
	for _, name := range []string{
		"with space.db", "per%20cent.db", "what?mode=memory.db", "hash#tag.db", "ünï日本.db", "a&b=c;d.db", "plus+.db", "no-extension",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			f := open(t, path)
			exec(t, f.Writer(), "CREATE TABLE a (n)")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Fatalf("the file is not where it was asked for: %v, %v", info, err)
			}
			query(t, open(t, path).Reader(), "SELECT count(*) FROM a")
		})
	}
	t.Run("a relative path", func(t *testing.T) {
		dir := t.TempDir()
		t.Chdir(dir)
		exec(t, open(t, "relative.db").Writer(), "CREATE TABLE a (n)")
		if _, err := os.Stat(filepath.Join(dir, "relative.db")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestClose(t *testing.T) {
	t.Run("everything is in the file, and nothing beside it but the lock", func(t *testing.T) {
		path := filled(t)
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != "filled.db filled.db.lock" {
			t.Fatalf("the directory holds %s", got)
		}
	})
	t.Run("twice is the same as once", func(t *testing.T) {
		f := open(t, filepath.Join(t.TempDir(), "new.db"))
		for range 2 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Writer().PingContext(t.Context()); err == nil {
			t.Fatal("the writer is still open")
		}
	})
	t.Run("a read that is not over keeps nothing from being written", func(t *testing.T) {
		path := filled(t)
		f := open(t, path)
		rows, err := f.Reader().QueryContext(t.Context(), "SELECT n FROM a")
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		exec(t, f.Writer(), "DELETE FROM a WHERE n > 10")
		rows.Close()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := query(t, open(t, path).Reader(), "SELECT count(*) FROM a"); got != "10" {
			t.Fatalf("%s rows, want 10", got)
		}
	})
}

// within fails the test if fn takes longer than d.
func within(t *testing.T, d time.Duration, fn func(ctx context.Context)) {
	t.Helper()
	started := time.Now()
	fn(t.Context())
	if took := time.Since(started); took > d {
		t.Fatalf("it took %v, want at most %v", took, d)
	}
}
