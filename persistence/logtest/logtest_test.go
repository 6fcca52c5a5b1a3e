package logtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errInjected = errors.New("injected")

func setup(t *testing.T) (*logtest.FaultyLog, thread.Lease) {
	t.Helper()
	log := logtest.Faulty(memlog.New())
	t.Cleanup(func() { log.Close() })
	lease, err := log.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: "r", Owner: "node"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return log, lease
}

func entry(seq uint64) []thread.Entry {
	return []thread.Entry{{Run: 1, RunID: "r", Seq: seq, Kind: thread.KindEvent, Data: []byte("{}")}}
}

func wantHead(t *testing.T, log *logtest.FaultyLog, seq uint64) {
	t.Helper()
	if head, err := log.Head(t.Context(), "t"); err != nil || head.Seq != seq {
		t.Fatalf("Head = %s, %v; want seq %d", head, err, seq)
	}
}

func TestFaultless(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Log {
		log := logtest.Faulty(memlog.New())
		t.Cleanup(func() { log.Close() })
		return log
	})
}

func TestFaulty(t *testing.T) {
	t.Run("the nth call fails and is not made", func(t *testing.T) {
		log, lease := setup(t)
		log.Inject(logtest.Append, 2, logtest.Fault{Err: errInjected})
		for i, want := range []error{nil, errInjected, nil} {
			if err := log.Append(t.Context(), lease, entry(min(uint64(i)+1, 2))); !errors.Is(err, want) {
				t.Fatalf("call %d: got %v, want %v", i+1, err, want)
			}
			wantHead(t, log, []uint64{1, 1, 2}[i])
		}
		if n := log.Calls(logtest.Append); n != 3 {
			t.Fatalf("%d calls, want 3", n)
		}
	})
	t.Run("a cut call is made and its reply lost", func(t *testing.T) {
		log, lease := setup(t)
		log.Inject(logtest.Append, 1, logtest.Fault{Cut: true})
		if err := log.Append(t.Context(), lease, entry(1)); !errors.Is(err, thread.ErrUnavailable) {
			t.Fatalf("got %v, want %v", err, thread.ErrUnavailable)
		}
		wantHead(t, log, 1)
		log.Inject(logtest.Acquire, 1, logtest.Fault{Cut: true, Err: errInjected})
		lease, err := log.Acquire(t.Context(), thread.Claim{Thread: "u", Owner: "node"}, time.Hour)
		if !errors.Is(err, errInjected) || lease.Token != 0 {
			t.Fatalf("Acquire = %+v, %v; want no lease and %v", lease, err, errInjected)
		}
		if _, err := log.Holder(t.Context(), "u"); err != nil {
			t.Fatalf("the lease was not taken: %v", err)
		}
	})
	t.Run("a call is held back until it may go on", func(t *testing.T) {
		log, lease := setup(t)
		gate, done := make(chan struct{}), make(chan error)
		log.Inject(logtest.Append, 1, logtest.Fault{Wait: gate})
		go func() { done <- log.Append(t.Context(), lease, entry(1)) }()
		wantHead(t, log, 0)
		close(gate)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantHead(t, log, 1)
	})
	t.Run("a call that is held back heeds its context", func(t *testing.T) {
		log, lease := setup(t)
		log.Inject(logtest.Append, 1, logtest.Fault{Wait: make(chan struct{})})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInjected)
		if err := log.Append(ctx, lease, entry(1)); !errors.Is(err, errInjected) {
			t.Fatalf("got %v, want the cause", err)
		}
	})
	t.Run("down, everything fails until it is up again", func(t *testing.T) {
		log, lease := setup(t)
		log.Down(errInjected)
		if err := log.Append(t.Context(), lease, entry(1)); !errors.Is(err, errInjected) {
			t.Fatalf("Append: %v", err)
		}
		if _, err := log.Head(t.Context(), "t"); !errors.Is(err, errInjected) {
			t.Fatalf("Head: %v", err)
		}
		log.Up()
		wantHead(t, log, 0)
	})
}
