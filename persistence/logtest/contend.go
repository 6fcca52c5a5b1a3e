package logtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var contendChecks = []check{
	{"of two who want a free thread exactly one gets it", func(t *testing.T, log Log) {
		for round := range 100 {
			id := thread.ID(fmt.Sprintf("thread %d", round))
			contend(t, log, id, 2)
		}
	}},
	{"of many who want an expired lease exactly one gets it", func(t *testing.T, log Log) {
		var token uint64
		for range 25 {
			old := acquire(t, log, claim("t", 1, "node-z"), time.Millisecond)
			awaitExpiry(t, log, "t")
			won := contend(t, log, "t", 8)
			if won.Token <= old.Token || old.Token <= token {
				t.Fatalf("tokens %d, %d, %d", token, old.Token, won.Token)
			}
			token = won.Token
			if err := log.Release(t.Context(), won); err != nil {
				t.Fatal(err)
			}
		}
	}},
}

// contend lets n nodes acquire the thread at the same time and returns the one lease that was given.
func contend(t *testing.T, log Log, id thread.ID, n int) thread.Lease {
	t.Helper()
	start := make(chan struct{})
	leases, errs := make([]thread.Lease, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			leases[i], errs[i] = log.Acquire(t.Context(), claim(id, 1, fmt.Sprintf("node-%d", i)), time.Hour)
		})
	}
	close(start)
	group.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("both %s and %s hold thread %s", leases[winner].Owner, leases[i].Owner, id)
		case err == nil:
			winner = i
		case !errors.Is(err, thread.ErrRunning):
			t.Fatalf("Acquire: %v", err)
		}
	}
	if winner < 0 {
		t.Fatalf("nobody got thread %s", id)
	}
	if held, err := log.Holder(t.Context(), id); err != nil || held.Owner != leases[winner].Owner {
		t.Fatalf("Holder = %+v, %v; want %s", held, err, leases[winner].Owner)
	}
	return leases[winner]
}
