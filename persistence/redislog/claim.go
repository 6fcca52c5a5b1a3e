package redislog

import (
	"context"
	"errors"
	"fmt"
)

// ErrForeign is returned for keys that belong to another installation.
var ErrForeign = errors.New("these keys belong to another database")

// Claim notes whose runs are under the prefix: those of the history with this name. Of different names the first one has
// it, and the others get an [ErrForeign]: two histories give the same numbers to different runs. From then on the log sees to
// it that the note stays, should Redis lose its data, and is not healthy if it becomes another's.
func (l *Log) Claim(ctx context.Context, history string) error {
	if err := l.claim(ctx, history); err != nil {
		return err
	}
	l.history.Store(&history)
	return nil
}

func (l *Log) claim(ctx context.Context, history string) error {
	key := l.keys.prefix + "history"
	list, err := l.run(ctx, call{script: l.scripts.claim, keys: []string{key}, args: []any{history}})
	if err != nil {
		return fmt.Errorf("claim the keys in Redis: %w", err)
	}
	if there := fields(list)[0]; there != history {
		return fmt.Errorf("%w: Redis holds the runs of another database under the prefix %q. Nodes that serve the same threads share "+
			"both; give others a --redis-prefix of their own. If that database is gone for good, delete the key %s",
			ErrForeign, l.keys.prefix, key)
	}
	return nil
}

// claimAgain claims again what was claimed.
func (l *Log) claimAgain() error {
	history := l.history.Load()
	if history == nil {
		return nil
	}
	return l.claim(context.Background(), *history)
}
