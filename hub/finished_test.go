package hub_test

import (
	"errors"
	"testing"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestAFinishedRunIsHadAsHistoryKeepsIt(t *testing.T) {
	b := setup(t, hub.Config{Compact: pairs})
	b.whole(4)
	b.begin()
	b.emit(1)
	run, err := b.hub.Finished(t.Context(), b.id, 1)
	if err != nil || run.Number != 1 || len(run.Events) != 2 {
		t.Fatalf("got %d events of run %d, %v", len(run.Events), run.Number, err)
	}
	for seq, want := range map[uint64]int{0: 2, 2: 1, 4: 0, 5: 0} {
		if rest, ok := hub.Rest(run.Events, seq); !ok || len(rest) != want {
			t.Errorf("after %d: %d events, %t", seq, len(rest), ok)
		}
	}
	for _, seq := range []uint64{1, 3} {
		if _, ok := hub.Rest(run.Events, seq); ok {
			t.Errorf("%d lies within an event", seq)
		}
	}
	for _, number := range []uint64{2, 3} {
		if _, err := b.hub.Finished(t.Context(), b.id, number); !errors.Is(err, thread.ErrNotFound) {
			t.Errorf("run %d: %v", number, err)
		}
	}
}
