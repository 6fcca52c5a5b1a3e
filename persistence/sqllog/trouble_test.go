package sqllog_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/persistence/thread"
)

var errEnough = errors.New("waited enough")

func acquire(t *testing.T, log *store, id thread.ID) thread.Lease {
	t.Helper()
	lease, err := log.Acquire(t.Context(), thread.Claim{Thread: id, RunID: "run", Owner: "node"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// batch makes the events first to last of run 1, with so many bytes each.
func batch(first, last uint64, size int) []thread.Entry {
	var made []thread.Entry
	for seq := first; seq <= last; seq++ {
		data := fmt.Appendf(nil, "%0*d", size, seq)
		made = append(made, thread.Entry{Run: 1, RunID: "run", Seq: seq, Kind: thread.KindEvent, Data: data})
	}
	return made
}

func write(t *testing.T, log *store, lease thread.Lease, entries []thread.Entry) {
	t.Helper()
	if err := log.Append(t.Context(), lease, entries); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func wantHead(t *testing.T, log *store, id thread.ID, seq uint64) {
	t.Helper()
	entries, err := log.Read(t.Context(), id, thread.Cursor{}, 1_000_000)
	if err != nil || uint64(len(entries)) != seq {
		t.Fatalf("thread %s has %d entries, %v; want %d", id, len(entries), err, seq)
	}
	for i, e := range entries {
		if e.Seq != uint64(i)+1 || strings.TrimLeft(string(e.Data), "0") != fmt.Sprint(e.Seq) {
			t.Fatalf("entry %d of thread %s is %d: %.40q", i, id, e.Seq, e.Data)
		}
	}
	if head, err := log.Head(t.Context(), id); err != nil || head.Seq != seq {
		t.Fatalf("Head = %s, %v; want seq %d", head, err, seq)
	}
}

// holdFile locks the file for writing, as another program may, until the function that it returns is called.
func holdFile(t *testing.T, log *store) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+log.file.Path()+"?_txlock=immediate&_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLockedByAnother(t *testing.T) {
	t.Run("an append waits until the file is free", func(t *testing.T) {
		log := setup(t)
		lease := acquire(t, log, "t")
		release := holdFile(t, log)
		done := make(chan error)
		go func() { done <- log.Append(context.Background(), lease, batch(1, 3, 10)) }()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errEnough)
		defer cancel()
		select {
		case err := <-done:
			t.Fatalf("Append returned %v while the file was locked", err)
		case <-ctx.Done():
		}
		wantHead(t, log, "t", 0)
		release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantHead(t, log, "t", 3)
	})
	t.Run("an append whose context is done does not wait", func(t *testing.T) {
		log := setup(t)
		lease := acquire(t, log, "t")
		release := holdFile(t, log)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errEnough)
		defer cancel()
		if err := log.Append(ctx, lease, batch(1, 3, 10)); !errors.Is(err, errEnough) {
			t.Fatalf("got %v, want the cause", err)
		}
		release()
		write(t, log, lease, batch(1, 4, 10)) // whether the first three are there or not
		wantHead(t, log, "t", 4)
	})
	t.Run("a lease whose renewal waits is not taken over meanwhile", func(t *testing.T) {
		log := setup(t)
		lease := acquire(t, log, "t")
		release := holdFile(t, log)
		go func() { _ = log.Append(context.Background(), lease, batch(1, 1, 10)) }()
		renewed := make(chan error)
		go func() {
			_, err := log.Renew(context.Background(), lease, time.Hour)
			renewed <- err
		}()
		release()
		if err := <-renewed; err != nil {
			t.Fatal(err)
		}
	})
}

func TestDiskFull(t *testing.T) {
	log := setup(t)
	lease, other := acquire(t, log, "t"), acquire(t, log, "u")
	write(t, log, lease, batch(1, 10, 100))
	var pages int
	if err := log.file.Writer().QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		t.Helper()
		if err := log.file.Writer().QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", n)).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages + 1)
	if err := log.Append(t.Context(), lease, batch(11, 200, 10000)); !errors.Is(err, thread.ErrUnavailable) {
		t.Fatalf("Append to a full disk: got %v, want %v", err, thread.ErrUnavailable)
	}
	wantHead(t, log, "t", 10)
	limit(1 << 30)
	write(t, log, lease, batch(11, 200, 10000))
	write(t, log, other, batch(1, 2, 10))
	wantHead(t, log, "t", 200)
	wantHead(t, log, "u", 2)
}

func TestHandleClosed(t *testing.T) {
	log, err := openStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, log, "t")
	write(t, log, lease, batch(1, 100, 10))
	if err := errors.Join(log.file.Writer().Close(), log.file.Reader().Close()); err != nil {
		t.Fatal(err)
	}
	defer log.file.Close() // which fails, and gives the lock back
	if err := log.Append(t.Context(), lease, batch(101, 101, 10)); !errors.Is(err, thread.ErrUnavailable) {
		t.Fatalf("Append: got %v, want %v", err, thread.ErrUnavailable)
	}
	if _, err := log.Read(t.Context(), "t", thread.Cursor{}, 10); !errors.Is(err, thread.ErrUnavailable) {
		t.Fatalf("Read: got %v, want %v", err, thread.ErrUnavailable)
	}
	if err := log.Log.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamage(t *testing.T) {
	exec := func(t *testing.T, log *store, text string) {
		t.Helper()
		if _, err := log.file.Writer().Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("an entry that is missing is not passed over", func(t *testing.T) {
		log := setup(t)
		lease := acquire(t, log, "t")
		write(t, log, lease, batch(1, 100, 10))
		exec(t, log, "DELETE FROM log_entries WHERE seq = 50")
		for _, after := range []uint64{0, 30, 49} {
			if got, err := log.Read(t.Context(), "t", thread.Cursor{Run: 1, Seq: after}, 1000); !errors.Is(err, thread.ErrCorrupt) {
				t.Fatalf("Read after %d = %d entries, %v; want %v", after, len(got), err, thread.ErrCorrupt)
			}
		}
		err := log.Tail(t.Context(), "t", thread.Cursor{}, func([]thread.Entry) error { return nil })
		if !errors.Is(err, thread.ErrCorrupt) {
			t.Fatalf("Tail: got %v, want %v", err, thread.ErrCorrupt)
		}
	})
	t.Run("one among the latest is noticed when the log is opened", func(t *testing.T) {
		dir := t.TempDir()
		log, err := openStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		write(t, log, acquire(t, log, "t"), batch(1, 10, 10))
		exec(t, log, "DELETE FROM log_recent WHERE seq = 5")
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := openStore(dir); !errors.Is(err, thread.ErrCorrupt) {
			t.Fatalf("opening it: got %v, want %v", err, thread.ErrCorrupt)
		}
	})
	t.Run("a page that is scribbled over is corrupt", func(t *testing.T) {
		dir := t.TempDir()
		log, err := openStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		write(t, log, acquire(t, log, "t"), batch(1, 2000, 500))
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "log.db")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(data) / 2; i < len(data)/2+40*4096; i++ {
			data[i] = 0xee
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := sqlitefile.Open(t.Context(), path, sqlitefile.Options{CheckLimit: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		bad, err := sqllog.New(t.Context(), file.Writer(), file.Reader(), sqllog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer bad.Close()
		if _, err := bad.Read(t.Context(), "t", thread.Cursor{}, 5000); !errors.Is(err, thread.ErrCorrupt) {
			t.Fatalf("Read: got %v, want %v", err, thread.ErrCorrupt)
		}
	})
}

func TestVersions(t *testing.T) {
	dir := t.TempDir()
	log, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.file.Writer().Exec("UPDATE log_meta SET value = 1000 WHERE name = 'version'"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = openStore(dir)
	if !errors.Is(err, thread.ErrUnavailable) || !strings.Contains(err.Error(), "later version of threadcast") {
		t.Fatalf("opening a later version: got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	log := setup(t)
	lease := acquire(t, log, "t")
	huge := batch(1, 1, 1)
	huge[0].Data = make([]byte, 257<<20)
	if err := log.Append(t.Context(), lease, huge); !errors.Is(err, thread.ErrTooLarge) {
		t.Fatalf("got %v, want %v", err, thread.ErrTooLarge)
	}
	write(t, log, lease, batch(1, 1, 1))
}
