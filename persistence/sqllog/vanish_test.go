package sqllog

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// settledRun are so many entries that a run has them in log_entries at once.
func settledRun(run uint64) []thread.Entry {
	var entries []thread.Entry
	for seq := uint64(1); seq <= settleEntries; seq++ {
		entries = append(entries, entry(run, seq))
	}
	return entries
}

// A run leaves the index before its rows go: readers would take them for lost.
func TestRowsGoAfterTheirRun(t *testing.T) {
	t.Run("what a group drops it does not delete", func(t *testing.T) {
		var ahead atomic.Int64
		l := openWith(t, Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		if err := l.Append(t.Context(), leaseOf(t, l, "a"), settledRun(1)); err != nil {
			t.Fatal(err)
		}
		if err := l.Drop(t.Context(), "a", 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		inCommitter(t, l, func() {
			ahead.Store(int64(2 * time.Hour))
			for _, want := range []int{settleEntries, 0} {
				l.clean()
				var n int
				if err := l.writer.QueryRow("SELECT count(*) FROM log_entries").Scan(&n); err != nil || n != want {
					t.Errorf("%d rows, %v; want %d", n, err, want)
				}
				if runs := len(l.index.content("a").runs); runs != 0 {
					t.Errorf("%d runs, want none", runs)
				}
			}
		})
	})
	t.Run("a reader that comes before the index waits for it", func(t *testing.T) {
		l := open(t)
		if err := l.Append(t.Context(), leaseOf(t, l, "a"), settledRun(1)); err != nil {
			t.Fatal(err)
		}
		read := make(chan error, 1)
		err := l.do(t.Context(), &request{op: func(g *group) error {
			if _, err := l.writer.Exec("DELETE FROM log_entries"); err != nil {
				return err
			}
			go func() {
				entries, err := l.Read(context.Background(), "a", thread.Cursor{}, 100)
				if len(entries) != 0 {
					err = errors.Join(err, errors.New("there were entries"))
				}
				read <- err
			}()
			for len(l.queue) == 0 && len(read) == 0 {
				runtime.Gosched() // until the reader waits, or does not
			}
			g.remove("a", 0)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatalf("Read: %v", err)
		}
	})
	t.Run("readers find a run whole or not at all", readersAgainstDrops)
}

// readersAgainstDrops reads a thread again and again while its runs come and go.
func readersAgainstDrops(t *testing.T) {
	const rounds = 300
	l := open(t)
	lease := leaseOf(t, l, "a")
	stop, read := make(chan struct{}), make(chan error, 2)
	for range cap(read) {
		go func() {
			for {
				select {
				case <-stop:
					read <- nil
					return
				default:
				}
				entries, err := l.Read(context.Background(), "a", thread.Cursor{}, settleEntries)
				if err == nil && len(entries)%settleEntries != 0 {
					err = errors.New("a part of a run")
				}
				if err != nil {
					read <- err
					return
				}
			}
		}()
	}
	for run := uint64(1); run <= rounds && len(read) == 0; run++ {
		err := l.Append(t.Context(), lease, settledRun(run))
		if err == nil {
			err = l.Drop(t.Context(), "a", run, time.Duration(run%2)) // at once, or by the janitor
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	for range cap(read) {
		if err := <-read; err != nil {
			t.Errorf("Read: %v", err)
		}
	}
}
