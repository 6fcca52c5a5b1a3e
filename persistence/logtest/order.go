package logtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/persistence/thread"
)

var orderChecks = []check{
	{"one by one: entries come back in order", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		for range 50 {
			a.add(1)
		}
		a.end()
		holds(t, log, "t", a.wrote)
	}},
	{"in batches: entries come back in order", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		for _, n := range []int{1, 2, 7, 256, 1, 3000, 5} {
			a.add(n)
		}
		holds(t, log, "t", a.wrote)
	}},
	{"a batch may hold the end", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.append(event(1, 1), event(1, 2), endEntry(1, 3))
		holds(t, log, "t", a.wrote)
	}},
	{"an empty batch adds nothing", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		if err := log.Append(t.Context(), a.lease, nil); err != nil {
			t.Fatalf("Append of nothing: %v", err)
		}
		holds(t, log, "t", nil)
	}},
	{"runs may begin at any number", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 41)
		a.add(3)
		holds(t, log, "t", a.wrote)
	}},
	{"many threads at once: each keeps its own order", manyThreads},
	{"threads do not see each other", func(t *testing.T, log Log) {
		a, b := begin(t, log, "t", 1), begin(t, log, "t2", 1)
		a.add(3)
		b.add(2)
		a.add(1)
		holds(t, log, "t", a.wrote)
		holds(t, log, "t2", b.wrote)
		holds(t, log, "", nil)
	}},
}

// manyThreads appends to many threads from as many goroutines, each of which is tailed meanwhile.
func manyThreads(t *testing.T, log Log) {
	const threads, perThread = 24, 300
	var group errgroup.Group
	followers := make([]*follower, threads)
	for i := range threads {
		id := thread.ID(fmt.Sprintf("thread %d", i))
		a := begin(t, log, id, 1)
		followers[i] = follow(t, log, id, thread.Cursor{})
		group.Go(func() error {
			dice := rand.New(rand.NewPCG(1, uint64(i)))
			for next := uint64(1); next <= perThread; {
				last := min(next+dice.Uint64N(9), perThread)
				if err := log.Append(t.Context(), a.lease, events(1, next, last)); err != nil {
					return fmt.Errorf("%s, entries %d to %d: %w", id, next, last, err)
				}
				next = last + 1
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	want := events(1, 1, perThread)
	for i, f := range followers {
		sameEntries(t, f.await(perThread), want)
		holds(t, log, thread.ID(fmt.Sprintf("thread %d", i)), want)
	}
}
