package memlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// A log that serves for years must not remember every thread that it ever saw.
func TestTidy(t *testing.T) {
	log := New()
	defer log.Close()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, id := range []thread.ID{"a", "b", "c"} {
		lease, err := log.Acquire(t.Context(), thread.Claim{Thread: id, RunID: "r", Owner: "node"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		entry := thread.Entry{Run: 1, RunID: "r", Seq: 1, Kind: thread.KindEvent}
		if err := log.Append(t.Context(), lease, []thread.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.Release(t.Context(), lease), log.Drop(t.Context(), id, 1, 0)); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		if err := log.Tail(done, id, thread.Cursor{}, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		lease, err = log.Acquire(t.Context(), thread.Claim{Thread: id, RunID: "r", Owner: "node"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), lease, []thread.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		if err := log.Tail(t.Context(), id, thread.Cursor{}, func([]thread.Entry) error { return enough }); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if err := errors.Join(log.Forget(t.Context(), lease), log.Release(t.Context(), lease)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(log.threads); n != 0 {
		t.Fatalf("%d threads are remembered of which there is nothing", n)
	}
}
