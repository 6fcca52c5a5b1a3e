package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var tailChecks = []check{
	{"it wakes for each entry", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		f := follow(t, log, "t", thread.Cursor{})
		for i := range 50 {
			a.add(1)
			f.reach(i + 1)
		}
		sameEntries(t, f.await(50), a.wrote)
	}},
	{"it begins after any cursor", tailFromAnywhere},
	{"it crosses runs", func(t *testing.T, log Log) {
		f := follow(t, log, "t", thread.Cursor{})
		var want []thread.Entry
		for run := uint64(1); run <= 5; run++ {
			a := begin(t, log, "t", run)
			a.add(10)
			a.leave()
			want = append(want, a.wrote...)
		}
		sameEntries(t, f.await(len(want)), want)
	}},
	{"it shows the end once", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		f := follow(t, log, "t", thread.Cursor{})
		a.add(3)
		a.end()
		for range 3 {
			a.repeat(endEntry(1, 4))
		}
		a.leaveAgain()
		b := begin(t, log, "t", 2)
		b.add(1)
		sameEntries(t, f.await(5), append(a.wrote, b.wrote...))
	}},
	{"it waits for a thread that is not there", func(t *testing.T, log Log) {
		f := follow(t, log, "t", thread.Cursor{})
		g := follow(t, log, "t", thread.Cursor{Run: 7})
		a := begin(t, log, "t", 8)
		a.add(2)
		sameEntries(t, f.await(2), a.wrote)
		sameEntries(t, g.await(2), a.wrote)
	}},
	{"beyond the head it shows only what comes after its cursor", func(t *testing.T, log Log) {
		f := follow(t, log, "t", thread.Cursor{Run: 1, Seq: 5})
		a := begin(t, log, "t", 1)
		a.add(2)
		a.add(6)
		sameEntries(t, f.await(3), a.wrote[5:])
	}},
	{"when its context is done it returns the cause", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(1)
		f := follow(t, log, "t", thread.Cursor{})
		sameEntries(t, f.await(1), a.wrote)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		err := log.Tail(ctx, "t", thread.Cursor{}, func([]thread.Entry) error { return errors.New("fn was called") })
		if !errors.Is(err, errEnough) {
			t.Fatalf("Tail with a context that is done: got %v, want its cause itself", err)
		}
	}},
	{"in the middle of a replay it heeds its context", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(5000)
		ctx, cancel := context.WithCancelCause(t.Context())
		seen := 0
		err := log.Tail(ctx, "t", thread.Cursor{}, func(batch []thread.Entry) error {
			if seen += len(batch); seen > 0 {
				cancel(errEnough)
			}
			return nil
		})
		if !errors.Is(err, errEnough) || seen == 0 || seen == 5000 {
			t.Fatalf("Tail: got %v after %d of 5000 entries, want the cause after the first batch", err, seen)
		}
	}},
	{"it returns the error of its function", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		for last := 1; last <= 2; last++ {
			calls := 0
			err := log.Tail(t.Context(), "t", thread.Cursor{}, func([]thread.Entry) error {
				if calls++; calls == last {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) || calls != last {
				t.Fatalf("Tail: got %v after %d calls, want the error itself that call %d returned", err, calls, last)
			}
		}
	}},
	{"its first call is empty and no other", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(40)
		var got []thread.Entry
		calls := make(chan int, 64) // how many entries each brought
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- log.Tail(ctx, "t", thread.Cursor{}, func(batch []thread.Entry) error {
				got = append(got, batch...)
				calls <- len(batch)
				return nil
			})
		}()
		if n := <-calls; n != 0 {
			cancel(errEnough)
			t.Fatalf("the first call brought %d entries", n)
		}
		for have := 0; have < 40; {
			have += bring(t, calls)
		}
		for range 10 {
			a.repeat(events(1, 1, 40)...)
			a.add(1)
			if n := bring(t, calls); n != 1 {
				t.Fatalf("a call brought %d entries, want the one that was new", n)
			}
		}
		cancel(errEnough)
		if err := <-done; !errors.Is(err, errEnough) {
			t.Fatalf("Tail returned %v", err)
		}
		sameEntries(t, got, a.wrote)
	}},
}

// bring waits for a call, and returns how many entries it brought.
func bring(t *testing.T, calls <-chan int) int {
	t.Helper()
	select {
	case n := <-calls:
		if n == 0 {
			t.Fatal("a later call brought no entries")
		}
		return n
	case <-time.After(patience):
		t.Fatalf("waited %v in vain for a call", patience)
		return 0
	}
}

// leaveAgain releases the lease of a run that has its end already.
func (a *author) leaveAgain() {
	a.t.Helper()
	if err := a.log.Release(a.t.Context(), a.lease); err != nil {
		a.t.Fatalf("Release: %v", err)
	}
}

func tailFromAnywhere(t *testing.T, log Log) {
	var all []thread.Entry
	for _, run := range []uint64{1, 2, 4} {
		a := begin(t, log, "t", run)
		a.add(3)
		a.leave()
		all = append(all, a.wrote...)
	}
	last := begin(t, log, "t", 6)
	last.add(2)
	all = append(all, last.wrote...)
	cursors := []thread.Cursor{
		{}, {Run: 1}, {Run: 1, Seq: 1}, {Run: 1, Seq: 3}, {Run: 1, Seq: 4}, {Run: 2}, {Run: 2, Seq: 2},
		{Run: 3}, {Run: 4, Seq: 4}, {Run: 5}, {Run: 6}, {Run: 6, Seq: 1}, {Run: 6, Seq: 2},
	}
	var followers []*follower
	for _, c := range cursors {
		followers = append(followers, follow(t, log, "t", c))
	}
	last.add(3)
	last.end()
	all = append(all, last.wrote[2:]...)
	for i, f := range followers {
		t.Run(fmt.Sprintf("%d-%d", cursors[i].Run, cursors[i].Seq), func(t *testing.T) {
			want := after(all, cursors[i])
			sameEntries(t, f.await(len(want)), want)
		})
	}
}

// after returns the entries after a cursor.
func after(entries []thread.Entry, c thread.Cursor) []thread.Entry {
	for i, e := range entries {
		if c.Before(e.Cursor()) {
			return entries[i:]
		}
	}
	return nil
}

// awaitClosed waits until c is closed.
func awaitClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
}
