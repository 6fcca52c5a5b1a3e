package logtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var forgetChecks = []check{
	{"all entries are gone at once", func(t *testing.T, log Log) {
		for run := uint64(1); run <= 3; run++ {
			a := begin(t, log, "t", run)
			a.add(1500)
			a.leave()
		}
		other := begin(t, log, "u", 1)
		other.add(2)
		drop(t, log, 2, time.Hour)
		forget(t, log)
		holds(t, log, "t", nil)
		holds(t, log, "u", other.wrote)
	}},
	{"its tails end, those of other threads do not", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2)
		f, g := follow(t, log, "t", thread.Cursor{}), follow(t, log, "t", thread.Cursor{Run: 1, Seq: 2})
		f.reach(2)
		other := follow(t, log, "u", thread.Cursor{})
		a.add(1)
		g.reach(1)
		forget(t, log)
		for _, tail := range []*follower{f, g} {
			if err := tail.result(); !errors.Is(err, thread.ErrDeleted) {
				t.Fatalf("Tail returned %v, want %v", err, thread.ErrDeleted)
			}
		}
		b := begin(t, log, "u", 1)
		b.add(1)
		sameEntries(t, other.await(1), b.wrote)
	}},
	{"it always ends a tail whose function was called", forgetInTheBeginning},
	{"a thread without entries is forgotten without error", func(t *testing.T, log Log) {
		forget(t, log)
		forget(t, log)
	}},
	{"the lease stays with its holder until released", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(1)
		forget(t, log)
		if held, err := log.Holder(t.Context(), "t"); err != nil || held.Token != a.lease.Token {
			t.Fatalf("Holder = %+v, %v; want token %d", held, err, a.lease.Token)
		}
		if err := log.Release(t.Context(), a.lease); err != nil {
			t.Fatal(err)
		}
		a.refused(thread.ErrLeaseLost, event(1, 1))
		holds(t, log, "t", nil)
	}},
	{"a former holder is refused", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2)
		a.leave()
		b := begin(t, log, "t", 2)
		b.add(1)
		f := follow(t, log, "t", thread.Cursor{Run: 2})
		f.reach(1)
		if err := log.Forget(t.Context(), a.lease); !errors.Is(err, thread.ErrLeaseLost) {
			t.Fatalf("Forget: got %v, want %v", err, thread.ErrLeaseLost)
		}
		b.add(1)
		sameEntries(t, f.await(2), b.wrote)
		b.leave()
		if err := log.Forget(t.Context(), b.lease); !errors.Is(err, thread.ErrLeaseLost) {
			t.Fatalf("Forget under a released lease: got %v, want %v", err, thread.ErrLeaseLost)
		}
		holds(t, log, "t", append(a.wrote, b.wrote...))
	}},
	{"the thread can be used again", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2500)
		a.leave()
		forget(t, log)
		b := begin(t, log, "t", 2)
		b.add(2)
		f := follow(t, log, "t", thread.Cursor{})
		b.add(1)
		sameEntries(t, f.await(3), b.wrote)
		holds(t, log, "t", b.wrote)
		if b.lease.Token <= a.lease.Token {
			t.Fatalf("token %d after token %d", b.lease.Token, a.lease.Token)
		}
	}},
}

// forgetInTheBeginning forgets a thread, with entries or without, just when a tail of it has made its first call: in
// every other round before that call returns, otherwise at the same time.
func forgetInTheBeginning(t *testing.T, log Log) {
	for round := range uint64(200) {
		if round%4 < 2 {
			a := begin(t, log, "t", round+1)
			a.add(2)
			a.leave()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		called, gate, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- log.Tail(ctx, "t", thread.Cursor{}, func(batch []thread.Entry) error {
				if len(batch) == 0 {
					close(called)
					<-gate
				}
				return nil
			})
		}()
		awaitClosed(t, "the tail's function is called", called)
		if round%2 == 0 {
			close(gate)
		}
		forget(t, log)
		if round%2 == 1 {
			close(gate)
		}
		stop := time.AfterFunc(patience, func() { cancel(errEnough) })
		err := <-done
		stop.Stop()
		cancel(nil)
		if !errors.Is(err, thread.ErrDeleted) {
			t.Fatalf("round %d: Tail returned %v, want %v", round, err, thread.ErrDeleted)
		}
	}
}

// forget forgets thread "t".
func forget(t *testing.T, log Log) {
	t.Helper()
	if err := Wipe(t.Context(), log, "t"); err != nil {
		t.Fatalf("Forget: %v", err)
	}
}

// Wipe forgets a thread as whoever holds its lease does, or takes the lease for that.
func Wipe(ctx context.Context, log interface {
	Retention
	Leases
	Owners
}, id thread.ID) error {
	if held, err := log.Holder(ctx, id); err == nil {
		return log.Forget(ctx, held)
	}
	lease, err := log.Acquire(ctx, thread.Claim{Thread: id, Owner: "who wipes"}, time.Hour)
	if err != nil {
		return err
	}
	return errors.Join(log.Forget(ctx, lease), log.Release(ctx, lease))
}
