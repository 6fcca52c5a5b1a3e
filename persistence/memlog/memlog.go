package memlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Log is a live log with its leases. Its methods are safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	threads map[thread.ID]*topic
	token   uint64 // the latest lease token given
	closed  bool
	done    chan struct{} // closed by Close
}

// topic is what the log holds of one thread. It is there while it holds anything.
type topic struct {
	runs    []*run // by number
	lease   *lease
	changed chan struct{} // closed when entries are added; nil while nobody waits
	deleted chan struct{} // closed by Forget
	tails   int
}

type run struct {
	number  uint64
	id      thread.RunID
	entries []thread.Entry // only ever appended to, so that parts of it can be handed out
	ended   bool
	drop    *time.Timer
}

// New returns an empty log.
func New() *Log {
	return &Log{threads: make(map[thread.ID]*topic), done: make(chan struct{})}
}

// Close ends all tails and stops the timers of [Log.Drop]. Every later call returns [thread.ErrUnavailable].
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	for _, t := range l.threads {
		for _, r := range t.runs {
			r.cancelDrop()
		}
	}
	clear(l.threads)
	return nil
}

var errClosed = fmt.Errorf("live log in memory is closed: %w", thread.ErrUnavailable)

// enter locks the log for a call, or refuses the call; the caller unlocks if there is no error.
func (l *Log) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	return nil
}

// topic returns what is held of a thread, which it creates if need be. The caller holds the lock and calls
// tidy once it is through.
func (l *Log) topic(id thread.ID) *topic {
	t := l.threads[id]
	if t == nil {
		t = &topic{deleted: make(chan struct{})}
		l.threads[id] = t
	}
	return t
}

// tidy lets go of a thread of which nothing is held.
func (l *Log) tidy(id thread.ID) {
	if t := l.threads[id]; t != nil && len(t.runs) == 0 && t.lease == nil && t.tails == 0 {
		delete(l.threads, id)
	}
}

func (t *topic) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

func (r *run) last() uint64 { return uint64(len(r.entries)) }

func (r *run) cancelDrop() {
	if r.drop != nil {
		r.drop.Stop()
		r.drop = nil
	}
}
