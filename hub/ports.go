package hub

import (
	"context"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Log is what the hub needs of a live log. Implementations are safe for concurrent use, pass logtest, and
// return entries in the order of their cursors.
type Log interface {
	// Tail calls fn once with no entries (nil), as soon as nothing that happens from then on escapes it, a deletion
	// of the thread included. After that it calls fn with the entries after the given cursor: first those that are
	// there, then others as they become readable, each once, in order, in non-empty batches. It blocks until ctx is
	// done (and returns its cause), fn returns an error (and returns that), the thread is deleted
	// ([thread.ErrDeleted]), or the log fails ([thread.ErrUnavailable]); any of these may come before the first
	// call. Within one run it never leaves out an entry; between two runs it may, when whole runs were dropped in
	// the meantime. fn must not block and must not change the entries.
	Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error
	// Read returns up to limit entries after the given cursor, in order, crossing runs; none if there are none.
	Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error)
	// Head returns the position of the thread's last entry in the log; the zero cursor if there is none.
	Head(ctx context.Context, id thread.ID) (thread.Cursor, error)
}

// History is what the hub needs of the history.
type History interface {
	// NextRun returns the first finished run of the thread whose number is greater than after, with its
	// events, or [thread.ErrNotFound]. A run that has left the live log is always found here.
	NextRun(ctx context.Context, id thread.ID, after uint64) (thread.Run, error)
	// Thread returns what is known of a thread, deleted ones included; [thread.ErrNotFound] for one that
	// never was.
	Thread(ctx context.Context, id thread.ID) (thread.Thread, error)
}
