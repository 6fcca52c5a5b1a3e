package sqllog_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// clock is a clock that a test sets.
type clock struct{ now atomic.Int64 }

func (c *clock) pass(d time.Duration) { c.now.Add(int64(d)) }

func (c *clock) read() time.Time { return time.Unix(1_700_000_000, c.now.Load()) }

func setupClock(t *testing.T) (*store, *clock) {
	t.Helper()
	c := &clock{}
	file, err := sqlitefile.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := sqllog.New(t.Context(), file.Writer(), file.Reader(),
		sqllog.Options{Now: c.read, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{Log: log, file: file}
	t.Cleanup(func() { s.Close() })
	return s, c
}

func TestClock(t *testing.T) {
	t.Run("a lease is held until its deadline and no longer", func(t *testing.T) {
		log, clock := setupClock(t)
		acquire(t, log, "t")
		clock.pass(time.Hour - 1)
		if _, err := log.Holder(t.Context(), "t"); err != nil {
			t.Fatalf("just before the deadline: %v", err)
		}
		if got, err := log.Abandoned(t.Context(), 10); err != nil || len(got) != 0 {
			t.Fatalf("just before the deadline %v are abandoned, %v", got, err)
		}
		clock.pass(1)
		if _, err := log.Holder(t.Context(), "t"); !errors.Is(err, thread.ErrNotFound) {
			t.Fatalf("at the deadline: %v", err)
		}
		if got, err := log.Abandoned(t.Context(), 10); err != nil || len(got) != 1 {
			t.Fatalf("at the deadline %v are abandoned, %v", got, err)
		}
		acquire(t, log, "t")
	})
	t.Run("a renewal counts from when it is made", func(t *testing.T) {
		log, clock := setupClock(t)
		lease := acquire(t, log, "t")
		clock.pass(50 * time.Minute)
		renewed, err := log.Renew(t.Context(), lease, time.Hour)
		if err != nil || renewed.Deadline.Sub(lease.Deadline) != 50*time.Minute {
			t.Fatalf("renewed from %v to %v, %v", lease.Deadline, renewed.Deadline, err)
		}
	})
	t.Run("a run is kept as long as asked", func(t *testing.T) {
		log, clock := setupClock(t)
		write(t, log, acquire(t, log, "t"), batch(1, 50, 10))
		for _, keep := range []time.Duration{time.Minute, time.Hour} {
			if err := log.Drop(t.Context(), "t", 1, keep); err != nil {
				t.Fatal(err)
			}
		}
		for _, passed := range []time.Duration{time.Minute, 59*time.Minute - time.Millisecond} {
			clock.pass(passed)
			acquire(t, log, thread.ID("at "+passed.String())) // makes the log look at the clock
			wantHead(t, log, "t", 50)
		}
		clock.pass(time.Millisecond)
		acquire(t, log, "u")
		acquire(t, log, "v") // after the cleaning that follows
		wantHead(t, log, "t", 0)
	})
}
