package history_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/thread"
)

var pgn atomic.Int32

type pgBreak struct {
	*history.History
	db *gorm.DB
}

func (b pgBreak) Damage(ctx context.Context, id thread.ID, run uint64) error {
	return b.db.WithContext(ctx).Exec(`UPDATE agent_runs SET events = substr(events, 1, length(events) - 7) WHERE thread_id = ? AND number = ?`, string(id), run).Error
}
func (b pgBreak) Remove(ctx context.Context, id thread.ID, run uint64) error {
	return b.db.WithContext(ctx).Exec(`DELETE FROM agent_runs WHERE thread_id = ? AND number = ?`, string(id), run).Error
}

func pgOpen(t *testing.T, name string) *gorm.DB {
	db, err := gorm.Open(postgres.Open("host=/tmp/histpg user=postgres dbname="+name), &gorm.Config{TranslateError: true})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := db.DB()
	s.SetMaxOpenConns(10)
	t.Cleanup(func() { s.Close() })
	return db
}

func pgNew(t *testing.T) string {
	root := pgOpen(t, "postgres")
	name := fmt.Sprintf("t%d", pgn.Add(1))
	root.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
	if err := root.Exec("CREATE DATABASE " + name).Error; err != nil {
		t.Fatal(err)
	}
	s, _ := root.DB()
	s.Close()
	return name
}

func TestPG(t *testing.T) {
	historytest.Run(t, func(t *testing.T) historytest.History {
		db := pgOpen(t, pgNew(t))
		h, err := history.New(db, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return pgBreak{h, db}
	})
}

func TestPGMigrateAtOnce(t *testing.T) {
	name := pgNew(t)
	var wg sync.WaitGroup
	for range 8 {
		db := pgOpen(t, name)
		wg.Go(func() {
			if _, err := history.New(db, history.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
