package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// follower reads a tail in a goroutine of its own.
type follower struct {
	t      *testing.T
	cancel context.CancelCauseFunc
	more   chan struct{} // receives when there is more in got
	done   chan struct{} // closed when Tail has returned
	err    error         // of Tail; to be read after done

	mu  sync.Mutex
	got []thread.Entry
}

var errEnough = errors.New("seen enough")

// follow tails a thread until the test ends, or stop is called.
func follow(t *testing.T, log Log, id thread.ID, after thread.Cursor) *follower {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &follower{t: t, cancel: cancel, more: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		last, first := after, true
		f.err = log.Tail(ctx, id, after, func(batch []thread.Entry) error {
			if first {
				first = false
				if len(batch) > 0 {
					return fmt.Errorf("the first call brought %d entries", len(batch))
				}
				return nil
			}
			if err := follows(last, batch); err != nil {
				return err
			}
			last = batch[len(batch)-1].Cursor()
			f.take(batch)
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel(errEnough)
		<-f.done
	})
	return f
}

// follows tells whether batch continues after last, without a hole within a run.
func follows(last thread.Cursor, batch []thread.Entry) error {
	if len(batch) == 0 {
		return errors.New("an empty batch")
	}
	for _, e := range batch {
		at := e.Cursor()
		switch {
		case !last.Before(at):
			return fmt.Errorf("entry %s came after %s", at, last)
		case at.Run == last.Run && at.Seq != last.Seq+1, at.Run != last.Run && at.Seq != 1:
			return fmt.Errorf("entry %s came after %s: a hole", at, last)
		}
		last = at
	}
	return nil
}

func (f *follower) take(batch []thread.Entry) {
	f.mu.Lock()
	f.got = append(f.got, batch...)
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.got)
}

// await waits until n entries have come, stops the tail and returns all that came.
func (f *follower) await(n int) []thread.Entry {
	f.t.Helper()
	f.reach(n)
	f.cancel(errEnough)
	if err := f.result(); !errors.Is(err, errEnough) {
		f.t.Fatalf("Tail returned %v, want the cause of its context", err)
	}
	return f.got
}

// reach waits until at least n entries have come.
func (f *follower) reach(n int) {
	f.t.Helper()
	deadline := time.After(patience)
	for f.count() < n {
		select {
		case <-f.more:
		case <-f.done:
			if f.count() < n {
				f.t.Fatalf("Tail returned %v after %d entries, before the %d that were expected", f.err, f.count(), n)
			}
		case <-deadline:
			f.t.Fatalf("waited %v for %d entries; %d came", patience, n, f.count())
		}
	}
}

// result waits until Tail has returned and returns its error.
func (f *follower) result() error {
	f.t.Helper()
	select {
	case <-f.done:
		return f.err
	case <-time.After(patience):
		f.t.Fatalf("Tail did not return within %v", patience)
		return nil
	}
}
