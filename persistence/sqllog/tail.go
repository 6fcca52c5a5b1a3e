package sqllog

import (
	"context"
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How much waits for a tail in memory at most; a tail that is slower reads from the file. A single batch may be
// greater.
const (
	mailboxEntries = 1024
	mailboxBytes   = 1 << 20
)

// tailPage is how much a tail reads from the file at once.
var tailPage = bound{entries: 512, bytes: 1 << 20}

// tail is a reader of a thread that waits for what is committed.
type tail struct {
	wake chan struct{} // receives when there is something to look at

	mu      sync.Mutex
	waiting []thread.Entry // committed since it last looked, without a hole unless behind
	bytes   int            // of waiting
	behind  bool           // there was more than fits: it has to read the file
	err     error          // why it is over
}

// put hands entries to the tail.
func (t *tail) put(entries []thread.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.behind:
		return
	case len(t.waiting) == 0:
		t.waiting = entries[:len(entries):len(entries)]
	case len(t.waiting)+len(entries) > mailboxEntries || t.bytes > mailboxBytes:
		t.waiting, t.bytes, t.behind = nil, 0, true
		return
	default:
		t.waiting = append(t.waiting, entries...)
	}
	for _, e := range entries {
		t.bytes += len(e.Data)
	}
	t.poke()
}

// fallBehind makes the tail read the file.
func (t *tail) fallBehind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting, t.bytes, t.behind = nil, 0, true
	t.poke()
}

func (t *tail) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	t.poke()
}

func (t *tail) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns what waits. If the tail is behind, it returns that instead, and from now on entries wait again: what is
// in the file by now, and what waits later, leave nothing out.
func (t *tail) take() (entries []thread.Entry, behind bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries, behind, err = t.waiting, t.behind, t.err
	t.waiting, t.bytes, t.behind = nil, 0, false
	return entries, behind, err
}

// ended returns why the tail is over, or nil.
func (t *tail) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Tail calls fn once with no entries, as soon as nothing that happens from then on escapes it, a [Log.Forget]
// included; after that with the entries after the given cursor, first those that are there, then others as they are
// committed, each once, in order, in non-empty batches. It returns the cause of ctx when that is done, the error of
// fn, [thread.ErrDeleted] when the thread is forgotten, [thread.ErrUnavailable] when the log is closed or the file
// cannot be read, and [thread.ErrCorrupt] when that is damaged. When a run is dropped before all of it was
// handed out, the rest of it is left out.
func (l *Log) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	t := l.index.addTail(id)
	defer l.index.removeTail(id, t)
	// A Close that came in between has ended the tails that were there.
	if err := l.enter(ctx); err != nil {
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

func (x *index) addTail(id thread.ID) *tail {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := &tail{wake: make(chan struct{}, 1), behind: true}
	x.topic(id).tails[t] = struct{}{}
	return t
}

func (x *index) removeTail(id thread.ID, t *tail) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if topic := x.topics[id]; topic != nil {
		delete(topic.tails, t)
		x.tidy(id)
	}
}

// reading is one call of Tail.
type reading struct {
	ctx    context.Context
	log    *Log
	thread thread.ID
	tail   *tail
	after  thread.Cursor
	fn     func([]thread.Entry) error
}

// step hands out what there is, or waits.
func (r *reading) step() error {
	entries, behind, err := r.tail.take()
	if err != nil {
		return err
	}
	if behind {
		return r.catchUp()
	}
	for len(entries) > 0 && !r.after.Before(entries[0].Cursor()) {
		entries = entries[1:]
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

// catchUp hands out what is in the file.
func (r *reading) catchUp() error {
	for {
		entries, err := r.log.readRun(r.ctx, r.thread, r.after, tailPage)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := r.tail.ended(); err != nil {
			return err
		}
		if err := r.hand(entries); err != nil {
			return err
		}
	}
}

func (r *reading) hand(entries []thread.Entry) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := r.fn(entries); err != nil {
		return err
	}
	r.after = entries[len(entries)-1].Cursor()
	return nil
}
