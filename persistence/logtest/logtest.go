package logtest

import (
	"context"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Log is what a driver provides: the ports of runner and hub together.
type Log interface {
	Stream
	Retention
	Leases
	Owners
	// Close ends all tails and whatever the log runs; later calls return [thread.ErrUnavailable].
	Close() error
}

// Stream is the part of a log that carries entries; see hub.Log and runner.Log.
type Stream interface {
	Append(ctx context.Context, lease thread.Lease, entries []thread.Entry) error
	Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error
	Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error)
	Head(ctx context.Context, id thread.ID) (thread.Cursor, error)
}

// Retention is the part of a log that lets entries go; see runner.Log.
type Retention interface {
	Drop(ctx context.Context, id thread.ID, run uint64, keep time.Duration) error
	Forget(ctx context.Context, lease thread.Lease) error
}

// Leases is the part of a log that hands out leases; see runner.Leaser.
type Leases interface {
	Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error)
	Renew(ctx context.Context, lease thread.Lease, ttl time.Duration) (thread.Lease, error)
	Release(ctx context.Context, lease thread.Lease) error
}

// Owners is the part of a log that tells about leases; see runner.Owners.
type Owners interface {
	Holder(ctx context.Context, id thread.ID) (thread.Lease, error)
	AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error)
	Abandoned(ctx context.Context, limit int) ([]thread.Lease, error)
}

// check is one promise, tested on an empty log.
type check struct {
	name string
	run  func(t *testing.T, log Log)
}

// Run tests the promises of live logs. open returns an empty log and arranges that it is closed when the test ends.
func Run(t *testing.T, open func(t *testing.T) Log) {
	subjects := []struct {
		name   string
		checks []check
	}{
		{"order", orderChecks}, {"repeat", repeatChecks}, {"refuse", refuseChecks}, {"fence", fenceChecks},
		{"tail", tailChecks}, {"tails", tailsChecks}, {"read", readChecks}, {"bytes", bytesChecks},
		{"lease", leaseChecks}, {"contend", contendChecks}, {"stop", stopChecks}, {"abandoned", abandonedChecks},
		{"drop", dropChecks}, {"forget", forgetChecks}, {"close", closeChecks},
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.checks {
				t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
			}
		})
	}
}
