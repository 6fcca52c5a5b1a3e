package hub

import (
	"context"
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
)

// listKept is how many changes wait for a reader before those of one thread become one.
const listKept = 2048

// ListSubscription is one reader's view of the changes of a user's threads. Its methods belong to one goroutine, but for
// [ListSubscription.Close].
type ListSubscription struct {
	lists *lists
	user  thread.User
	wake  chan struct{}
	seen  map[thread.ID]uint64 // revisions that the reader has got otherwise

	mu      sync.Mutex
	waiting []*ListChange
	anew    bool // changes are missing
	ended   error
	once    sync.Once
}

// ListBatch is what a reader of a list gets at once.
type ListBatch struct {
	// Reset tells that changes are missing before those of this batch: the reader reads the list again.
	Reset   bool
	Changes []*ListChange
}

// Seen tells that the reader has the threads as they are in a list that was read after the subscription began: what
// led to that is not told.
func (s *ListSubscription) Seen(threads []thread.Thread) {
	if s.seen == nil {
		s.seen = make(map[thread.ID]uint64, len(threads))
	}
	for _, t := range threads {
		s.seen[t.ID] = max(s.seen[t.ID], t.Revision)
	}
}

// Next returns what has changed since the last call, and waits for it if that is nothing. Each change is returned once, in
// the order in which the node heard of it, which is that of its making but for changes that several nodes made of one thread
// at the same moment. For a reader that is thousands of changes behind, those of one thread become the last of them; for
// one that is behind with thousands of threads, a reset. It returns the cause of ctx when that is done, and
// [thread.ErrDraining] when the hub is closed.
func (s *ListSubscription) Next(ctx context.Context) (ListBatch, error) {
	for {
		b, err := s.take()
		if err != nil || b.Reset || len(b.Changes) > 0 {
			return b, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ListBatch{}, context.Cause(ctx)
		}
	}
}

func (s *ListSubscription) take() (ListBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return ListBatch{}, s.ended
	}
	b := ListBatch{Reset: s.anew}
	s.anew = false
	for _, c := range s.waiting {
		if c.Thread.Revision > s.seen[c.Thread.ID] {
			b.Changes = append(b.Changes, c)
		}
	}
	s.waiting = nil
	return b, nil
}

// push adds a change to what waits for the reader.
func (s *ListSubscription) push(c *ListChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= listKept {
		s.shorten()
	}
	s.waiting = append(s.waiting, c)
	s.rouse()
}

// shorten leaves the last change of each thread, or none if that are too many.
func (s *ListSubscription) shorten() {
	last := make(map[thread.ID]*ListChange)
	for _, c := range s.waiting {
		if known := last[c.Thread.ID]; known == nil || known.Thread.Revision < c.Thread.Revision {
			last[c.Thread.ID] = c
		}
	}
	if len(last) > listKept/2 {
		s.waiting, s.anew = nil, true
		return
	}
	kept := make([]*ListChange, 0, listKept)
	for _, c := range s.waiting {
		if last[c.Thread.ID] == c {
			kept = append(kept, c)
		}
	}
	s.waiting = kept
}

// reset makes the reader begin anew.
func (s *ListSubscription) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.anew = nil, true
	s.rouse()
}

func (s *ListSubscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	s.rouse()
}

func (s *ListSubscription) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription. It may be called more than once, and while Next waits, whose ctx the caller then ends.
func (s *ListSubscription) Close() {
	s.once.Do(func() { s.lists.leave(s) })
}
