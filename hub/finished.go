package hub

import (
	"context"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Finished returns a finished run with its events as history keeps them, or [thread.ErrNotFound].
func (h *Hub) Finished(ctx context.Context, id thread.ID, number uint64) (thread.Run, error) {
	r := &reader{source: h.source, id: id}
	return r.finished(ctx, number)
}

// Rest returns those of a finished run's events that come after the entry seq of the live log, and whether a reader who has
// everything up to there can go on with them: it cannot if one of the events stands for entries on both sides. They are the
// events that a subscription after that entry returns once the run has left the live log, in the same order.
func Rest(events []thread.Event, seq uint64) (after []thread.Event, ok bool) {
	return rest(events, seq)
}
