package hub

import "github.com/threadcast/threadcast/persistence/thread"

// Changed makes every subscription of a thread on this node return a [Changed] batch: what waits on the thread is not
// what it was. It does not block.
func (h *Hub) Changed(id thread.ID) {
	h.each(id, func(f *feed) { f.tell(func(s *Subscription) { s.changed = true }) })
}

// Missed makes every subscription of a thread on this node look for what it has not been told: runs that came and went, and
// what waits, of which a [Changed] tells. It does not block.
func (h *Hub) Missed(id thread.ID) {
	h.each(id, func(f *feed) { f.tell(func(s *Subscription) { s.changed, s.missed = true, true }) })
}

// Discarded makes every subscription of a thread on this node that has something of the run return a [Reset] for it. It
// does not block.
func (h *Hub) Discarded(id thread.ID, run thread.Run) {
	h.each(id, func(f *feed) {
		f.free() // it may hold entries of the run
		f.tell(func(s *Subscription) { s.gone = append(s.gone, run) })
	})
}

// each calls fn with the thread's feed, if it has one, under the feed's lock.
func (h *Hub) each(id thread.ID, fn func(*feed)) {
	h.mu.Lock()
	f := h.feeds[id]
	h.mu.Unlock()
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		fn(f)
	}
}

// tell notes something with every subscription and wakes it.
func (f *feed) tell(note func(*Subscription)) {
	for s := range f.readers {
		s.tell(func() { note(s) })
	}
}
