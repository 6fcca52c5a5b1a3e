package history

import (
	"context"
	"fmt"
	"log/slog"

	"gorm.io/gorm"
)

const postgresDialect = "postgres"

// migrationLock is the key of the Postgres advisory lock that one process holds while it migrates.
const migrationLock = 0x7468726561646361 // "threadca"

// migrate applies the steps that the database does not have yet, each in a transaction of its own that also
// records it. Processes that migrate at the same time wait for each other.
func (h *database) migrate(ctx context.Context, steps []migration, log *slog.Logger) error {
	for {
		applied := 0
		err := h.write(ctx, func(tx *gorm.DB) (err error) {
			applied, err = h.migrateOnce(tx, steps)
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate the schema: %w", err)
		}
		if applied == 0 {
			return nil
		}
		log.InfoContext(ctx, "history schema migrated", "version", applied)
	}
}

// migrateOnce applies the first step that is missing and returns its version, or 0 if there is none.
func (h *database) migrateOnce(tx *gorm.DB, steps []migration) (int, error) {
	dialect := tx.Name()
	if dialect == postgresDialect {
		if err := lockSchema(tx); err != nil {
			return 0, err
		}
	}
	if err := tx.Exec(inDialect(dialect, createSchemaVersion)).Error; err != nil {
		return 0, err
	}
	current, err := schemaVersion(tx)
	if err != nil {
		return 0, err
	}
	if known := steps[len(steps)-1].version; current > known {
		return 0, fmt.Errorf("%w: the database has schema version %d, and this program knows no later one than %d: "+
			"run a newer threadcast", ErrSchema, current, known)
	}
	for _, step := range steps {
		if step.version > current {
			return step.version, h.apply(tx, step)
		}
	}
	return 0, nil
}

// lockSchema waits until no other process migrates a Postgres database, and takes away the limits that the connection has
// for statements of every day.
func lockSchema(tx *gorm.DB) error {
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		if err := tx.Exec("SET LOCAL " + limit + " = 0").Error; err != nil {
			return err
		}
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(?)", int64(migrationLock)).Error
}

func (h *database) apply(tx *gorm.DB, step migration) error {
	statements := step.statements
	if tx.Name() == postgresDialect && step.postgres != nil {
		statements = step.postgres
	}
	for _, statement := range statements {
		if err := tx.Exec(inDialect(tx.Name(), statement)).Error; err != nil {
			return fmt.Errorf("version %d: %w", step.version, err)
		}
	}
	return tx.Create(&SchemaVersion{Version: step.version, AppliedAt: millis(h.now())}).Error
}

// schemaVersion is the latest version that was applied, 0 for an empty database. A database that has a version
// but not these tables belongs to the TypeScript runner, which used the same names.
func schemaVersion(tx *gorm.DB) (int, error) {
	var version int
	err := tx.Model(&SchemaVersion{}).Select("COALESCE(MAX(version), 0)").Scan(&version).Error
	if err != nil {
		return 0, err
	}
	if version > 0 && !tx.Migrator().HasTable(&Thread{}) {
		return 0, fmt.Errorf("%w: the database has a schema_version of another program and no table threads: "+
			"give threadcast a database of its own", ErrSchema)
	}
	return version, nil
}
