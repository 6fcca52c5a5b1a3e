package logtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Method names a method of [Log].
type Method string

// The methods that can be made to fail.
const (
	Append    Method = "Append"
	Tail      Method = "Tail"
	Read      Method = "Read"
	Head      Method = "Head"
	Drop      Method = "Drop"
	Forget    Method = "Forget"
	Acquire   Method = "Acquire"
	Renew     Method = "Renew"
	Release   Method = "Release"
	Holder    Method = "Holder"
	AskStop   Method = "AskStop"
	Abandoned Method = "Abandoned"
)

// Fault is what happens to one call. The zero Fault is none.
type Fault struct {
	// Wait, if not nil, holds the call back until it is closed or the call's context is done.
	Wait <-chan struct{}
	// Err, if not nil, is what the call returns instead of being made.
	Err error
	// Cut makes the call and loses its reply: it returns [thread.ErrUnavailable], or Err if that is set, although
	// the log has done what was asked. A Tail is made as usual and then fails so.
	Cut bool
}

// FaultyLog passes calls on to another log, and fails those that it was told to. It is safe for concurrent use.
type FaultyLog struct {
	log Log

	mu     sync.Mutex
	calls  map[Method]int
	faults map[Method]map[int]Fault
	down   error
}

// Faulty wraps a log so that it can be made to fail.
func Faulty(log Log) *FaultyLog {
	return &FaultyLog{log: log, calls: make(map[Method]int), faults: make(map[Method]map[int]Fault)}
}

// Inject makes the nth call of a method from now on, counted from 1, meet a fault.
func (f *FaultyLog) Inject(m Method, nth int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults[m] == nil {
		f.faults[m] = make(map[int]Fault)
	}
	f.faults[m][f.calls[m]+nth] = fault
}

// Down makes every call fail with err from now on, tails that run already excepted, until [FaultyLog.Up].
func (f *FaultyLog) Down(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// Up ends [FaultyLog.Down].
func (f *FaultyLog) Up() { f.Down(nil) }

// Calls tells how often a method was called.
func (f *FaultyLog) Calls(m Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[m]
}

// call makes a call unless it meets a fault.
func (f *FaultyLog) call(ctx context.Context, m Method, do func() error) error {
	f.mu.Lock()
	f.calls[m]++
	fault := f.faults[m][f.calls[m]]
	if f.down != nil {
		fault = Fault{Err: f.down}
	}
	f.mu.Unlock()
	if fault.Wait != nil {
		select {
		case <-fault.Wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch {
	case fault.Cut:
		if err := do(); err != nil {
			return err
		}
		if fault.Err == nil {
			return fmt.Errorf("%s: the reply was lost: %w", m, thread.ErrUnavailable)
		}
		return fault.Err
	case fault.Err != nil:
		return fault.Err
	}
	return do()
}

// Close closes the log; it meets no fault.
func (f *FaultyLog) Close() error { return f.log.Close() }

// Append is that of the log, or a fault.
func (f *FaultyLog) Append(ctx context.Context, lease thread.Lease, entries []thread.Entry) error {
	return f.call(ctx, Append, func() error { return f.log.Append(ctx, lease, entries) })
}

// Tail is that of the log, or a fault.
func (f *FaultyLog) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	return f.call(ctx, Tail, func() error { return f.log.Tail(ctx, id, after, fn) })
}

// Read is that of the log, or a fault.
func (f *FaultyLog) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	return reply(ctx, f, Read, func() ([]thread.Entry, error) { return f.log.Read(ctx, id, after, limit) })
}

// Head is that of the log, or a fault.
func (f *FaultyLog) Head(ctx context.Context, id thread.ID) (thread.Cursor, error) {
	return reply(ctx, f, Head, func() (thread.Cursor, error) { return f.log.Head(ctx, id) })
}

// Drop is that of the log, or a fault.
func (f *FaultyLog) Drop(ctx context.Context, id thread.ID, run uint64, keep time.Duration) error {
	return f.call(ctx, Drop, func() error { return f.log.Drop(ctx, id, run, keep) })
}

// Forget is that of the log, or a fault.
func (f *FaultyLog) Forget(ctx context.Context, lease thread.Lease) error {
	return f.call(ctx, Forget, func() error { return f.log.Forget(ctx, lease) })
}

// Acquire is that of the log, or a fault.
func (f *FaultyLog) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	return reply(ctx, f, Acquire, func() (thread.Lease, error) { return f.log.Acquire(ctx, claim, ttl) })
}

// Renew is that of the log, or a fault.
func (f *FaultyLog) Renew(ctx context.Context, lease thread.Lease, ttl time.Duration) (thread.Lease, error) {
	return reply(ctx, f, Renew, func() (thread.Lease, error) { return f.log.Renew(ctx, lease, ttl) })
}

// Release is that of the log, or a fault.
func (f *FaultyLog) Release(ctx context.Context, lease thread.Lease) error {
	return f.call(ctx, Release, func() error { return f.log.Release(ctx, lease) })
}

// Holder is that of the log, or a fault.
func (f *FaultyLog) Holder(ctx context.Context, id thread.ID) (thread.Lease, error) {
	return reply(ctx, f, Holder, func() (thread.Lease, error) { return f.log.Holder(ctx, id) })
}

// AskStop is that of the log, or a fault.
func (f *FaultyLog) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error) {
	return reply(ctx, f, AskStop, func() (thread.Lease, error) { return f.log.AskStop(ctx, id, req) })
}

// Abandoned is that of the log, or a fault.
func (f *FaultyLog) Abandoned(ctx context.Context, limit int) ([]thread.Lease, error) {
	return reply(ctx, f, Abandoned, func() ([]thread.Lease, error) { return f.log.Abandoned(ctx, limit) })
}

// reply is call for a method with a result, which is lost with an error.
func reply[T any](ctx context.Context, f *FaultyLog, m Method, do func() (T, error)) (T, error) {
	var got, none T
	err := f.call(ctx, m, func() (err error) {
		got, err = do()
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}
