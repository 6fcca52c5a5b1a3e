package redislog

import (
	"cmp"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// defaultTTL is for how long a lease is written again whose ttl is not known.
const defaultTTL = 10 * time.Second

// holders are the leases that this node holds, as far as it knows.
type holders struct {
	mu     sync.Mutex
	held   map[thread.ID]holding
	coming map[thread.ID]*coming
}

// coming is a lease that is being asked for: Redis may have given it, and somebody asked its holder to stop, before the
// reply is here.
type coming struct {
	callers int
	woken   bool
}

type holding struct {
	token uint64
	ttl   time.Duration
	asked chan struct{}
}

func (h *holders) init() {
	h.held, h.coming = make(map[thread.ID]holding), make(map[thread.ID]*coming)
}

// expect notes that a thread's lease is being asked for. What it returns is called once that is answered, and what came of
// it noted; it tells whether the holder was to be woken meanwhile.
func (h *holders) expect(id thread.ID) (woken func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.coming[id]
	if c == nil {
		c = &coming{}
		h.coming[id] = c
	}
	c.callers++
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.callers--; c.callers == 0 {
			delete(h.coming, id)
		}
		return c.woken
	}
}

// note remembers a lease that was given or renewed, and returns what its holder is woken by.
func (h *holders) note(id thread.ID, token uint64, ttl time.Duration) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.held[id]
	if known.token != token {
		known.poke() // it was taken over
		known = holding{token: token, asked: make(chan struct{}, 1)}
	}
	known.ttl = ttl
	h.held[id] = known
	return known.asked
}

func (h *holders) drop(ls thread.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[ls.Thread].token == ls.Token {
		delete(h.held, ls.Thread)
	}
}

// ttl is for how long the lease was asked for the last time.
func (h *holders) ttl(ls thread.Lease) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.held[ls.Thread]; known.token == ls.Token {
		return cmp.Or(known.ttl, defaultTTL)
	}
	return defaultTTL
}

// wake makes the holder of a thread look.
func (h *holders) wake(id thread.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[id].poke()
	if c := h.coming[id]; c != nil {
		c.woken = true
	}
}

// wakeGroup makes the holders of all threads of a group look.
func (h *holders) wakeGroup(group int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, known := range h.held {
		if groupOf(id) == group {
			known.poke()
		}
	}
	for id, c := range h.coming {
		if groupOf(id) == group {
			c.woken = true
		}
	}
}

func (h holding) poke() {
	select {
	case h.asked <- struct{}{}:
	default: // it will look anyway, or there is nobody
	}
}
