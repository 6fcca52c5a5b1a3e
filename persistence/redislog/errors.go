package redislog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/thread"
)

var errClosed = fmt.Errorf("live log is closed: %w", thread.ErrUnavailable)

// errShrunk ends a tail that has handed out entries which the log does not have any more, and will not have again.
var errShrunk = fmt.Errorf("the live log lost entries that were shown: %w", thread.ErrUnavailable)

// errHole ends a tail that would have to leave entries out.
var errHole = fmt.Errorf("entries are missing in the live log: %w", thread.ErrUnavailable)

// errYoung refuses a lease for a moment.
var errYoung = fmt.Errorf("the live log lost its data a moment ago: %w", thread.ErrUnavailable)

// classify makes an error of Redis one of threadcast's: memory that is used up is [thread.ErrFull], keys of another
// make are [thread.ErrCorrupt], all else is [thread.ErrUnavailable]: that the server cannot be reached, is loading, is
// a replica, does not serve the slot, or did not answer in time.
func (s *server) classify(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closing():
		return errClosed
	case errors.Is(context.Cause(ctx), errDeadline):
		return fmt.Errorf("%w: Redis did not answer in time: %w", thread.ErrUnavailable, err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case redis.IsOOMError(err):
		return fmt.Errorf("%w: %w", thread.ErrFull, err)
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %w", thread.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", thread.ErrUnavailable, err)
}

// hint says what to look at when Redis cannot be used from the beginning.
func hint(err error) string {
	text := err.Error()
	for _, h := range []struct{ sign, hint string }{
		{"connection refused", "is it running, and can it be reached from here? "},
		{"no such host", "is its name right? "},
		{"NOAUTH", "it wants a password: redis://user:password@host:6379/0. "},
		{"WRONGPASS", "the user or the password is wrong; what is not a letter or a digit is written as %23 for #. "},
		{"NOPERM", "the user may not do what is needed. "},
		{"first record does not look like a TLS handshake", "it does not speak TLS: redis, not rediss. "},
		{"EOF", "is it a Redis, and does it speak TLS: rediss? "},
		{"i/o timeout", "it does not answer: is it a Redis, and does it speak TLS: rediss? "},
		{"deadline", "it does not answer: is it a Redis, and does it speak TLS: redis or rediss? "},
	} {
		if strings.Contains(text, h.sign) {
			return h.hint
		}
	}
	return ""
}

// errDeadline is the cause with which the context of a call to Redis ends that took too long.
var errDeadline = errors.New("deadline of a call to Redis")

// quiet is done once, since the client's library has one logger for all clients of the process.
var quiet sync.Once

// chatter passes on what the client's library would print by itself: of whatever matters, calls return an error.
type chatter struct{ log *slog.Logger }

// Printf is for the client's library.
func (c chatter) Printf(ctx context.Context, format string, v ...any) {
	c.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
}
