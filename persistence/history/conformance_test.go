package history_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	"github.com/libtnb/sqlite"
	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestConformance(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		return reopen(t, filepath.Join(t.TempDir(), "threadcast.db"), openPools)
	})
}

// TestConformanceOfOneHandle is for those who bring a GORM database of their own.
func TestConformanceOfOneHandle(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		return reopen(t, filepath.Join(t.TempDir(), "threadcast.db"), openHandle)
	})
}

// opener opens the history in a file, and returns what writes to it and what closes it.
type opener func(t *testing.T, path string) (*history.History, *sql.DB, func() error)

// openPools opens a file as the program does.
func openPools(t *testing.T, path string) (*history.History, *sql.DB, func() error) {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), path, sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h, file.Writer(), file.Close
}

func openHandle(t *testing.T, path string) (*history.History, *sql.DB, func() error) {
	t.Helper()
	conn := connect(t, path, 1)
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.New(db, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h, conn, conn.Close
}

// reopen opens a file's history so that it can be opened again.
func reopen(t *testing.T, path string, open opener) breakable {
	t.Helper()
	h, db, end := open(t, path)
	end = sync.OnceValue(end)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return breakable{History: h, db: db, again: func() (historytest.History, error) {
		if err := end(); err != nil {
			return nil, err
		}
		return reopen(t, path, open), nil
	}}
}

// breakable is a history whose rows can be spoilt behind its back.
type breakable struct {
	*history.History
	db    *sql.DB
	again func() (historytest.History, error)
}

func (b breakable) Reopen(context.Context) (historytest.History, error) { return b.again() }

func (b breakable) Damage(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.db.ExecContext(ctx,
		`UPDATE agent_runs SET events = substr(events, 1, length(events) - 7) WHERE thread_id = ? AND number = ?`, string(id), run)
	return err
}

func (b breakable) Remove(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.db.ExecContext(ctx, `DELETE FROM agent_runs WHERE thread_id = ? AND number = ?`, string(id), run)
	return err
}
