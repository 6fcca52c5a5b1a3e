package redislog_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// What one node does to a thread reaches the holder of its lease on another.
func TestHolderIsWoken(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	woken := func(lease thread.Lease) {
		t.Helper()
		select {
		case <-lease.Asked:
		case <-time.After(time.Second):
			t.Fatal("the holder was not woken")
		}
	}
	lease, err := home.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: "r", Owner: "node-a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.AskStop(t.Context(), "t", thread.StopRequest{RunID: "r", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	woken(lease)
	if lease, err = home.Renew(t.Context(), lease, 0); err != nil || lease.Stop == nil || lease.Stop.By != "ann" {
		t.Fatalf("Renew = %+v, %v", lease, err)
	}
	if _, err := away.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: "r", Owner: "node-b"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	woken(lease)
	if _, err := home.Renew(t.Context(), lease, time.Hour); !errors.Is(err, thread.ErrLeaseLost) {
		t.Fatalf("Renew: got %v, want %v", err, thread.ErrLeaseLost)
	}
}

// Somebody may ask a holder to stop before the holder knows that it is one.
func TestHolderIsWokenFromTheBeginning(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	for i := range 500 {
		id := thread.ID(fmt.Sprint("t", i))
		asked := make(chan error, 1)
		go func() {
			for {
				_, err := away.AskStop(t.Context(), id, thread.StopRequest{By: "ann"})
				if !errors.Is(err, thread.ErrNotFound) {
					asked <- err
					return
				}
			}
		}()
		lease, err := home.Acquire(t.Context(), thread.Claim{Thread: id, RunID: "r", Owner: "node-a"}, time.Hour)
		if err := errors.Join(err, <-asked); err != nil {
			t.Fatal(err)
		}
		select {
		case <-lease.Asked:
		case <-time.After(5 * time.Second):
			t.Fatalf("the holder of thread %d was not woken", i)
		}
	}
}

// A run that goes from one node to another, back and forth, is seen once and in order on both.
func TestRunMoves(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	nodes := []*redislog.Log{open(t, addr, prefix), open(t, addr, prefix)}
	viewers := []*viewer{view(t, nodes[0], "t"), view(t, nodes[1], "t")}
	var all []thread.Entry
	for round := range 40 {
		n := nodes[round%2]
		lease, err := n.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: runID(1), Owner: "node"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + round%7 {
			e := event(1, uint64(len(all)+1))
			if err := n.Append(t.Context(), lease, []thread.Entry{e}); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		if round%3 == 0 {
			_, err = n.Renew(t.Context(), lease, 0) // it expires, and is taken over
		} else {
			err = n.Release(t.Context(), lease)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range viewers {
		v.has(all)
	}
}

// Another node learns when the holder of a lease was last heard of.
func TestHolderIsSeen(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	home, away := open(t, addr, prefix), open(t, addr, prefix)
	seen := func() time.Time {
		t.Helper()
		lease, err := away.Holder(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		return lease.Seen
	}
	lease, err := home.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: runID(1), Owner: "node-a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !seen().IsZero() {
		t.Errorf("before its first entry it was seen at %s", seen())
	}
	for seq := uint64(1); seq <= 2; seq++ {
		before := time.Now()
		if err := home.Append(t.Context(), lease, []thread.Entry{event(1, seq)}); err != nil {
			t.Fatal(err)
		}
		if _, err := away.AskStop(t.Context(), "t", thread.StopRequest{}); err != nil { // must not be taken for it
			t.Fatal(err)
		}
		if at := seen(); at.Before(before.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("its entry of %s was seen at %s", before, at)
		}
	}
}
