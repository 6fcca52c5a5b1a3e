package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
)

var tailsChecks = []check{
	{"many of one thread all see everything", func(t *testing.T, log Log) {
		const tails, entries = 20, 400
		a := begin(t, log, "t", 1)
		var followers []*follower
		for range tails {
			followers = append(followers, follow(t, log, "t", thread.Cursor{}))
		}
		for range entries / 4 {
			a.add(1)
			a.add(3)
		}
		for _, f := range followers {
			sameEntries(t, f.await(entries), a.wrote)
		}
	}},
	{"begun while entries are appended, each sees each entry once", func(t *testing.T, log Log) {
		const tails = 25
		a := begin(t, log, "t", 1)
		var followers []*follower
		for i := range tails {
			a.add(1 + i%3)
			followers = append(followers, follow(t, log, "t", thread.Cursor{Run: 1, Seq: a.seq / 2}))
			a.add(1)
		}
		a.end()
		for _, f := range followers {
			f.reach(1)
			want := a.wrote[f.first()-1:]
			sameEntries(t, f.await(len(want)), want)
		}
	}},
	{"one that is slow misses nothing and does not hold the others", slowTail},
	{"one that is cancelled does not end the others", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		f, g := follow(t, log, "t", thread.Cursor{}), follow(t, log, "t", thread.Cursor{})
		a.add(2)
		f.await(2)
		a.add(2)
		sameEntries(t, g.await(4), a.wrote)
	}},
}

// first is the seq of the first entry that came.
func (f *follower) first() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got[0].Seq
}

// slowTail holds a tail in its function until thousands of entries have been appended.
func slowTail(t *testing.T, log Log) {
	a := begin(t, log, "t", 1)
	quick := follow(t, log, "t", thread.Cursor{})
	entered, gate := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(errEnough)
	var got []thread.Entry
	done := make(chan error, 1)
	go func() {
		done <- log.Tail(ctx, "t", thread.Cursor{}, func(batch []thread.Entry) error {
			if len(batch) == 0 {
				return nil
			}
			if len(got) == 0 {
				close(entered)
				<-gate
			}
			got = append(got, batch...)
			if batch[len(batch)-1].Kind == thread.KindEnd {
				return errEnough
			}
			return nil
		})
	}()
	a.add(1)
	awaitClosed(t, "the slow tail gets the first entry", entered)
	for range 400 {
		a.add(1)
		a.add(15)
	}
	quick.reach(6401)
	close(gate)
	a.add(10)
	a.end()
	if err := <-done; !errors.Is(err, errEnough) {
		t.Fatalf("the slow tail returned %v", err)
	}
	sameEntries(t, got, a.wrote)
	sameEntries(t, quick.await(len(a.wrote)), a.wrote)
}
