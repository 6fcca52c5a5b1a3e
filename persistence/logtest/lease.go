package logtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var leaseChecks = []check{
	{"acquire gives what was claimed", func(t *testing.T, log Log) {
		before := time.Now().Add(-time.Second)
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		if lease.Claim != claim("t", 1, "node-a") || lease.Token == 0 || lease.Stop != nil {
			t.Fatalf("the lease is %+v", lease)
		}
		if lease.Acquired.Before(before) || lease.Deadline.Sub(lease.Acquired) != time.Hour {
			t.Fatalf("acquired at %v with deadline %v; want now and an hour later", lease.Acquired, lease.Deadline)
		}
	}},
	{"a held thread refuses everybody and says who holds it", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		for _, c := range []thread.Claim{claim("t", 2, "node-b"), claim("t", 1, "node-a")} {
			_, err := log.Acquire(t.Context(), c, time.Hour)
			var running *thread.RunningError
			if !errors.As(err, &running) || !errors.Is(err, thread.ErrRunning) {
				t.Fatalf("Acquire: got %v, want a RunningError", err)
			}
			if running.RunID != lease.RunID || running.Owner != "node-a" || !running.Since.Equal(lease.Acquired) {
				t.Fatalf("the error says %+v, want what is in %+v", running, lease)
			}
		}
	}},
	{"threads are leased apart", func(t *testing.T, log Log) {
		a, b := acquire(t, log, claim("t", 1, "node-a"), time.Hour), acquire(t, log, claim("u", 1, "node-a"), time.Hour)
		if b.Token <= a.Token {
			t.Fatalf("tokens %d and then %d", a.Token, b.Token)
		}
	}},
	{"released is free, and the next token is greater", func(t *testing.T, log Log) {
		var token uint64
		for run := range uint64(10) {
			lease := acquire(t, log, claim("t", run, "node-a"), time.Hour)
			if lease.Token <= token {
				t.Fatalf("token %d after token %d", lease.Token, token)
			}
			token = lease.Token
			if err := log.Release(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"an expired lease is taken over with a greater token", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), time.Millisecond)
		awaitExpiry(t, log, "t")
		b := acquire(t, log, claim("t", 1, "node-b"), time.Hour)
		if b.Token <= a.Token || b.Owner != "node-b" {
			t.Fatalf("took %+v over as %+v", a, b)
		}
		wantLost(t, log, a)
		if _, err := log.Renew(t.Context(), b, time.Hour); err != nil {
			t.Fatalf("Renew by the new holder: %v", err)
		}
	}},
	{"a takeover wakes the former holder", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), time.Millisecond)
		awaitExpiry(t, log, "t")
		acquire(t, log, claim("t", 1, "node-b"), time.Hour)
		awaitAsked(t, a)
	}},
	{"renew prolongs", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), time.Minute)
		b, err := log.Renew(t.Context(), a, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if b.Claim != a.Claim || b.Token != a.Token || !b.Acquired.Equal(a.Acquired) || b.Asked == nil {
			t.Fatalf("renewed %+v to %+v", a, b)
		}
		if b.Deadline.Sub(a.Deadline) < 58*time.Minute {
			t.Fatalf("the deadline moved from %v to %v", a.Deadline, b.Deadline)
		}
		if held, err := log.Holder(t.Context(), "t"); err != nil || !held.Deadline.Equal(b.Deadline) {
			t.Fatalf("Holder = %+v, %v; want the deadline %v", held, err, b.Deadline)
		}
	}},
	{"an expired lease that nobody took is renewed", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), time.Millisecond)
		awaitExpiry(t, log, "t")
		if _, err := log.Renew(t.Context(), a, time.Hour); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		if _, err := log.Acquire(t.Context(), claim("t", 1, "node-b"), time.Hour); !errors.Is(err, thread.ErrRunning) {
			t.Fatalf("Acquire after Renew: got %v, want %v", err, thread.ErrRunning)
		}
	}},
	{"a released lease cannot be renewed", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		if err := log.Release(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		wantLost(t, log, a)
	}},
	{"releasing twice, or what another holds, changes nothing", func(t *testing.T, log Log) {
		a := acquire(t, log, claim("t", 1, "node-a"), 0)
		b := acquire(t, log, claim("t", 1, "node-b"), time.Hour)
		for range 2 {
			if err := log.Release(t.Context(), a); err != nil {
				t.Fatalf("Release of a lost lease: %v", err)
			}
		}
		if held, err := log.Holder(t.Context(), "t"); err != nil || held.Token != b.Token {
			t.Fatalf("Holder = %+v, %v; want token %d", held, err, b.Token)
		}
	}},
	{"holder tells who, and not once it is over", func(t *testing.T, log Log) {
		wantNoHolder(t, log, "t")
		a := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		held, err := log.Holder(t.Context(), "t")
		if err != nil || held.Claim != a.Claim || held.Token != a.Token || !held.Deadline.Equal(a.Deadline) {
			t.Fatalf("Holder = %+v, %v; want %+v", held, err, a)
		}
		if err := log.Release(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		wantNoHolder(t, log, "t")
	}},
	{"a context that is done acquires nothing", func(t *testing.T, log Log) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		if _, err := log.Acquire(ctx, claim("t", 1, "node-a"), time.Hour); !errors.Is(err, errEnough) {
			t.Fatalf("Acquire: got %v, want the cause of its context", err)
		}
		wantNoHolder(t, log, "t")
	}},
}

func wantLost(t *testing.T, log Log, lease thread.Lease) {
	t.Helper()
	if _, err := log.Renew(t.Context(), lease, time.Hour); !errors.Is(err, thread.ErrLeaseLost) {
		t.Fatalf("Renew: got %v, want %v", err, thread.ErrLeaseLost)
	}
}

func wantNoHolder(t *testing.T, log Log, id thread.ID) {
	t.Helper()
	if held, err := log.Holder(t.Context(), id); !errors.Is(err, thread.ErrNotFound) {
		t.Fatalf("Holder = %+v, %v; want %v", held, err, thread.ErrNotFound)
	}
}
