package sqlitefile

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/threadcast/threadcast/persistence/thread"
)

// IsBusy tells whether err says that another connection holds a lock, so that the same may succeed later:
// SQLITE_BUSY in any form (SQLITE_BUSY_SNAPSHOT, 517, among them) or SQLITE_LOCKED.
func IsBusy(err error) bool {
	return is(err, lib.SQLITE_BUSY, lib.SQLITE_LOCKED)
}

// IsCorrupt tells whether err says that the file is damaged, or not a SQLite database.
func IsCorrupt(err error) bool {
	return is(err, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB)
}

// is tells whether err is an error of SQLite with one of the primary codes.
func is(err error, codes ...int) bool {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return false
	}
	for _, code := range codes {
		if failed.Code()&0xff == code {
			return true
		}
	}
	return false
}

// describe says in a sentence what is wrong with the file; nil if err is.
func describe(path, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case is(err, lib.SQLITE_NOTADB):
		return notDatabase(path)
	case IsCorrupt(err):
		return damaged(path, err.Error())
	case IsBusy(err):
		return fmt.Errorf("%s %s: another program has locked the file; close whatever has it open, "+
			"such as sqlite3, and start again: %w: %w", doing, path, thread.ErrUnavailable, err)
	case is(err, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PERM):
		return fmt.Errorf("%s %s: the file and its directory have to be writable: %w: %w",
			doing, path, thread.ErrUnavailable, err)
	}
	return fmt.Errorf("%s %s: %w: %w", doing, path, thread.ErrUnavailable, err)
}

func notDatabase(path string) error {
	return fmt.Errorf("%s is not a SQLite database; choose another file, or move it away: %w", path, thread.ErrCorrupt)
}

func damaged(path, how string) error {
	return fmt.Errorf("%s is damaged: %s; restore it from a backup, or move it away and read what is left with "+
		"\"sqlite3 FILE .recover\": %w", path, how, thread.ErrCorrupt)
}
