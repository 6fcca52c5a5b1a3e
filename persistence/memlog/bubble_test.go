package memlog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// In a bubble time is fake: what the log does by time can be told to the nanosecond.
func bubble(t *testing.T, test func(t *testing.T, log *memlog.Log)) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		defer log.Close()
		test(t, log)
	})
}

func acquire(t *testing.T, log *memlog.Log, ttl time.Duration) thread.Lease {
	t.Helper()
	lease, err := log.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: "r", Owner: "node"}, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func write(t *testing.T, log *memlog.Log, lease thread.Lease) {
	t.Helper()
	if err := log.Append(t.Context(), lease, []thread.Entry{
		{Run: 1, RunID: "r", Seq: 1, Kind: thread.KindEvent, Data: []byte("{}")},
	}); err != nil {
		t.Fatal(err)
	}
}

// pass lets fake time pass.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}

func TestTime(t *testing.T) {
	t.Run("a lease is held until its deadline and no longer", func(t *testing.T) {
		bubble(t, func(t *testing.T, log *memlog.Log) {
			acquire(t, log, time.Minute)
			pass(t, time.Minute-1)
			if _, err := log.Holder(t.Context(), "t"); err != nil {
				t.Fatalf("just before the deadline: %v", err)
			}
			pass(t, 1)
			if _, err := log.Holder(t.Context(), "t"); !errors.Is(err, thread.ErrNotFound) {
				t.Fatalf("at the deadline: %v", err)
			}
		})
	})
	t.Run("a renewal counts from when it is made", func(t *testing.T) {
		bubble(t, func(t *testing.T, log *memlog.Log) {
			lease := acquire(t, log, time.Minute)
			pass(t, 50*time.Second)
			renewed, err := log.Renew(t.Context(), lease, time.Minute)
			if err != nil || renewed.Deadline.Sub(lease.Deadline) != 50*time.Second {
				t.Fatalf("renewed to %v, %v", renewed.Deadline, err)
			}
		})
	})
	t.Run("a run is kept as long as asked", func(t *testing.T) {
		bubble(t, func(t *testing.T, log *memlog.Log) {
			write(t, log, acquire(t, log, time.Hour))
			for _, keep := range []time.Duration{time.Hour, time.Minute} {
				if err := log.Drop(t.Context(), "t", 1, keep); err != nil {
					t.Fatal(err)
				}
			}
			pass(t, time.Minute-1)
			if head, _ := log.Head(t.Context(), "t"); head.Seq != 1 {
				t.Fatalf("just before: head %s", head)
			}
			pass(t, 1)
			if head, _ := log.Head(t.Context(), "t"); head.Seq != 0 {
				t.Fatalf("at the time: head %s", head)
			}
		})
	})
	t.Run("a run that is appended again is not dropped by the former's timer", func(t *testing.T) {
		bubble(t, func(t *testing.T, log *memlog.Log) {
			lease := acquire(t, log, time.Hour)
			write(t, log, lease)
			for _, keep := range []time.Duration{time.Minute, 0} {
				if err := log.Drop(t.Context(), "t", 1, keep); err != nil {
					t.Fatal(err)
				}
			}
			write(t, log, lease)
			pass(t, time.Hour)
			if head, _ := log.Head(t.Context(), "t"); head.Seq != 1 {
				t.Fatalf("head %s", head)
			}
		})
	})
	t.Run("a tail of a quiet thread gets nothing after its first call, however long", func(t *testing.T) {
		bubble(t, func(t *testing.T, log *memlog.Log) {
			ctx, cancel := context.WithCancel(t.Context())
			calls, done := 0, make(chan struct{})
			go func() {
				defer close(done)
				_ = log.Tail(ctx, "t", thread.Cursor{}, func([]thread.Entry) error { calls++; return nil })
			}()
			pass(t, 1000*time.Hour)
			cancel()
			<-done
			if calls != 1 {
				t.Fatalf("%d calls, want the first one alone", calls)
			}
		})
	})
}
