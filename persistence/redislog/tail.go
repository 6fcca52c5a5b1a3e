package redislog

import (
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How much waits for a tail in memory at most; a tail that is slower reads for itself. A single batch may be greater.
const (
	mailboxEntries = 1024
	mailboxBytes   = 1 << 20
)

// tail is a reader of a thread that waits for what its lane brings.
type tail struct {
	wake chan struct{} // receives when there is something to look at

	mu      sync.Mutex
	waiting []thread.Entry // brought since it last looked, without a hole unless behind
	bytes   int            // of waiting
	behind  bool           // it has to read for itself
	handed  thread.Cursor  // of the last entry that was handed out
	began   bool           // since is known
	since   position       // of the news when it began: what was said before does not concern it
	gone    position       // of the latest news that the thread was deleted
	err     error          // why it is over
}

// put hands entries of one run to the tail, which follow each other. It may have had them before.
func (t *tail) put(entries []thread.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := entries[len(entries)-1]; last.Kind == thread.KindEnd && last.Run == t.handed.Run && last.Seq < t.handed.Seq {
		t.end(errShrunk)
		return
	}
	if t.behind {
		return
	}
	if n := len(t.waiting); n > 0 {
		last := t.waiting[n-1]
		entries = after(entries, last.Cursor())
		if len(entries) == 0 {
			return
		}
		if !follows(last.Cursor(), last.Kind == thread.KindEnd, entries[0]) {
			t.fallBehind()
			return
		}
		if n+len(entries) > mailboxEntries || t.bytes > mailboxBytes {
			t.fallBehind()
			return
		}
	}
	if len(t.waiting) == 0 {
		t.waiting = entries[:len(entries):len(entries)]
	} else {
		t.waiting = append(t.waiting, entries...)
	}
	for _, e := range entries {
		t.bytes += len(e.Data)
	}
	t.poke()
}

// after returns those of the entries that are after a cursor.
func after(entries []thread.Entry, c thread.Cursor) []thread.Entry {
	for len(entries) > 0 && !c.Before(entries[0].Cursor()) {
		entries = entries[1:]
	}
	return entries
}

// follows tells whether e is the very next entry after at, which is the end of its run or not.
func follows(at thread.Cursor, ended bool, e thread.Entry) bool {
	if e.Run == at.Run {
		return e.Seq == at.Seq+1
	}
	return ended && e.Seq == 1
}

// lag makes the tail read for itself.
func (t *tail) lag() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fallBehind()
}

// fallBehind is lag for who holds the lock.
func (t *tail) fallBehind() {
	t.waiting, t.bytes, t.behind = nil, 0, true
	t.poke()
}

// begin tells the tail where the news stood when it began.
func (t *tail) begin(since position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.since = true, since
	t.judge()
}

// deleted tells the tail that the thread was deleted, and when.
func (t *tail) deleted(at position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone.before(at) {
		t.gone = at
	}
	t.judge()
}

func (t *tail) judge() {
	if t.began && t.since.before(t.gone) {
		t.end(thread.ErrDeleted)
	}
}

// end ends the tail; the lock is held.
func (t *tail) end(err error) {
	if t.err == nil {
		t.err = err
	}
	t.poke()
}

// close ends the tail.
func (t *tail) close(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(err)
}

func (t *tail) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns what waits. If the tail is behind, it returns that instead, and from now on entries wait again: what is
// in the log by now, and what waits later, leave nothing out.
func (t *tail) take() (entries []thread.Entry, behind bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries, behind, err = t.waiting, t.behind, t.err
	t.waiting, t.bytes, t.behind = nil, 0, false
	return entries, behind, err
}

// hand notes that entries are handed out, unless the tail is over.
func (t *tail) hand(last thread.Cursor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.handed = last
	}
	return t.err
}

// over returns why the tail is over, or nil.
func (t *tail) over() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
