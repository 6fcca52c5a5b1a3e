package sqllog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// migrations are the steps from an empty database to the present tables; step i makes version i+1 of version i. A
// step that was released never changes.
var migrations = []string{`
	CREATE TABLE log_runs (
		ref INTEGER PRIMARY KEY, -- what the entries name the run by; another if the run is dropped and made anew
		thread TEXT NOT NULL, run INTEGER NOT NULL, run_id TEXT NOT NULL,
		drop_at INTEGER, -- unix milliseconds; null while nobody asked to drop it
		UNIQUE (thread, run)
	) STRICT;
	CREATE TABLE log_recent ( -- the latest entries of all runs, in the order in which they came
		id INTEGER PRIMARY KEY,
		ref INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, data BLOB NOT NULL
	) STRICT;
	CREATE TABLE log_entries ( -- the entries before, run by run
		ref INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, data BLOB NOT NULL,
		PRIMARY KEY (ref, seq)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE log_garbage ( -- runs that were dropped and have rows in log_entries
		ref INTEGER PRIMARY KEY
	) STRICT;
	CREATE TABLE log_leases (
		thread TEXT PRIMARY KEY, run_id TEXT NOT NULL, owner TEXT NOT NULL, token INTEGER NOT NULL,
		acquired INTEGER NOT NULL, -- unix milliseconds; the deadline is known to the process alone, and ends with it
		stop_by TEXT -- who wishes to stop the run; null if nobody does
	) STRICT, WITHOUT ROWID;
	INSERT INTO log_meta (name, value) VALUES ('token', 0);
`}

const setVersion = `INSERT INTO log_meta (name, value) VALUES ('version', ?)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// migrate brings the tables to the present version, or refuses those of a later one.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS log_meta (
		name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID`); err != nil {
		return classify(err)
	}
	var version int
	err = tx.QueryRowContext(ctx, `SELECT value FROM log_meta WHERE name = 'version'`).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return classify(err)
	}
	if version > len(migrations) {
		return fmt.Errorf("the file was written by a later version of threadcast (its live log is version %d, "+
			"this program knows %d); start that version, or choose another file: %w",
			version, len(migrations), thread.ErrUnavailable)
	}
	for ; version < len(migrations); version++ {
		if _, err := tx.ExecContext(ctx, migrations[version]); err != nil {
			return fmt.Errorf("make version %d of the live log: %w", version+1, classify(err))
		}
		if _, err := tx.ExecContext(ctx, setVersion, version+1); err != nil {
			return classify(err)
		}
	}
	if err := tx.Commit(); err != nil {
		return classify(err)
	}
	return nil
}
