package history_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/thread"
)

// openPostgres opens a database as one node does, and returns its history, its pool and what closes that.
func openPostgres(t *testing.T, url string, opts history.Options) (*history.History, *sql.DB, func() error) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceValue(pool.Close)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	h, err := history.NewPostgres(t.Context(), pool, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h, pool, end
}

func TestConformanceOfPostgres(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		return reopenPostgres(t, pgtest.Database(t))
	})
}

// reopenPostgres opens a database's history so that it can be opened again.
func reopenPostgres(t *testing.T, url string) breakablePostgres {
	t.Helper()
	h, pool, end := openPostgres(t, url, history.Options{})
	return breakablePostgres{History: h, pool: pool, again: func() (historytest.History, error) {
		if err := end(); err != nil {
			return nil, err
		}
		return reopenPostgres(t, url), nil
	}}
}

// breakablePostgres is a history whose rows can be spoilt behind its back.
type breakablePostgres struct {
	*history.History
	pool  *sql.DB
	again func() (historytest.History, error)
}

func (b breakablePostgres) Reopen(context.Context) (historytest.History, error) { return b.again() }

func (b breakablePostgres) Damage(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.pool.ExecContext(ctx,
		`UPDATE agent_runs SET events = substr(events, 1, length(events) - 7) WHERE thread_id = $1 AND number = $2`, string(id), run)
	return err
}

func (b breakablePostgres) Remove(ctx context.Context, id thread.ID, run uint64) error {
	_, err := b.pool.ExecContext(ctx, `DELETE FROM agent_runs WHERE thread_id = $1 AND number = $2`, string(id), run)
	return err
}
