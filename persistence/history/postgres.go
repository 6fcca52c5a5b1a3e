package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// NewPostgres returns the history in a Postgres database and brings its schema up to date; nodes that do so at the same
// time wait for each other. pool is of the database's connections, with limits as package postgres sets them.
//
// No call waits for ever, whatever became of the server or the link: see [Options.Patience].
func NewPostgres(ctx context.Context, pool *sql.DB, opts Options) (*History, error) {
	opts = opts.withDefaults()
	db, err := openPostgres(pool, opts)
	if err != nil {
		return nil, err
	}
	h, err := open(ctx, db, db, opts)
	if err != nil {
		return nil, err
	}
	h.patience = opts.Patience // from now on: a migration takes as long as it takes
	if err := bound(db, opts.Patience); err != nil {
		return nil, fmt.Errorf("open the history: %w", err)
	}
	return h, nil
}

func openPostgres(pool *sql.DB, opts Options) (*gorm.DB, error) {
	config := &gorm.Config{TranslateError: true, DisableAutomaticPing: true, Logger: newLogger(opts.Logger)}
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), config)
	if err != nil {
		return nil, fmt.Errorf("open the history: %w", meaning(context.Background(), err))
	}
	return db.Session(quiet(opts)), nil
}

// try runs fn in a transaction, once. It gives the transaction up when the server was silent for longer than h.patience;
// how long all of it takes does not matter.
func (h *database) try(ctx context.Context, fn func(tx *gorm.DB) error) error {
	if h.patience == 0 {
		return h.writer.WithContext(ctx).Transaction(fn)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(h.patience, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	err := h.writer.WithContext(context.WithValue(bounded, silenceKey{}, silence)).Transaction(fn)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return fmt.Errorf("no answer for %v: %w", h.patience, context.Cause(bounded))
	}
	return err
}

// silenceKey is where the context of a transaction has the timer that gives it up.
type silenceKey struct{}

// cancelKey is where a statement has what ends its deadline.
const cancelKey = "threadcast:cancel"

// bound gives each statement of db a deadline, or puts off that of the transaction that it is a part of. GORM's Row, Rows
// and Scan are not bound, since what they return is read after the statement.
func bound(db *gorm.DB, patience time.Duration) error {
	begin := func(tx *gorm.DB) {
		if silence, ok := tx.Statement.Context.Value(silenceKey{}).(*time.Timer); ok {
			silence.Reset(patience)
			return
		}
		ctx, cancel := context.WithTimeout(tx.Statement.Context, patience)
		tx.Statement.Context = ctx
		tx.InstanceSet(cancelKey, cancel)
	}
	end := func(tx *gorm.DB) {
		if cancel, ok := tx.InstanceGet(cancelKey); ok {
			cancel.(context.CancelFunc)()
		}
	}
	on := db.Callback()
	const first, last = "threadcast:begin", "threadcast:end"
	return errors.Join(
		on.Create().Before("*").Register(first, begin), on.Create().After("*").Register(last, end),
		on.Query().Before("*").Register(first, begin), on.Query().After("*").Register(last, end),
		on.Update().Before("*").Register(first, begin), on.Update().After("*").Register(last, end),
		on.Delete().Before("*").Register(first, begin), on.Delete().After("*").Register(last, end),
	)
}
