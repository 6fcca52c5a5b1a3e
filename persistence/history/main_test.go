package history_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(m)) }

// openFile opens an SQLite file as one of several programs would: one writer, several readers.
func openFile(t *testing.T, path string) (writer, reader *sql.DB) {
	t.Helper()
	return connect(t, path, 1), connect(t, path, 4)
}

func connect(t *testing.T, path string, connections int) *sql.DB {
	t.Helper()
	dsn := (&url.URL{Scheme: "file", Opaque: path, RawQuery: url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)"},
		"_txlock": {"immediate"},
	}.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(connections)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// openHistory returns a history in a new file of the program's, and its writer for what only a test does.
func openHistory(t *testing.T, opts history.Options) (*history.History, *sql.DB) {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), filepath.Join(t.TempDir(), "threadcast.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := history.NewSQLite(file.Writer(), file.Reader(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return h, file.Writer()
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
