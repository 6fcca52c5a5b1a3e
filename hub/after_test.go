package hub_test

import (
	"strings"
	"testing"

	"github.com/threadcast/threadcast/hub"
)

// positions are those after the events of what the subscription returns until it has caught up; a dash where there is none.
func positions(t *testing.T, b *bench, opts hub.Options) string {
	t.Helper()
	s := b.subscribe(opts)
	var all []string
	for {
		batch, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if batch.Kind == hub.CaughtUp {
			return strings.Join(all, " ")
		}
		for i := range batch.Events {
			at, ok := batch.After(i)
			if !ok {
				all = append(all, "-")
				continue
			}
			all = append(all, at.String())
		}
	}
}

func TestPositionsBetweenEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*bench)
		opts  hub.Options
		want  string
	}{
		"EventByEvent": {
			func(b *bench) { b.whole(3); b.begin(); b.emit(2) }, hub.Options{Replay: hub.Raw}, "1-1 1-2 1-3 2-1 2-2",
		},
		"EventByEventAfterACursor": {
			func(b *bench) { b.whole(3) }, hub.Options{Replay: hub.Raw, After: cursor(1, 1)}, "1-2 1-3",
		},
		"OnlyAtTheEndOfACompactedRun": {
			func(b *bench) { b.whole(4) }, hub.Options{}, "- 1-5",
		},
		"OnlyAtTheEndOfALiveRunThatIsCompacted": {
			func(b *bench) { b.begin(); b.emit(4) }, hub.Options{}, "- 1-4",
		},
		"OnlyAtTheEndOfWhatHasLeftTheLog": {
			func(b *bench) { b.whole(4); b.drop(1) }, hub.Options{Replay: hub.Raw}, "- 1-5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, hub.Config{Compact: pairs})
			tt.write(b)
			if got := positions(t, b, tt.opts); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
