package redislog

import (
	"context"
	"errors"
	"fmt"
)

// ErrForeign is returned for keys that belong to another installation.
var ErrForeign = errors.New("these keys belong to another database")

// Claim notes whose runs are under the prefix: those of the history with this name. Of different names the first one has
// it, and the others get an [ErrForeign]: two histories give the same numbers to different runs.
func (l *Log) Claim(ctx context.Context, history string) error {
	ctx, cancel, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	key := l.keys.prefix + "history"
	err = l.commands.SetNX(ctx, key, history, 0).Err()
	var there string
	if err == nil {
		there, err = l.commands.Get(ctx, key).Result()
	}
	if err != nil {
		return fmt.Errorf("claim the keys in Redis: %w", l.classify(ctx, err))
	}
	if there != history {
		return fmt.Errorf("%w: Redis holds the runs of another database under the prefix %q. Nodes that serve the same threads share "+
			"both; give others a --redis-prefix of their own. If that database is gone for good, delete the key %s",
			ErrForeign, l.keys.prefix, key)
	}
	return nil
}
