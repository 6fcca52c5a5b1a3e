package hub

import (
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// missWait is how long subscriptions of lists wait, once changes may have been missed, before they begin anew: what else
// is missed in that time needs no beginning of its own.
const missWait = 250 * time.Millisecond

// lists are the lists of threads that are looked at on this node.
type lists struct {
	mu     sync.Mutex
	of     map[thread.User]*list
	missed *time.Timer // runs while a beginning anew is due
	closed bool
}

// list is whoever looks at the threads of one user, and what they were told.
type list struct {
	readers map[*ListSubscription]struct{}
	ledger  ledger
}

// ListChange is a change as the subscriptions of a list get it: one value for all of them, which nobody changes.
type ListChange struct {
	thread.Change
	// Late tells that a later change of the thread was told before, so that this one does not say how it stands.
	Late bool

	mu    sync.Mutex
	forms map[string][]byte
}

// Form returns what build makes of the change, which is built once for each name.
func (c *ListChange) Form(name string, build func() []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	form, built := c.forms[name]
	if !built {
		form = build()
		if c.forms == nil {
			c.forms = make(map[string][]byte)
		}
		c.forms[name] = form
	}
	return form
}

// SubscribeList begins to follow the changes of a user's threads: each from now on, once. Who wants the list besides reads
// it after this call, and says so with [ListSubscription.Seen]. The subscription must be closed. [thread.ErrDraining]
// if the hub is closed.
func (h *Hub) SubscribeList(user thread.User) (*ListSubscription, error) {
	s := &ListSubscription{lists: &h.lists, user: user, wake: make(chan struct{}, 1)}
	h.lists.mu.Lock()
	defer h.lists.mu.Unlock()
	if h.lists.closed {
		return nil, fmt.Errorf("watch a list of threads: %w", thread.ErrDraining)
	}
	l := h.lists.of[user]
	if l == nil {
		l = &list{readers: make(map[*ListSubscription]struct{})}
		if h.lists.of == nil {
			h.lists.of = make(map[thread.User]*list)
		}
		h.lists.of[user] = l
	}
	l.readers[s] = struct{}{}
	return s, nil
}

// Listing tells whether anybody on this node follows a user's threads.
func (h *Hub) Listing(user thread.User) bool {
	h.lists.mu.Lock()
	defer h.lists.mu.Unlock()
	return h.lists.of[user] != nil
}

// Listed tells whoever follows the threads of its owner of a change. One that was told already is passed over. It does
// not block.
func (h *Hub) Listed(c thread.Change) {
	h.lists.mu.Lock()
	defer h.lists.mu.Unlock()
	l := h.lists.of[c.Thread.Owner]
	if l == nil {
		return
	}
	first, late := l.ledger.enter(c.Thread.ID, c.Thread.Revision, time.Now())
	if !first {
		return
	}
	change := &ListChange{Change: c, Late: late}
	for s := range l.readers {
		s.push(change)
	}
}

// MissedLists makes every subscription of a list on this node begin anew, since changes may have been missed. It does not
// block.
func (h *Hub) MissedLists() {
	h.lists.mu.Lock()
	defer h.lists.mu.Unlock()
	if h.lists.missed == nil && !h.lists.closed {
		h.lists.missed = time.AfterFunc(missWait, h.lists.reset)
	}
}

func (ls *lists) reset() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.missed = nil
	for _, l := range ls.of {
		for s := range l.readers {
			s.reset()
		}
	}
}

func (ls *lists) leave(s *ListSubscription) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.of[s.user]
	if l == nil {
		return
	}
	delete(l.readers, s)
	if len(l.readers) == 0 {
		delete(ls.of, s.user)
	}
}

// close ends all subscriptions.
func (ls *lists) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	if ls.missed != nil {
		ls.missed.Stop()
	}
	for _, l := range ls.of {
		for s := range l.readers {
			s.end(thread.ErrDraining)
		}
	}
	ls.of = nil
}
