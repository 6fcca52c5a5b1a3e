package history

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
)

// meet has two transactions do something to each other, the first time that both are tried.
type meet struct {
	*History
	tries atomic.Int32
}

func newMeet(t *testing.T) *meet {
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
	for _, id := range []Text{"a", "b"} {
		if err := h.writer.Create(&Thread{ID: id}).Error; err != nil {
			t.Fatal(err)
		}
	}
	return &meet{History: h}
}

// run runs both transactions: each does first, then waits until the other has, and does then.
func (m *meet) run(t *testing.T, first, then func(tx *gorm.DB, i int) error) {
	t.Helper()
	var both, all sync.WaitGroup
	both.Add(2)
	for i := range 2 {
		all.Go(func() {
			once := sync.OnceFunc(both.Done)
			err := m.write(context.Background(), func(tx *gorm.DB) error {
				m.tries.Add(1)
				if err := first(tx, i); err != nil {
					once()
					return err
				}
				once()
				both.Wait()
				return then(tx, i)
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if got := m.tries.Load(); got != 3 {
		t.Errorf("%d tries, want one more than the two transactions", got)
	}
}

func addRun(tx *gorm.DB, id string) error {
	return tx.Model(&Thread{ID: Text(id)}).Update("last_run", gorm.Expr("last_run + 1")).Error
}

func (m *meet) want(t *testing.T, runs map[string]uint64) {
	t.Helper()
	for id, want := range runs {
		var row Thread
		if err := m.read(t.Context()).Where("id = ?", Text(id)).Take(&row).Error; err != nil {
			t.Fatal(err)
		}
		if row.LastRun != want {
			t.Errorf("%s has %d runs, want %d", id, row.LastRun, want)
		}
	}
}

func TestADeadlockIsTriedAgain(t *testing.T) {
	m := newMeet(t)
	ids := []string{"a", "b"}
	m.run(t,
		func(tx *gorm.DB, i int) error { return addRun(tx, ids[i]) },
		func(tx *gorm.DB, i int) error { return addRun(tx, ids[1-i]) })
	m.want(t, map[string]uint64{"a": 2, "b": 2})
}

func TestASerializationFailureIsTriedAgain(t *testing.T) {
	m := newMeet(t)
	m.run(t,
		func(tx *gorm.DB, _ int) error {
			if err := tx.Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").Error; err != nil {
				return err
			}
			return tx.Where("id = 'a'").Take(&Thread{}).Error
		},
		func(tx *gorm.DB, _ int) error { return addRun(tx, "a") })
	m.want(t, map[string]uint64{"a": 2})
}

// TestDeadlinesEnd keeps statements from leaving a timer behind.
func TestDeadlinesEnd(t *testing.T) {
	m := newMeet(t)
	var ended []context.Context
	err := m.writer.Callback().Query().After("threadcast:end").Register("test", func(tx *gorm.DB) {
		if _, bounded := tx.Statement.Context.Deadline(); !bounded {
			t.Error("a statement has no deadline")
		}
		ended = append(ended, tx.Statement.Context)
	})
	if err != nil {
		t.Fatal(err)
	}
	m.want(t, map[string]uint64{"a": 0, "b": 0})
	for _, ctx := range ended {
		if ctx.Err() != context.Canceled {
			t.Errorf("a statement that is over has a deadline that is not: %v", ctx.Err())
		}
	}
	if len(ended) != 2 {
		t.Errorf("%d statements, want 2", len(ended))
	}
}
