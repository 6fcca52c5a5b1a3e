package sqllog_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// rows counts the rows of a table.
func rows(t *testing.T, log *store, table string) int {
	t.Helper()
	var n int
	if err := log.file.Reader().QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually waits until a table has at most so many rows.
func eventually(t *testing.T, log *store, table string, most int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for rows(t, log, table) > most {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s has %d rows, want at most %d", table, rows(t, log, table), most)
		}
	}
}

func TestSpace(t *testing.T) {
	t.Run("a dropped run leaves no rows", func(t *testing.T) {
		log := setup(t)
		write(t, log, acquire(t, log, "t"), batch(1, 7000, 20))
		write(t, log, acquire(t, log, "u"), batch(1, 40, 20))
		if err := log.Drop(t.Context(), "t", 1, 0); err != nil {
			t.Fatal(err)
		}
		eventually(t, log, "log_garbage", 0)
		if n := rows(t, log, "log_entries"); n != 40 {
			t.Fatalf("%d entries are left, want the 40 of the other run", n)
		}
		if n := rows(t, log, "log_runs"); n != 1 {
			t.Fatalf("%d runs are left, want 1", n)
		}
		wantHead(t, log, "u", 40)
	})
	t.Run("appends go on while a great run is deleted", func(t *testing.T) {
		log := setup(t)
		for first := uint64(1); first < 20000; first += 4000 {
			write(t, log, acquireOnce(t, log, "t"), batch(first, first+3999, 200))
		}
		lease := acquire(t, log, "u")
		if err := logtest.Wipe(t.Context(), log, "t"); err != nil {
			t.Fatal(err)
		}
		for seq := uint64(1); seq <= 20; seq++ {
			write(t, log, lease, batch(seq, seq, 20))
		}
		wantHead(t, log, "u", 20)
		eventually(t, log, "log_garbage", 0)
		eventually(t, log, "log_entries", 0)
	})
	t.Run("entries with much data are deleted as well", func(t *testing.T) {
		log := setup(t)
		write(t, log, acquire(t, log, "t"), batch(1, 12, 3<<20))
		if err := log.Drop(t.Context(), "t", 1, 0); err != nil {
			t.Fatal(err)
		}
		eventually(t, log, "log_garbage", 0)
		eventually(t, log, "log_entries", 0)
	})
}

// acquireOnce returns the lease of a thread, which it acquires if nobody did.
func acquireOnce(t *testing.T, log *store, id thread.ID) thread.Lease {
	t.Helper()
	if held, err := log.Holder(t.Context(), id); err == nil {
		return held
	}
	return acquire(t, log, id)
}

// Many runs that write little each keep their latest entries in one table, which must not grow for ever because of
// those that have stopped writing.
func TestRecentIsTrimmed(t *testing.T) {
	const quiet, busy, each, most = 30, 20, 1200, 16384
	dir := t.TempDir()
	log, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { log.Close() }()
	for i := range quiet {
		write(t, log, acquire(t, log, thread.ID(fmt.Sprint("quiet ", i))), batch(1, uint64(i), 20))
	}
	var group errgroup.Group
	for i := range busy {
		lease := acquire(t, log, thread.ID(fmt.Sprint("busy ", i)))
		group.Go(func() error {
			for seq := uint64(1); seq <= each; seq++ {
				if err := log.Append(t.Context(), lease, batch(seq, seq, 20)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, log, "log_recent", most)
	for range 2 {
		for i := range quiet {
			wantHead(t, log, thread.ID(fmt.Sprint("quiet ", i)), uint64(i))
		}
		for i := range busy {
			wantHead(t, log, thread.ID(fmt.Sprint("busy ", i)), each)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if log, err = openStore(dir); err != nil {
			t.Fatal(err)
		}
	}
}
