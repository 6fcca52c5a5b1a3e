package hub

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Config holds what a hub may be told. The zero value of a field takes its default.
type Config struct {
	// Compact makes fewer events of a run's events, with the same meaning and in the same order; each result keeps
	// the range of seqs that it stands for. The default leaves them as they are.
	Compact func([]thread.Event) []thread.Event
	// Damaged returns what readers see of a run whose events cannot be read. The default is nothing.
	Damaged func(thread.Run) []thread.Event
	// Idle is how long the latest entries stay in memory after a run has ended. Default 10 s.
	Idle time.Duration
	// RingBytes bounds the latest entries kept in memory per watched thread. Default 1 MiB.
	RingBytes int
	// Page is how many entries are read from the log at a time, at most. Default 1,000.
	Page int
	// BatchEvents and BatchBytes bound one batch. Defaults 500 and 256 KiB. A compacted batch may be larger.
	BatchEvents int
	BatchBytes  int
}

func (c Config) withDefaults() Config {
	if c.Compact == nil {
		c.Compact = func(e []thread.Event) []thread.Event { return e }
	}
	if c.Damaged == nil {
		c.Damaged = func(thread.Run) []thread.Event { return nil }
	}
	c.Idle = cmp.Or(c.Idle, 10*time.Second)
	c.RingBytes = cmp.Or(c.RingBytes, 1<<20)
	c.Page = cmp.Or(c.Page, 1000)
	c.BatchEvents = cmp.Or(c.BatchEvents, 500)
	c.BatchBytes = cmp.Or(c.BatchBytes, 256<<10)
	return c
}

func (c Config) limits() limits { return limits{events: c.BatchEvents, bytes: c.BatchBytes} }

// Hub hands out subscriptions. A thread that nobody watches costs it nothing; one that is watched costs one
// tail and one ring, however many watch it.
type Hub struct {
	source

	mu     sync.Mutex
	feeds  map[thread.ID]*feed
	closed bool
	tails  sync.WaitGroup

	lists lists
}

// New returns a hub over a live log and a history. It starts nothing.
func New(log Log, history History, cfg Config) *Hub {
	return &Hub{
		source: source{log: log, history: history, cfg: cfg.withDefaults()},
		feeds:  map[thread.ID]*feed{},
	}
}

// source is where readers read.
type source struct {
	log     Log
	history History
	cfg     Config
}

// Subscribe begins to read a thread, which need not exist yet. It never starts a run. The error is
// [thread.ErrBadCursor] if opts.After is not a position in the thread and never was one. The
// subscription must be closed.
func (h *Hub) Subscribe(ctx context.Context, id thread.ID, opts Options) (*Subscription, error) {
	s := &Subscription{hub: h, wake: make(chan struct{}, 1)}
	// The tail begins before the reader looks where the thread stands, so that nothing falls in between.
	if err := h.join(ctx, id, s); err != nil {
		if s.feed != nil {
			s.Close()
		}
		return nil, err
	}
	r, err := newReader(ctx, h.source, id, opts)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.r, s.start = r, r.pos
	return s, nil
}

// pageBytes bounds what [Hub.Read] collects.
const pageBytes = 4 << 20

// Read returns batches after opts.After until about limit events, or 4 MiB, are collected or all that is there has been
// read; more tells whether something is left. It starts no tail. A [CaughtUp] is not among the batches.
func (h *Hub) Read(ctx context.Context, id thread.ID, opts Options, limit int) (batches []Batch, more bool, err error) {
	src := h.source
	src.cfg.BatchEvents = min(src.cfg.BatchEvents, limit)
	r, err := newReader(ctx, src, id, opts)
	if err != nil {
		return nil, false, err
	}
	for n, bytes := 0, 0; n < limit && bytes < pageBytes; {
		b, ok, err := r.remaining(ctx)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return batches, false, nil
		}
		batches = append(batches, b)
		n += len(b.Events)
		for _, event := range b.Events {
			bytes += len(event)
		}
	}
	return batches, !r.caughtUp(), nil
}

// Walk calls take with the batches after opts.After, one after the other, until all that was there at the beginning has
// been read, and holds none of them: what there is of a finished run is read at once, of a live one a page at a time.
// It starts no tail, and a [CaughtUp] does not come. After a [Reset], take gets the run, or the thread, again from the
// start. An error of take ends the walk and is returned.
func (h *Hub) Walk(ctx context.Context, id thread.ID, opts Options, take func(Batch) error) error {
	r, err := newReader(ctx, h.source, id, opts)
	if err != nil {
		return err
	}
	for {
		b, ok, err := r.remaining(ctx)
		if err != nil || !ok {
			return err
		}
		if err := take(b); err != nil {
			return err
		}
	}
}

// join adds s to the thread's feed, which it starts if s is the first.
func (h *Hub) join(ctx context.Context, id thread.ID, s *Subscription) error {
	for {
		h.mu.Lock()
		f := h.feeds[id]
		if f != nil && f.add(s) {
			f.refs++
			h.mu.Unlock()
			s.feed = f
			return f.await(ctx)
		}
		delete(h.feeds, id) // it has failed; the next one may not
		h.mu.Unlock()
		head, err := h.log.Head(ctx, id)
		if err != nil {
			return fmt.Errorf("find the head of thread %s: %w", id, err)
		}
		if err := h.start(id, head); err != nil {
			return err
		}
	}
}

// start starts the thread's feed unless somebody else just did. A feed without readers ends with the first that
// joins and leaves it, or with the hub.
func (h *Hub) start(id thread.ID, head thread.Cursor) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("watch thread %s: %w", id, thread.ErrDraining)
	}
	if h.feeds[id] != nil {
		return nil
	}
	f := newFeed(id, head, h.cfg)
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	h.feeds[id] = f
	h.tails.Go(func() {
		f.run(ctx, h.log)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.feeds[id] == f {
			delete(h.feeds, id) // who comes now gets a new one
		}
		cancel()
	})
	return nil
}

func (h *Hub) leave(s *Subscription) {
	s.feed.remove(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	s.feed.refs--
	if s.feed.refs == 0 {
		s.feed.cancel()
		if h.feeds[s.feed.id] == s.feed {
			delete(h.feeds, s.feed.id)
		}
	}
}

// Watched returns how many threads are being watched.
func (h *Hub) Watched() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds)
}

// Close ends all tails and waits for them. Subscriptions return [thread.ErrDraining] or the tail's error afterwards.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, f := range h.feeds {
		f.cancel()
	}
	h.mu.Unlock()
	h.lists.close()
	h.tails.Wait()
}
