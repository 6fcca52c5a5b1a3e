package hub_test

import (
	"testing"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
)

// discard replaces a run that was saved, as the runner does it.
func (b *bench) discard(number uint64) {
	b.Helper()
	b.shelf.mu.Lock()
	run := &b.shelf.runs[number-1]
	run.Discarded = true
	gone := *run
	b.shelf.mu.Unlock()
	b.drop(number)
	b.hub.Discarded(b.id, gone)
}

func TestDiscardedRunsAreLeftOutOfReplay(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts hub.Options
		want []string
	}{
		{"from the beginning", hub.Options{}, []string{"r1 1-0>1-2: 1.1", "r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"raw", hub.Options{Replay: hub.Raw}, []string{"r1 1-0>1-2: 1.1", "r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"unless they are wanted", hub.Options{Discarded: true},
			[]string{"r1 1-0>1-2: 1.1", "r2 2-0>2-4: 2.1+2.2 2.3", "r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"after the run before", hub.Options{After: cursor(1, 2)}, []string{"r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"within the run", hub.Options{After: cursor(2, 1)}, []string{"reset r2 2-4", "r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"at its end", hub.Options{After: cursor(2, 4)}, []string{"reset r2 2-4", "r3 3-0>3-2: 3.1", "caught up 3-2"}},
		{"before its beginning", hub.Options{After: cursor(2, 0)}, []string{"r3 3-0>3-2: 3.1", "caught up 3-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, hub.Config{Compact: pairs})
			b.whole(1)
			b.whole(3)
			b.discard(2)
			b.whole(1)
			s := b.subscribe(tt.opts)
			b.expect(s, tt.want...)
			b.quiet(s)
		})
	}
	t.Run("as the last of the thread", func(t *testing.T) {
		b := setup(t, hub.Config{Compact: pairs})
		b.whole(1)
		b.whole(3)
		b.discard(2)
		s := b.subscribe(hub.Options{})
		b.expect(s, "r1 1-0>1-2: 1.1", "caught up 2-4")
		b.whole(1)
		b.follow(s, cursor(3, 2), "3.1")
	})
}

func TestWhoHasSomethingOfADiscardedRunIsToldSo(t *testing.T) {
	b := setup(t, hub.Config{Compact: pairs})
	b.whole(1)
	live := b.subscribe(hub.Options{})
	b.expect(live, "r1 1-0>1-2: 1.1", "caught up 1-2")
	behind := b.subscribe(hub.Options{After: cursor(1, 2)})
	b.expect(behind, "caught up 1-2")
	whole := b.subscribe(hub.Options{After: cursor(1, 2), Discarded: true})
	b.expect(whole, "caught up 1-2")
	b.begin()
	b.emit(2)
	b.follow(live, cursor(2, 2), "2.1 2.2")
	b.follow(whole, cursor(2, 2), "2.1 2.2")
	b.emit(1)
	b.end()
	b.save()
	b.discard(2)
	b.expect(live, "reset r2 2-4")
	b.whole(1)
	for _, s := range []*hub.Subscription{live, behind} {
		b.follow(s, cursor(3, 2), "3.1")
		b.quiet(s)
	}
	b.follow(whole, cursor(3, 2), "2.3 3.1")
	b.discard(3)
	b.expect(live, "reset r3 3-2")
	b.hub.Discarded("another", thread.Run{Number: 1})
	b.quiet(live)
}

func TestWhoIsPastADiscardedRunStaysThere(t *testing.T) {
	b := setup(t, hub.Config{Compact: pairs})
	b.whole(1)
	b.whole(1)
	s := b.subscribe(hub.Options{})
	b.follow(s, cursor(2, 2), "1.1 2.1")
	b.expect(s, "caught up 2-2")
	b.discard(1)
	b.expect(s, "reset r1 2-2")
	b.quiet(s)
}

func TestChangedIsTold(t *testing.T) {
	b := setup(t, hub.Config{})
	s := b.subscribe(hub.Options{})
	b.expect(s, "caught up 0-0")
	b.hub.Changed("another")
	b.quiet(s)
	b.hub.Changed(b.id)
	b.hub.Changed(b.id)
	b.expect(s, "changed at 0-0")
	b.quiet(s)
}
