package redislog_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// pair is one log by way of two nodes. Who writes a run stays on the first; who looks on does so from the second, or in
// turns.
type pair struct {
	nodes [2]*redislog.Log
	turn  atomic.Int64
}

func (p *pair) home() *redislog.Log { return p.nodes[0] }
func (p *pair) away() *redislog.Log { return p.nodes[1] }
func (p *pair) any() *redislog.Log  { return p.nodes[p.turn.Add(1)%2] }

func (p *pair) Append(ctx context.Context, lease thread.Lease, entries []thread.Entry) error {
	return p.home().Append(ctx, lease, entries)
}

func (p *pair) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	return p.away().Tail(ctx, id, after, fn)
}

func (p *pair) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	return p.away().Read(ctx, id, after, limit)
}

func (p *pair) Head(ctx context.Context, id thread.ID) (thread.Cursor, error) {
	return p.any().Head(ctx, id)
}

func (p *pair) Drop(ctx context.Context, id thread.ID, run uint64, keep time.Duration) error {
	return p.any().Drop(ctx, id, run, keep)
}

func (p *pair) Forget(ctx context.Context, lease thread.Lease) error {
	return p.any().Forget(ctx, lease)
}

func (p *pair) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	return p.home().Acquire(ctx, claim, ttl)
}

func (p *pair) Renew(ctx context.Context, lease thread.Lease, ttl time.Duration) (thread.Lease, error) {
	return p.home().Renew(ctx, lease, ttl)
}

func (p *pair) Release(ctx context.Context, lease thread.Lease) error {
	return p.home().Release(ctx, lease)
}

func (p *pair) Holder(ctx context.Context, id thread.ID) (thread.Lease, error) {
	return p.away().Holder(ctx, id)
}

func (p *pair) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error) {
	return p.away().AskStop(ctx, id, req)
}

func (p *pair) Abandoned(ctx context.Context, limit int) ([]thread.Lease, error) {
	return p.away().Abandoned(ctx, limit)
}

func (p *pair) Close() error {
	return errors.Join(p.nodes[0].Close(), p.nodes[1].Close())
}
