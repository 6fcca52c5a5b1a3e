package sqllog

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/threadcast/threadcast/persistence/thread"
)

var errClosed = fmt.Errorf("live log is closed: %w", thread.ErrUnavailable)

// classify makes an error of the database one of threadcast's: damage is [thread.ErrCorrupt], all else
// [thread.ErrUnavailable].
func classify(err error) error {
	switch code(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", thread.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", thread.ErrUnavailable, err)
}

// isBusy tells whether another program holds the file, so that the same may succeed later.
func isBusy(err error) bool {
	c := code(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// code is SQLite's primary result code, or 0 for an error that is none of SQLite's.
func code(err error) int {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return 0
	}
	return failed.Code() & 0xff
}
