package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// ErrSchema says that a database holds tables that this program must not touch: those of a newer threadcast, or
// of another program.
var ErrSchema = errors.New("schema is not one that this program knows")

// The result codes of SQLite that mean something here; extended codes carry them in their low byte.
const (
	sqliteBusy    = 5 // also BUSY_SNAPSHOT, 517
	sqliteCorrupt = 11
	sqliteTooBig  = 18
	sqliteNotADB  = 26
)

// coded is an error of the SQLite driver.
type coded interface {
	error
	Code() int
}

// stated is an error of the Postgres driver.
type stated interface {
	error
	SQLState() string
}

// codes finds the code of a database error: SQLite's primary result code, or Postgres' SQLSTATE.
func codes(err error) (sqlite int, state string) {
	if c, ok := errors.AsType[coded](err); ok {
		sqlite = c.Code() & 0xff
	}
	if s, ok := errors.AsType[stated](err); ok {
		state = s.SQLState()
	}
	return sqlite, state
}

// retryable tells whether a transaction that ended with err may succeed when it is run again: another writer
// was in its way.
func retryable(err error) bool {
	sqlite, state := codes(err)
	return sqlite == sqliteBusy ||
		state == "40001" || // serialization_failure
		state == "40P01" // deadlock_detected
}

// meaning turns an error of the database into one of the project's. It leaves alone what is one already. An
// error that came of ctx being cancelled is that cancellation; a deadline that passed is the storage's failure.
func meaning(ctx context.Context, err error) error {
	for _, known := range []error{
		thread.ErrNotFound, thread.ErrBadInput, thread.ErrRunIDUsed, thread.ErrUnfinished, thread.ErrLeaseLost, thread.ErrAnswered,
		thread.ErrQueued, thread.ErrQueueFull, thread.ErrGap, thread.ErrTooLarge, thread.ErrCorrupt, ErrSchema,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	switch sqlite, state := codes(err); {
	case sqlite == sqliteCorrupt, sqlite == sqliteNotADB, state == "XX001", state == "XX002":
		return fmt.Errorf("%w: %w", thread.ErrCorrupt, err)
	case sqlite == sqliteTooBig, state == "54000":
		return fmt.Errorf("%w: %w", thread.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", thread.ErrUnavailable, err)
}
