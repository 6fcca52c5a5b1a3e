package history_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// contended is a history that does not wait in SQLite, and another program's connection to its file.
func contended(t *testing.T) (*history.History, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "threadcast.db")
	writer, reader := openFile(t, path)
	h, err := history.NewSQLite(writer, reader, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, writer, `PRAGMA busy_timeout = 0`)
	return h, connect(t, path, 1)
}

func TestAWriterInTheWay(t *testing.T) {
	run := thread.Run{Thread: "t", ID: "r"}
	t.Run("is waited for", func(t *testing.T) {
		h, other := contended(t)
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var waits []time.Duration
		h.OnWait(func(d time.Duration) error {
			if waits = append(waits, d); len(waits) == 3 {
				return tx.Rollback()
			}
			return nil
		})
		started, err := h.StartRun(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if len(waits) != 3 || started.Number != 1 {
			t.Errorf("waited %v and got run %d, want three waits and run 1", waits, started.Number)
		}
		if waits[2] <= waits[0]/2 || waits[2] > 100*time.Millisecond {
			t.Errorf("waits are %v, want them to grow and to stay short", waits)
		}
	})
	t.Run("is not waited for without end", func(t *testing.T) {
		h, other := contended(t)
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		waits := 0
		h.OnWait(func(time.Duration) error { waits++; return nil })
		_, err = h.StartRun(t.Context(), run)
		if !errors.Is(err, thread.ErrUnavailable) {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
		if waits < 3 || waits > 20 {
			t.Errorf("waited %d times", waits)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.StartRun(t.Context(), run); err != nil {
			t.Errorf("start after the other is gone: %v", err)
		}
	})
	t.Run("is not waited for by a caller who left", func(t *testing.T) {
		h, other := contended(t)
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		waits := 0
		h.OnWait(func(time.Duration) error { waits++; return errors.New("left") })
		if _, err = h.StartRun(t.Context(), run); !errors.Is(err, thread.ErrUnavailable) {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
		if waits != 1 {
			t.Errorf("waited %d times, want once", waits)
		}
	})
	t.Run("does not keep readers out", func(t *testing.T) {
		h, other := contended(t)
		if _, err := h.StartRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := h.FindRun(t.Context(), "t", "r"); err != nil {
			t.Error(err)
		}
	})
}

func TestStorageTrouble(t *testing.T) {
	t.Run("a closed database is unavailable", func(t *testing.T) {
		writer, reader := openFile(t, filepath.Join(t.TempDir(), "threadcast.db"))
		h, err := history.NewSQLite(writer, reader, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(writer.Close(), reader.Close()); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		_, known := h.Known(ctx, "t", []string{"m"})
		_, start := h.StartRun(ctx, thread.Run{Thread: "t", ID: "r"})
		_, find := h.FindRun(ctx, "t", "r")
		_, next := h.NextRun(ctx, "t", 0)
		_, one := h.Thread(ctx, "t")
		_, open := h.Unfinished(ctx, "", 0, 1)
		_, runs := h.Runs(ctx, "t", 0, 1)
		_, _, list := h.Threads(ctx, history.ThreadsPage{})
		for doing, err := range map[string]error{
			"look up messages": known, "start run": start, "find run": find, "read the run": next, "look up thread": one,
			"look up unfinished": open, "list runs": runs, "list threads": list,
			"take run":      h.TakeRun(ctx, thread.Run{Thread: "t", ID: "r"}),
			"save run":      h.SaveRun(ctx, thread.Run{Thread: "t", ID: "r", End: thread.End{Outcome: thread.OutcomeLost}}),
			"delete thread": h.DeleteThread(ctx, historytest.Holding("t")),
		} {
			if !errors.Is(err, thread.ErrUnavailable) || !strings.HasPrefix(err.Error(), doing) {
				t.Errorf("%s: error is %v, want an ErrUnavailable that says so", doing, err)
			}
		}
	})
	t.Run("a file that is no database is damaged", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "threadcast.db")
		writeFile(t, path, strings.Repeat("this is not a database. ", 1000))
		writer, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		if _, err := history.NewSQLite(writer, writer, history.Options{}); !errors.Is(err, thread.ErrCorrupt) {
			t.Errorf("error is %v, want ErrCorrupt", err)
		}
	})
}

func TestNobodyLogsWhatIsReturned(t *testing.T) {
	var log strings.Builder
	h, _ := openHistory(t, history.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	log.Reset()
	if _, err := h.FindRun(t.Context(), "t", "r"); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	if _, err := h.StartRun(t.Context(), thread.Run{Thread: "t", ID: "secret"}); err != nil {
		t.Fatal(err)
	}
	if log.String() != "" {
		t.Errorf("the log says %q", log.String())
	}
}
