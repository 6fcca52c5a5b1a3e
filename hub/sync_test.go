package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
)

// TestSyncCountsWhatOnlyHistoryHas: a run that came and left the log while nobody called Next is something that is
// there, and comes before the next CaughtUp.
func TestSyncCountsWhatOnlyHistoryHas(t *testing.T) {
	b := setup(t, hub.Config{})
	s := b.subscribe(hub.Options{})
	b.expect(s, "caught up 0-0")
	b.whole(2)
	b.drop(1)
	s.Sync()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		batch, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if batch.Kind != hub.CaughtUp {
			continue
		}
		if batch.To != cursor(1, 3) {
			t.Errorf("it has caught up at %s; the thread is at 1-3", batch.To)
		}
		break
	}
}

// TestRawReadersLeaveHistoryAlone: while the log has a run, raw readers do not make history load it.
func TestRawReadersLeaveHistoryAlone(t *testing.T) {
	b := setup(t, hub.Config{})
	b.whole(2)
	s := b.subscribe(hub.Options{Replay: hub.Raw})
	b.expect(s, "r1 1-0>1-3: 1.1 1.2", "caught up 1-3")
	if n := b.shelf.loads(); n != 0 {
		t.Errorf("history loaded runs %d times", n)
	}
}

// TestWhatWasMissedIsLookedFor: a run that came and left the log while no tail heard of it is found all the same.
func TestWhatWasMissedIsLookedFor(t *testing.T) {
	b := setup(t, hub.Config{})
	b.whole(1)
	s := b.subscribe(hub.Options{})
	b.expect(s, "r1 1-0>1-2: 1.1", "caught up 1-2")
	b.shelf.save(thread.Run{
		Thread: b.id, ID: "r2", Number: 2, LastSeq: 2, Events: []thread.Event{{First: 1, Last: 1, Data: []byte("2.1")}},
	})
	b.quiet(s)
	b.hub.Missed(b.id)
	b.expect(s, "changed at 1-2", "r2 2-0>2-2: 2.1")
	b.quiet(s)
}
