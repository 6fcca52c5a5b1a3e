package hub

import (
	"context"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Connect replays a thread and follows it, on a subscription of its own: it calls fn with one batch after the other until
// ctx is done, fn returns an error, or the subscription ends, and returns the cause of ctx, that error, or what
// [Hub.Subscribe] or [Subscription.Next] returned. The end of a run does not end it: a later run follows.
func (h *Hub) Connect(ctx context.Context, id thread.ID, opts Options, fn func(Batch) error) error {
	s, err := h.Subscribe(ctx, id, opts)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if err := fn(b); err != nil {
			return err
		}
	}
}
