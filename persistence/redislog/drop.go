package redislog

import (
	"context"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Drop removes a run's entries after keep has passed, at once if keep is not positive; Redis does it by itself. A
// repeated call replaces the earlier one. Dropping what is not there is no error.
func (l *Log) Drop(ctx context.Context, id thread.ID, number uint64, keep time.Duration) error {
	_, err := l.run(ctx, call{
		script: l.scripts.drop,
		keys:   []string{l.keys.active(id), l.keys.stream(id, number), l.keys.lock(id)},
		args:   []any{number, keep.Milliseconds(), l.keys.streams(id)},
	})
	if err != nil {
		return fmt.Errorf("drop run %d of thread %s: %w", number, id, err)
	}
	return nil
}

// Forget removes all entries of the lease's thread at once, and ends its tails on all nodes with [thread.ErrDeleted]. The
// lease stays: who deletes a thread holds it meanwhile, so that no run begins. [thread.ErrLeaseLost] if it is not the
// current one.
func (l *Log) Forget(ctx context.Context, ls thread.Lease) error {
	id, group := ls.Thread, groupOf(ls.Thread)
	list, err := l.run(ctx, call{
		script: l.scripts.forget,
		keys:   []string{l.keys.active(id), l.keys.counters(group), l.keys.news(group), l.keys.lock(id)},
		args:   []any{string(id), l.keys.streams(id), l.opts.Lock.Milliseconds(), ls.Token},
	})
	if err == nil && fields(list)[0] == "lost" {
		err = thread.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("forget thread %s: %w", id, err)
	}
	return nil
}
