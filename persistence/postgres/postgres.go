package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Options are the choices of [Open]. The zero value is right for a server. A parameter of the URL wins over the option
// that it is named with.
type Options struct {
	// MaxConns is the greatest number of connections; 10 if zero (pool_max_conns).
	MaxConns int
	// Lifetime is how long a connection is used, so that a node finds its way to a new primary; 5 minutes if zero
	// (pool_max_conn_lifetime).
	Lifetime time.Duration
	// StatementTimeout is how long the server works on one statement; 30 seconds if zero (statement_timeout).
	StatementTimeout time.Duration
	// LockTimeout is how long a statement waits for a lock; 15 seconds if zero (lock_timeout).
	LockTimeout time.Duration
	// IdleInTransaction is how long the server waits for the next statement of a transaction. Then it gives up the
	// transaction, and with it what a node has locked that was frozen in the middle of it; less than LockTimeout, so that
	// those who wait for the lock get it; 10 seconds if zero (idle_in_transaction_session_timeout).
	IdleInTransaction time.Duration
}

func (o Options) withDefaults() Options {
	o.MaxConns = cmp.Or(o.MaxConns, 10)
	o.Lifetime = cmp.Or(o.Lifetime, 5*time.Minute)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, 30*time.Second)
	o.LockTimeout = cmp.Or(o.LockTimeout, 15*time.Second)
	o.IdleInTransaction = cmp.Or(o.IdleInTransaction, 10*time.Second)
	return o
}

// Open returns a pool of connections to the database of a postgres:// URL, which may name several hosts: those that take
// no writes are passed over. A URL that cannot be read is [thread.ErrBadInput]; a server that cannot be reached, or has
// no such database or user, is [thread.ErrUnavailable]; one that would not keep what it is given, [ErrUnfit].
func Open(ctx context.Context, url string, opts Options) (*sql.DB, error) {
	target, err := parse(url, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(stdlib.GetConnector(*target.conn, stdlib.OptionShouldPing(shouldPing)))
	db.SetMaxOpenConns(target.maxConns)
	db.SetMaxIdleConns(target.maxConns)
	db.SetConnMaxLifetime(target.lifetime)
	db.SetConnMaxIdleTime(target.idleTime)
	if err := check(ctx, db); err != nil {
		return nil, errors.Join(describe(ctx, target.conn, err), db.Close())
	}
	return db, nil
}

// target is what a URL says.
type target struct {
	conn     *pgx.ConnConfig
	maxConns int
	lifetime time.Duration
	idleTime time.Duration
}

// shouldPing tells whether to ask a server if it is still there, before a connection is used that was idle. Who has no
// time left cannot wait for the answer; the driver would take that for a fault of the connection, and close it, slowly.
func shouldPing(ctx context.Context, conn stdlib.ShouldPingParams) bool {
	return conn.IdleDuration > time.Second && ctx.Err() == nil
}
