package history

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"gorm.io/gorm"
)

// LatestSchema is the version that a database has after it was opened.
var LatestSchema = migrations[len(migrations)-1].version

// MigrateTo brings a file to an older schema, by the steps that made it then.
func MigrateTo(ctx context.Context, writer *sql.DB, version int) error {
	db, err := openSQLite(writer, Options{}.withDefaults())
	if err != nil {
		return err
	}
	return migrateTo(ctx, db, version)
}

// MigratePostgresTo brings a Postgres database to an older schema, by the steps that made it then.
func MigratePostgresTo(ctx context.Context, pool *sql.DB, version int) error {
	db, err := openPostgres(pool, Options{}.withDefaults())
	if err != nil {
		return err
	}
	return migrateTo(ctx, db, version)
}

func migrateTo(ctx context.Context, db *gorm.DB, version int) error {
	h := &database{writer: db, now: time.Now, wait: pause}
	return h.migrate(ctx, migrations[:version], slog.New(slog.DiscardHandler))
}

// OnWait makes wait stand for the time between two attempts of a transaction.
func (h *History) OnWait(wait func(d time.Duration) error) {
	h.wait = func(_ context.Context, d time.Duration) error { return wait(d) }
}

// MigrationLock is the key of the lock that one process holds while it migrates a Postgres database.
const MigrationLock = migrationLock
