package history_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/libtnb/sqlite"
	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestConformance(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		h, db := openHistory(t, history.Options{})
		return breakable{History: h, db: db}
	})
}

// TestConformanceOfOneHandle is for those who bring a GORM database of their own.
func TestConformanceOfOneHandle(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		conn := connect(t, filepath.Join(t.TempDir(), "threadcast.db"), 1)
		db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := history.New(db, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return breakable{History: h, db: conn}
	})
}

// breakable is a history whose rows can be spoilt behind its back.
type breakable struct {
	*history.History
	db *sql.DB
}

func (b breakable) Damage(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.db.ExecContext(ctx,
		`UPDATE agent_runs SET events = substr(events, 1, length(events) - 7) WHERE thread_id = ? AND number = ?`, string(id), run)
	return err
}

func (b breakable) Remove(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.db.ExecContext(ctx, `DELETE FROM agent_runs WHERE thread_id = ? AND number = ?`, string(id), run)
	return err
}
