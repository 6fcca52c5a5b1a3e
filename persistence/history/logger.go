package history

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm/logger"
)

// slow is how long a statement may take before it is worth a line in the log.
const slow = time.Second

// bridge is GORM's logger: it passes on statements that took long, without their values. Errors it drops,
// since they are returned.
type bridge struct{ log *slog.Logger }

func newLogger(log *slog.Logger) logger.Interface { return bridge{log} }

// LogMode changes nothing: the level is that of the slog handler.
func (b bridge) LogMode(logger.LogLevel) logger.Interface { return b }

// Info logs at debug level; GORM uses it for its own progress.
func (b bridge) Info(ctx context.Context, msg string, data ...any) {
	b.log.DebugContext(ctx, fmt.Sprintf(msg, data...)) //nolint:sloglint // the words are GORM's
}

// Warn logs a warning of GORM.
func (b bridge) Warn(ctx context.Context, msg string, data ...any) {
	b.log.WarnContext(ctx, fmt.Sprintf(msg, data...)) //nolint:sloglint // the words are GORM's
}

// Error logs at debug level, since what goes wrong is returned as well.
func (b bridge) Error(ctx context.Context, msg string, data ...any) {
	b.log.DebugContext(ctx, fmt.Sprintf(msg, data...)) //nolint:sloglint // the words are GORM's
}

// Trace logs a statement that took long.
func (b bridge) Trace(ctx context.Context, begin time.Time, statement func() (string, int64), _ error) {
	took := time.Since(begin)
	if took < slow {
		return
	}
	text, rows := statement()
	b.log.WarnContext(ctx, "slow SQL statement", "took", took, "rows", rows, "sql", text)
}

// ParamsFilter keeps the values of a statement, which are users' words, out of the log.
func (b bridge) ParamsFilter(_ context.Context, statement string, _ ...any) (string, []any) {
	return statement, nil
}
