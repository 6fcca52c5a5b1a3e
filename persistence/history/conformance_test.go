package history_test

import (
	"context"
	"database/sql"
	"testing"

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
