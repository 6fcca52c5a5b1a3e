package redislog

import (
	"context"
	"errors"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How long a tail waits before it reads again when it could not.
const (
	retryFirst   = 50 * time.Millisecond
	retryLongest = time.Second
)

// Tail calls fn once with no entries, as soon as nothing that happens from then on escapes it, a [Log.Forget] on any
// node included; after that with the entries after the given cursor, first those that are there, then others as they
// are appended, each once, in order, in non-empty batches. It returns the cause of ctx when that is done, the error of
// fn, [thread.ErrDeleted] when the thread is forgotten, and [thread.ErrUnavailable] when the log is closed, cannot be
// read at the beginning, or has lost entries that this tail handed out or would have to hand out. While Redis cannot
// be reached it waits, and goes on where it was. When a run is dropped before all of it was handed out, the rest of it
// is left out.
func (l *Log) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := &tail{wake: make(chan struct{}, 1), behind: true}
	ln := l.lanes[groupOf(id)]
	defer ln.unwatch(id, t)
	if err := ln.watch(ctx, id, t); err != nil {
		return err
	}
	if err := fn(nil); err != nil {
		return err
	}
	r := reading{ctx: ctx, log: l, thread: id, tail: t, after: after, fn: fn}
	for {
		if err := r.step(); err != nil {
			return err
		}
	}
}

// reading is one call of Tail.
type reading struct {
	ctx    context.Context
	log    *Log
	thread thread.ID
	tail   *tail
	after  thread.Cursor
	ended  bool // the last entry was the end of its run
	fn     func([]thread.Entry) error
}

// step hands out what there is, or waits.
func (r *reading) step() error {
	entries, behind, err := r.tail.take()
	if err != nil {
		return err
	}
	entries = after(entries, r.after)
	if behind || len(entries) > 0 && !follows(r.after, r.ended, entries[0]) {
		return r.catchUp()
	}
	if len(entries) > 0 {
		return r.hand(entries)
	}
	select {
	case <-r.tail.wake:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// catchUp hands out what is in the log. It tries again while the log cannot be read.
func (r *reading) catchUp() error {
	wait := retryFirst
	for {
		entries, err := r.log.readRun(r.ctx, r.thread, r.after, readPage)
		switch {
		case err == nil && len(entries) == 0:
			return nil
		case err == nil:
			if err := r.hand(entries); err != nil {
				return err
			}
			wait = retryFirst
		case r.ctx.Err() != nil || !errors.Is(err, thread.ErrUnavailable) || r.log.closing():
			return err
		default:
			if err := r.await(wait); err != nil {
				return err
			}
			wait = min(2*wait, retryLongest)
		}
	}
}

// await waits, unless the tail is over.
func (r *reading) await(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return r.tail.over()
	case <-r.log.stop:
		return errClosed
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

func (r *reading) hand(entries []thread.Entry) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	first, last := entries[0], entries[len(entries)-1]
	if want := r.after.Seq + 1; first.Run == r.after.Run && first.Seq != want || first.Run != r.after.Run && first.Seq != 1 {
		return errHole
	}
	if err := r.tail.hand(last.Cursor()); err != nil {
		return err
	}
	if err := r.fn(entries); err != nil {
		return err
	}
	r.after, r.ended = last.Cursor(), last.Kind == thread.KindEnd
	return nil
}
