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
	mu   sync.Mutex
	held map[thread.ID]holding
}

type holding struct {
	token uint64
	ttl   time.Duration
	asked chan struct{}
}

func (h *holders) init() { h.held = make(map[thread.ID]holding) }

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
}

func (h holding) poke() {
	select {
	case h.asked <- struct{}{}:
	default: // it will look anyway, or there is nobody
	}
}
