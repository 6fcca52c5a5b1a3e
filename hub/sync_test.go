package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
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
