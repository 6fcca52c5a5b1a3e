package sqlitefile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How Retry waits between tries, and for how long in all.
const (
	retryFirst   = time.Millisecond
	retryLongest = 100 * time.Millisecond
	retryTotal   = 10 * time.Second
)

// Retry calls fn until it returns something else than an [IsBusy] error, which it returns. It waits between the
// calls, longer each time. After 10 seconds it gives up with [thread.ErrUnavailable]; when ctx is done it returns
// its cause. fn has to do all or nothing, as a transaction does.
func Retry(ctx context.Context, fn func(context.Context) error) error {
	started := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryLongest) {
		err := fn(ctx)
		if !IsBusy(err) {
			return err
		}
		if time.Since(started) >= retryTotal {
			return fmt.Errorf("another program has locked the database file for %v: %w: %w",
				retryTotal, thread.ErrUnavailable, err)
		}
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
