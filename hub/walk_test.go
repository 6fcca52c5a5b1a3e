package hub_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
)

// walk walks through the thread and renders its batches; between is called with each.
func (b *bench) walk(opts hub.Options, between func(hub.Batch)) []string {
	b.Helper()
	var got []string
	b.must(b.hub.Walk(b.Context(), b.id, opts, func(batch hub.Batch) error {
		got = append(got, render(batch))
		between(batch)
		return nil
	}))
	return got
}

func (b *bench) same(got []string, want ...string) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWalk(t *testing.T) {
	nothing := func(hub.Batch) {}
	threeRuns := func(t *testing.T) *bench {
		b := setup(t, hub.Config{Compact: pairs, BatchEvents: 3})
		b.whole(2)
		b.drop(1)
		b.whole(3) // in log and history
		b.begin()
		b.emit(4)
		return b
	}
	t.Run("StoredTakesFinishedRunsFromHistoryAndTheLiveOneAsItIs", func(t *testing.T) {
		b := threeRuns(t)
		b.same(b.walk(hub.Options{Replay: hub.Stored}, nothing),
			"r1 1-0>1-3: 1.1+1.2", "r2 2-0>2-4: 2.1+2.2 2.3", "r3 3-0>3-3: 3.1 3.2 3.3", "r3 3-3>3-4: 3.4")
		if b.hub.Watched() != 0 {
			t.Error("it left a tail behind")
		}
	})
	t.Run("CompactTakesTheLiveOneCompacted", func(t *testing.T) {
		b := threeRuns(t)
		b.same(b.walk(hub.Options{After: cursor(2, 4)}, nothing), "r3 3-0>3-4: 3.1+3.2 3.3+3.4")
	})
	t.Run("NothingIsNothing", func(t *testing.T) {
		b := setup(t, hub.Config{})
		b.same(b.walk(hub.Options{Replay: hub.Stored}, nothing))
		b.whole(1)
		b.same(b.walk(hub.Options{After: cursor(1, 2)}, nothing))
	})
	t.Run("WhatComesMeanwhileIsLeftForOthers", func(t *testing.T) {
		b := setup(t, hub.Config{BatchEvents: 2})
		b.begin()
		b.emit(4)
		b.same(b.walk(hub.Options{Replay: hub.Stored}, func(hub.Batch) { b.emit(2) }), "r1 1-0>1-2: 1.1 1.2", "r1 1-2>1-4: 1.3 1.4")
	})
	t.Run("ARunThatIsCompactedMeanwhileComesAgain", func(t *testing.T) {
		b := setup(t, hub.Config{BatchEvents: 3})
		b.begin()
		b.emit(6)
		first := true
		got := b.walk(hub.Options{Replay: hub.Stored}, func(hub.Batch) {
			if first {
				b.end()
				b.save()
				b.drop(1)
			}
			first = false
		})
		b.same(got, "r1 1-0>1-3: 1.1 1.2 1.3", "reset r1 1-0", "r1 1-0>1-7: 1.1+1.2 1.3+1.4 1.5+1.6")
	})
	t.Run("ItEndsWithTheErrorOfWhoTakes", func(t *testing.T) {
		b := threeRuns(t)
		enough := errors.New("enough")
		n := 0
		err := b.hub.Walk(t.Context(), b.id, hub.Options{}, func(hub.Batch) error { n++; return enough })
		if !errors.Is(err, enough) || n != 1 {
			t.Errorf("after %d batches: %v", n, err)
		}
	})
	t.Run("ABadCursorIsRefused", func(t *testing.T) {
		b := threeRuns(t)
		err := b.hub.Walk(t.Context(), b.id, hub.Options{After: cursor(9, 9)}, func(hub.Batch) error { return nil })
		if !errors.Is(err, thread.ErrBadCursor) {
			t.Errorf("got %v", err)
		}
	})
}
