package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestConnect(t *testing.T) {
	t.Run("replays, and follows from one run to the next", func(t *testing.T) {
		b := setup(t, hub.Config{})
		b.whole(2)
		enough := errors.New("enough")
		var got []string
		err := b.hub.Connect(t.Context(), b.id, hub.Options{}, func(batch hub.Batch) error {
			if batch.Kind == hub.CaughtUp {
				b.whole(1)
				return nil
			}
			for _, e := range batch.Events {
				got = append(got, string(e))
			}
			if batch.To == cursor(2, 2) {
				return enough
			}
			return nil
		})
		if err != enough {
			t.Errorf("error = %v, want that of the function", err)
		}
		if text := strings.Join(got, " "); text != "1.1+1.2 2.1" {
			t.Errorf("got %s", text)
		}
		if n := b.hub.Watched(); n != 0 {
			t.Errorf("%d threads are watched afterwards", n)
		}
	})
	t.Run("says why it ended", func(t *testing.T) {
		b := setup(t, hub.Config{})
		left := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := b.hub.Connect(ctx, b.id, hub.Options{}, func(hub.Batch) error { cancel(left); return nil })
		if err != left {
			t.Errorf("error = %v, want the cause of the context", err)
		}
		err = b.hub.Connect(t.Context(), b.id, hub.Options{After: cursor(7, 1)}, func(hub.Batch) error { return nil })
		if !errors.Is(err, thread.ErrBadCursor) {
			t.Errorf("error = %v, want that of the subscription", err)
		}
		err = b.hub.Connect(t.Context(), b.id, hub.Options{}, func(hub.Batch) error { return logtest.Wipe(t.Context(), b.log, b.id) })
		if !errors.Is(err, thread.ErrDeleted) {
			t.Errorf("error = %v, want that the thread was deleted", err)
		}
	})
}
