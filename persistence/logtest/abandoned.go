package logtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var abandonedChecks = []check{
	{"nothing held or released is abandoned", func(t *testing.T, log Log) {
		wantAbandoned(t, log)
		acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		released := acquire(t, log, claim("u", 1, "node-a"), 0)
		if err := log.Release(t.Context(), released); err != nil {
			t.Fatal(err)
		}
		wantAbandoned(t, log)
	}},
	{"an expired lease is, with all that it said", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 4, "node-a"), time.Millisecond)
		awaitExpiry(t, log, "t")
		got, err := log.Abandoned(t.Context(), 10)
		if err != nil || len(got) != 1 {
			t.Fatalf("Abandoned = %+v, %v; want one lease", got, err)
		}
		if got[0].Claim != lease.Claim || got[0].Token != lease.Token {
			t.Fatalf("abandoned is %+v, want %+v", got[0], lease)
		}
	}},
	{"a wish to stop stays with it", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Renew(t.Context(), lease, 0); err != nil {
			t.Fatal(err)
		}
		got, err := log.Abandoned(t.Context(), 10)
		if err != nil || len(got) != 1 || got[0].Stop == nil || got[0].Stop.By != "ann" {
			t.Fatalf("Abandoned = %+v, %v; want one that ann wished to stop", got, err)
		}
	}},
	{"taken over or renewed it is not", func(t *testing.T, log Log) {
		acquire(t, log, claim("t", 1, "node-a"), 0)
		late := acquire(t, log, claim("u", 1, "node-a"), 0)
		wantAbandoned(t, log, "t", "u")
		acquire(t, log, claim("t", 1, "node-b"), time.Hour)
		wantAbandoned(t, log, "u")
		if _, err := log.Renew(t.Context(), late, time.Hour); err != nil {
			t.Fatal(err)
		}
		wantAbandoned(t, log)
	}},
	{"no more than the limit, the longest expired first", func(t *testing.T, log Log) {
		var all []thread.ID
		for i := range 7 {
			id := thread.ID(fmt.Sprintf("thread %d", i))
			acquire(t, log, claim(id, 1, "node-a"), -time.Duration(7-i)*time.Minute)
			all = append(all, id)
		}
		wantAbandoned(t, log, all...)
		for _, limit := range []int{0, 1, 3, 7} {
			got, err := log.Abandoned(t.Context(), limit)
			if err != nil || len(got) != limit {
				t.Fatalf("Abandoned(%d) = %d leases, %v", limit, len(got), err)
			}
			for i, lease := range got {
				if lease.Thread != all[i] {
					t.Fatalf("abandoned lease %d is of %q, want %q", i, lease.Thread, all[i])
				}
			}
		}
	}},
}

// wantAbandoned expects exactly the leases of these threads, in any order.
func wantAbandoned(t *testing.T, log Log, ids ...thread.ID) {
	t.Helper()
	got, err := log.Abandoned(t.Context(), 1000)
	if err != nil {
		t.Fatalf("Abandoned: %v", err)
	}
	found := make(map[thread.ID]bool)
	for _, lease := range got {
		found[lease.Thread] = true
	}
	for _, id := range ids {
		if !found[id] {
			t.Fatalf("the lease of %q is not among the abandoned %+v", id, got)
		}
	}
	if len(got) != len(ids) {
		t.Fatalf("%d leases are abandoned, want %d: %+v", len(got), len(ids), got)
	}
}
