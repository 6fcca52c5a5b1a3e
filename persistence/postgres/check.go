package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/threadcast/threadcast/persistence/thread"
)

// ErrUnfit says that a server answers, and is not one to keep a history on.
var ErrUnfit = errors.New("this Postgres cannot keep a history")

// oldest is the first version of Postgres that is good enough.
const oldest = 13

// check asks the server for what has to be so.
func check(ctx context.Context, db *sql.DB) error {
	var version int
	var encoding string
	err := db.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).
		Scan(&version, &encoding)
	if err != nil {
		return err
	}
	return fit(version, encoding)
}

// fit tells whether a server of that version, in the form 150018, and encoding is good enough.
func fit(version int, encoding string) error {
	if version/10000 < oldest {
		return fmt.Errorf("%w: its version is %d; use %d or newer", ErrUnfit, version/10000, oldest)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: its encoding is %s, which does not hold every text: make the database with "+
			"CREATE DATABASE ... TEMPLATE template0 ENCODING 'UTF8'", ErrUnfit, encoding)
	}
	return nil
}

// hints say what to do about an error of the server, by its code.
var hints = map[string]string{
	"28P01": "the password is wrong",
	"28000": "it does not let this user in; see its pg_hba.conf",
	"3D000": "there is no such database; make it with createdb",
	"42501": "the user may not use the database",
	"53300": "it has no connection left; raise its max_connections, or lower pool_max_conns in the URL",
	"57P03": "it is starting up, or shutting down; try again",
	"08P01": "it refuses a parameter; with PgBouncer, list statement_timeout, lock_timeout and " +
		"idle_in_transaction_session_timeout in its ignore_startup_parameters",
}

// describe says in a sentence why a database cannot be used.
func describe(ctx context.Context, conn *pgx.ConnConfig, err error) error {
	where := net.JoinHostPort(conn.Host, strconv.Itoa(int(conn.Port))) + "/" + conn.Database
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("open the Postgres database %s: %w", where, context.Cause(ctx))
	}
	if errors.Is(err, ErrUnfit) {
		return fmt.Errorf("open the Postgres database %s: %w", where, err)
	}
	hint := "is it running, and can it be reached from here?"
	if errors.Is(err, pgconn.ErrReadOnlyConnection) {
		hint = "it takes no writes, as a replica does: name the primary"
	}
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		hint = "it answers with an error"
		if known, ok := hints[failed.Code]; ok {
			hint = known
		}
	}
	return fmt.Errorf("open the Postgres database %s: %s: %w: %w", where, hint, thread.ErrUnavailable, err)
}
