package logtest

import (
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var stopChecks = []check{
	{"the holder is woken, and its renewal brings the wish", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		told, err := log.AskStop(t.Context(), "t", thread.StopRequest{RunID: runID(1), By: "ann"})
		if err != nil || told.Token != lease.Token || told.Owner != "node-a" || told.RunID != runID(1) {
			t.Fatalf("AskStop = %+v, %v; want the holder's lease", told, err)
		}
		awaitAsked(t, lease)
		wantStop(t, log, lease, &thread.StopRequest{RunID: runID(1), By: "ann"})
	}},
	{"without a run id it means whichever runs", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 5, "node-a"), time.Hour)
		if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "bob"}); err != nil {
			t.Fatal(err)
		}
		awaitAsked(t, lease)
		wantStop(t, log, lease, &thread.StopRequest{RunID: runID(5), By: "bob"})
	}},
	{"a renewed lease is woken as well", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		wantStop(t, log, lease, nil)
		lease, err := log.Renew(t.Context(), lease, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "bob"}); err != nil {
			t.Fatal(err)
		}
		awaitAsked(t, lease)
	}},
	{"of several wishes the first stays", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		for _, by := range []string{"ann", "bob"} {
			if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: by}); err != nil {
				t.Fatal(err)
			}
		}
		wantStop(t, log, lease, &thread.StopRequest{RunID: runID(1), By: "ann"})
	}},
	{"for another run, or nobody's thread, it is not found", func(t *testing.T, log Log) {
		wantNoStop(t, log, thread.StopRequest{By: "ann"})
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		wantNoStop(t, log, thread.StopRequest{RunID: "another", By: "ann"})
		wantStop(t, log, lease, nil)
		if err := log.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		wantNoStop(t, log, thread.StopRequest{RunID: runID(1), By: "ann"})
	}},
	{"an expired lease is not held", func(t *testing.T, log Log) {
		acquire(t, log, claim("t", 1, "node-a"), time.Millisecond)
		awaitExpiry(t, log, "t")
		wantNoStop(t, log, thread.StopRequest{RunID: runID(1), By: "ann"})
	}},
	{"the next lease knows nothing of it", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if err := log.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		wantStop(t, log, acquire(t, log, claim("t", 1, "node-a"), time.Hour), nil)
	}},
	{"who looks on is not woken in the holder's place", func(t *testing.T, log Log) {
		lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		held, err := log.Holder(t.Context(), "t")
		if err != nil || held.Asked != nil {
			t.Fatalf("Holder = %+v, %v; want no channel", held, err)
		}
		told, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "ann"})
		if err != nil || told.Asked != nil || told.Stop == nil || told.Stop.By != "ann" {
			t.Fatalf("AskStop = %+v, %v; want the wish and no channel", told, err)
		}
		awaitAsked(t, lease)
	}},
}

func awaitAsked(t *testing.T, lease thread.Lease) {
	t.Helper()
	if lease.Asked == nil {
		t.Fatal("the holder cannot be woken")
	}
	select {
	case <-lease.Asked:
	case <-time.After(patience):
		t.Fatal("the holder was not woken")
	}
}

// wantStop renews the lease and expects this wish.
func wantStop(t *testing.T, log Log, lease thread.Lease, want *thread.StopRequest) {
	t.Helper()
	got, err := log.Renew(t.Context(), lease, time.Hour)
	switch {
	case err != nil:
		t.Fatalf("Renew: %v", err)
	case (got.Stop == nil) != (want == nil), want != nil && *got.Stop != *want:
		t.Fatalf("the renewal brings %+v, want %+v", got.Stop, want)
	}
}

func wantNoStop(t *testing.T, log Log, req thread.StopRequest) {
	t.Helper()
	if told, err := log.AskStop(t.Context(), "t", req); !errors.Is(err, thread.ErrNotFound) {
		t.Fatalf("AskStop = %+v, %v; want %v", told, err, thread.ErrNotFound)
	}
}
