package hub

import (
	"context"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// feed is one watched thread: a tail of its live log, and the ring of its latest entries. The ring
// holds, without holes, everything after base up to head.
type feed struct {
	id     thread.ID
	max    int           // bytes in the ring
	idle   time.Duration // until the ring is freed after a run's end
	cancel context.CancelFunc
	refs   int // guarded by Hub.mu

	ready chan struct{} // closed once nothing that happens to the thread escapes the tail
	begun sync.Once     // closes ready

	mu      sync.Mutex
	entries []thread.Entry
	bytes   int
	base    thread.Cursor
	head    thread.Cursor
	ended   bool        // head is the end of its run
	timer   *time.Timer // frees the ring; nil while a run goes on
	failed  error
	readers map[*Subscription]struct{}
}

func newFeed(id thread.ID, head thread.Cursor, cfg Config) *feed {
	return &feed{
		id: id, max: cfg.RingBytes, idle: cfg.Idle,
		base: head, head: head, readers: map[*Subscription]struct{}{}, ready: make(chan struct{}),
	}
}

// run tails the log until the feed is no longer wanted, or the log fails.
func (f *feed) run(ctx context.Context, log Log) {
	defer f.begun.Do(func() { close(f.ready) })
	err := log.Tail(ctx, f.id, f.head, func(entries []thread.Entry) error {
		f.begun.Do(func() { close(f.ready) })
		f.append(entries)
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		err = thread.ErrDraining
	}
	f.failed = err
	f.free()
	f.wake()
}

// await waits until the tail has begun.
func (f *feed) await(ctx context.Context) error {
	select {
	case <-f.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// free drops the ring; what was in it is read from log or history.
func (f *feed) free() {
	f.entries, f.bytes, f.base = nil, 0, f.head
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// rest frees the ring when the thread has been idle for a while.
func (f *feed) rest() {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if !f.ended {
		return
	}
	head := f.head
	f.timer = time.AfterFunc(f.idle, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.head == head {
			f.free()
		}
	})
}

func (f *feed) append(entries []thread.Entry) {
	if len(entries) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range entries {
		if !f.follows(e) {
			// Something is missing between head and e: whole runs, which the readers find in history.
			f.entries, f.bytes = f.entries[:0], 0
			f.base = thread.Cursor{Run: e.Run, Seq: e.Seq - 1}
		}
		f.entries = append(f.entries, e)
		f.bytes += size(e)
		f.head, f.ended = e.Cursor(), e.Kind == thread.KindEnd
	}
	f.trim()
	f.rest()
	f.wake()
}

// follows tells whether e is the very next entry of the thread after head.
func (f *feed) follows(e thread.Entry) bool {
	if e.Run == f.head.Run {
		return e.Seq == f.head.Seq+1
	}
	return e.Run == f.head.Run+1 && e.Seq == 1 && (f.ended || f.head.Run == 0)
}

// trim drops the oldest entries when the ring is over its size. A dropped entry is read from the log.
func (f *feed) trim() {
	drop := 0
	for f.bytes > f.max && drop < len(f.entries)-1 {
		f.bytes -= size(f.entries[drop])
		f.base = f.entries[drop].Cursor()
		drop++
	}
	if drop == 0 {
		return
	}
	// A fresh slice now and then, so that dropped data is freed and append stays amortised.
	if drop*2 >= len(f.entries) || cap(f.entries) > 4*len(f.entries) {
		f.entries = append(make([]thread.Entry, 0, len(f.entries)-drop), f.entries[drop:]...)
		return
	}
	clear(f.entries[:drop])
	f.entries = f.entries[drop:]
}

// size is what an entry costs in the ring.
func size(e thread.Entry) int { return len(e.Data) + 96 }

// wake tells all readers that something has changed.
func (f *feed) wake() {
	for s := range f.readers {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// where tells how a position lies to the ring.
type where uint8

const (
	elsewhere where = iota // to be read from log or history
	inRing                 // entries follow in the ring
	atHead                 // nothing follows yet
)

// after returns the ring's entries after pos, up to one batch.
func (f *feed) after(pos thread.Cursor, l limits) ([]thread.Entry, where, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failed != nil:
		return nil, elsewhere, f.failed
	case pos == f.head:
		return nil, atHead, nil
	case pos.Before(f.base) || f.head.Before(pos) || len(f.entries) == 0:
		return nil, elsewhere, nil
	}
	i := f.index(pos)
	ahead := f.entries[i:min(len(f.entries), i+l.events)]
	return append([]thread.Entry(nil), ahead...), inRing, nil
}

// index returns the place of the first entry after pos.
func (f *feed) index(pos thread.Cursor) int {
	lo, hi := 0, len(f.entries)
	for lo < hi {
		if mid := (lo + hi) / 2; pos.Before(f.entries[mid].Cursor()) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// add is false when the feed has failed.
func (f *feed) add(s *Subscription) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return false
	}
	f.readers[s] = struct{}{}
	return true
}

func (f *feed) remove(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, s)
}
