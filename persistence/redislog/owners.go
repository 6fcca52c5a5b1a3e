package redislog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Holder returns the thread's lease while it has not expired, and when its holder was last heard of, else
// [thread.ErrNotFound].
func (l *Log) Holder(ctx context.Context, id thread.ID) (thread.Lease, error) {
	list, err := l.run(ctx, call{script: l.scripts.holder, keys: []string{l.keys.lock(id)}})
	got, err := found(id, list, err)
	if err != nil {
		return thread.Lease{}, fmt.Errorf("find the holder of thread %s: %w", id, err)
	}
	if f := fields(list); len(f) > 6 && f[6] != "" {
		age, err := strconv.ParseInt(f[6], 10, 64)
		if err != nil {
			return thread.Lease{}, fmt.Errorf("%w: the record of the lease of thread %s is %q", thread.ErrCorrupt, id, f)
		}
		got.Seen = time.Now().Add(-time.Duration(age) * time.Microsecond)
	}
	return got, nil
}

// AskStop notes the wish to stop with the lease and wakes its holder, on whichever node it is; [thread.ErrNotFound] if
// the thread's lease is not held or is for another run. An empty RunID means any. Of several wishes the first one
// stays.
func (l *Log) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error) {
	group := groupOf(id)
	list, err := l.runFor(ctx, call{
		script: l.scripts.ask,
		keys:   []string{l.keys.lock(id), l.keys.counters(group), l.keys.news(group)},
		args:   []any{string(id), string(req.RunID), req.By},
	})
	got, err := found(id, list, err)
	if err != nil {
		return thread.Lease{}, fmt.Errorf("ask to stop thread %s: %w", id, err)
	}
	return got, nil
}

// found reads the reply to a question for a lease.
func found(id thread.ID, list []any, err error) (thread.Lease, error) {
	if err != nil {
		return thread.Lease{}, err
	}
	if len(list) == 0 {
		return thread.Lease{}, thread.ErrNotFound
	}
	got, err := readLease(id, fields(list))
	got.Stop = readStop(got.RunID, list)
	return got, err
}

// Abandoned returns up to limit leases that expired and were neither released nor taken over, the longest expired
// first.
func (l *Log) Abandoned(ctx context.Context, limit int) ([]thread.Lease, error) {
	calls := make([]call, Groups)
	for g := range calls {
		calls[g] = call{
			script: l.scripts.abandoned, keys: []string{l.keys.leases(g)}, args: []any{max(limit, 0), l.keys.locks(g)},
		}
	}
	replies, err := l.runAll(ctx, l.commands, calls)
	var all []thread.Lease
	for _, r := range replies {
		if err == nil {
			err = r.err
		}
		for _, one := range r.list {
			list, ok := one.([]any)
			if !ok || err != nil {
				continue
			}
			var lease thread.Lease
			if lease, err = found(thread.ID(fields(list[:1])[0]), list[1:], nil); err == nil {
				all = append(all, lease)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list abandoned leases: %w", err)
	}
	slices.SortFunc(all, func(a, b thread.Lease) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Token, b.Token))
	})
	return all[:min(len(all), max(limit, 0))], nil
}
