package logtest

import (
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var closeChecks = []check{
	{"it ends the tails", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(1)
		f, g := follow(t, log, "t", thread.Cursor{}), follow(t, log, "u", thread.Cursor{})
		f.reach(1)
		closeLog(t, log)
		for _, tail := range []*follower{f, g} {
			if err := tail.result(); !errors.Is(err, thread.ErrUnavailable) {
				t.Fatalf("Tail returned %v, want %v", err, thread.ErrUnavailable)
			}
		}
	}},
	{"afterwards the log is unavailable", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(1)
		drop(t, log, 1, time.Hour)
		closeLog(t, log)
		closeLog(t, log)
		for name, err := range everyCall(t, log, a.lease) {
			if !errors.Is(err, thread.ErrUnavailable) {
				t.Errorf("%s: got %v, want %v", name, err, thread.ErrUnavailable)
			}
		}
	}},
}

func closeLog(t *testing.T, log Log) {
	t.Helper()
	if err := log.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// everyCall makes every call once and returns their errors by name.
func everyCall(t *testing.T, log Log, lease thread.Lease) map[string]error {
	ctx, errs := t.Context(), make(map[string]error)
	errs["Append"] = log.Append(ctx, lease, events(1, 2, 2))
	_, errs["Read"] = log.Read(ctx, "t", thread.Cursor{}, 10)
	_, errs["Head"] = log.Head(ctx, "t")
	errs["Tail"] = log.Tail(ctx, "t", thread.Cursor{}, func([]thread.Entry) error { return errEnough })
	errs["Drop"] = log.Drop(ctx, "t", 1, 0)
	errs["Forget"] = log.Forget(ctx, lease)
	_, errs["Acquire"] = log.Acquire(ctx, claim("x", 1, "node-a"), time.Hour)
	_, errs["Renew"] = log.Renew(ctx, lease, time.Hour)
	errs["Release"] = log.Release(ctx, lease)
	_, errs["Holder"] = log.Holder(ctx, "t")
	_, errs["AskStop"] = log.AskStop(ctx, "t", thread.StopRequest{})
	_, errs["Abandoned"] = log.Abandoned(ctx, 10)
	return errs
}
