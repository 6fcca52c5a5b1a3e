package logtest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var fenceChecks = []check{
	{"without a lease nothing is added", func(t *testing.T, log Log) {
		a := &author{t: t, log: log, lease: thread.Lease{Claim: claim("t", 1, "node-a")}}
		a.refused(thread.ErrLeaseLost, event(1, 1))
		a.lease.Token = 1
		a.refused(thread.ErrLeaseLost, event(1, 1))
		holds(t, log, "t", nil)
	}},
	{"after release nothing is added", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2)
		if err := log.Release(t.Context(), a.lease); err != nil {
			t.Fatal(err)
		}
		a.refused(thread.ErrLeaseLost, event(1, 3))
		holds(t, log, "t", a.wrote)
	}},
	{"the lease of one thread is none of another", func(t *testing.T, log Log) {
		a, b := begin(t, log, "t", 1), begin(t, log, "t2", 1)
		a.lease.Thread = "t2"
		a.refused(thread.ErrLeaseLost, event(1, 1))
		b.add(1)
		holds(t, log, "t2", b.wrote)
	}},
	{"an expired lease that nobody took still appends", func(t *testing.T, log Log) {
		a := &author{t: t, log: log, lease: acquire(t, log, claim("t", 1, "node-a"), time.Millisecond), run: 1}
		awaitExpiry(t, log, "t")
		a.add(2)
		holds(t, log, "t", a.wrote)
	}},
	{"after takeover the former holder is refused and the new one goes on", func(t *testing.T, log Log) {
		a := &author{t: t, log: log, lease: acquire(t, log, claim("t", 1, "node-a"), time.Millisecond), run: 1}
		a.add(3)
		awaitExpiry(t, log, "t")
		b := &author{t: t, log: log, lease: acquire(t, log, claim("t", 1, "node-b"), time.Hour), run: 1, seq: 3}
		a.refused(thread.ErrLeaseLost, event(1, 4))
		a.refused(thread.ErrLeaseLost, event(1, 3))
		b.add(2)
		b.end()
		holds(t, log, "t", append(a.wrote, b.wrote...))
	}},
	{"while it appends, a holder is fenced by the takeover", fenceUnderLoad},
}

// fenceUnderLoad takes a thread over while its holder appends, and expects that nothing of the former holder is
// accepted after that.
func fenceUnderLoad(t *testing.T, log Log) {
	for round := range uint64(20) {
		run := round + 1
		old := acquire(t, log, claim("t", run, "node-a"), time.Millisecond)
		started := make(chan struct{})
		result := make(chan error, 1)
		var accepted atomic.Uint64
		go func() {
			for seq := uint64(1); ; seq++ {
				if err := log.Append(t.Context(), old, events(run, seq, seq)); err != nil {
					result <- err
					return
				}
				accepted.Store(seq)
				if seq == 5 {
					close(started)
				}
			}
		}()
		<-started
		awaitExpiry(t, log, "t")
		lease := acquire(t, log, claim("t", run, "node-b"), time.Hour)
		head, err := log.Head(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, thread.ErrLeaseLost) {
			t.Fatalf("round %d: the former holder got %v, want %v", round, err, thread.ErrLeaseLost)
		}
		if accepted.Load() > head.Seq {
			t.Fatalf("round %d: entry %d was accepted; at takeover the run had %d", round, accepted.Load(), head.Seq)
		}
		b := &author{t: t, log: log, lease: lease, run: run, seq: head.Seq}
		b.leave()
		if at, _ := log.Head(t.Context(), "t"); at != (thread.Cursor{Run: run, Seq: head.Seq + 1}) {
			t.Fatalf("round %d: the run ends at %s, want seq %d", round, at, head.Seq+1)
		}
	}
}

// awaitExpiry waits until nobody holds the thread.
func awaitExpiry(t *testing.T, log Log, id thread.ID) {
	t.Helper()
	eventually(t, "the lease expires", func() bool {
		_, err := log.Holder(t.Context(), id)
		return errors.Is(err, thread.ErrNotFound)
	})
}
