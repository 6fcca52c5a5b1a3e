package redislog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Tickets notes, for all nodes with the same prefix, which tickets have been used.
type Tickets struct{ log *Log }

// Tickets returns the notes of used tickets that lie beside the log.
func (l *Log) Tickets() Tickets { return Tickets{log: l} }

// Claim notes the use of a ticket for ttl, to the millisecond, and tells whether it is the first.
// [thread.ErrUnavailable] if Redis does not answer: the ticket may count as used then.
func (t Tickets) Claim(ctx context.Context, nonce string, ttl time.Duration) (bool, error) {
	ctx, cancel, err := t.log.enter(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	err = t.log.commands.SetArgs(ctx, t.log.keys.ticket(nonce), "1", redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("note the use of a ticket: %w", t.log.classify(ctx, err))
	}
	return true, nil
}
