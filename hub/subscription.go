package hub

import (
	"context"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Subscription is one reader's view of a thread from a cursor on. Its methods belong to one goroutine, but for
// [Subscription.Close] and [Subscription.Sync].
type Subscription struct {
	hub   *Hub
	feed  *feed
	r     *reader
	wake  chan struct{}
	start thread.Cursor
	told  bool // that it has caught up

	mu      sync.Mutex
	resync  bool
	missed  bool
	changed bool
	gone    []thread.Run // that were discarded
	once    sync.Once
}

// Start returns the position from which the subscription goes on. After a [Reset] it is the zero cursor.
func (s *Subscription) Start() thread.Cursor { return s.start }

// Resumed tells whether the subscription goes on from the cursor it was asked for, rather than from the start.
func (s *Subscription) Resumed() bool { return s.start != thread.Cursor{} }

// Next returns the batch after the last one, and waits for it if there is none yet. Every event is
// returned once, in order; exactly one [CaughtUp] comes when all that was there at the beginning has been
// returned, and another after each Sync. A [Changed] comes after [Hub.Changed]. It returns the cause of ctx when that is done, [thread.ErrDeleted] when the
// thread was deleted, and any other error when log or history fail; the subscription is of no use then.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		b, ok, err := s.poll(ctx)
		if ok || err != nil {
			return b, err
		}
		if s.r.caughtUp() && !s.told {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

func (s *Subscription) poll(ctx context.Context) (Batch, bool, error) {
	if err := s.sync(ctx); err != nil {
		return Batch{}, false, err
	}
	s.look(ctx)
	if b, ok := s.notice(); ok {
		return b, true, nil
	}
	if b, ok := s.r.queued(); ok {
		return b, true, nil
	}
	if s.r.caughtUp() && !s.told {
		s.told = true
		return Batch{Kind: CaughtUp, From: s.r.pos, To: s.r.pos}, true, nil
	}
	entries, at, err := s.feed.after(s.r.pos, s.hub.cfg.limits())
	switch {
	case err != nil:
		return Batch{}, false, err
	case at == atHead && s.r.caughtUp():
		return Batch{}, false, nil
	case at == inRing && !s.prefersCompact():
		return s.r.take(entries), true, nil
	}
	return s.r.step(ctx)
}

// prefersCompact tells whether the next run is to be taken in compacted form although the ring has it.
func (s *Subscription) prefersCompact() bool {
	return s.r.replay == Compact && s.r.boundary() && s.r.pos.Before(s.r.target)
}

// Sync makes the subscription return [CaughtUp] once more, when what is there now has been returned. It may be
// called from any goroutine.
func (s *Subscription) Sync() { s.tell(func() { s.resync = true }) }

// tell notes what the subscription has to be told.
func (s *Subscription) tell(note func()) {
	s.mu.Lock()
	note()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notice returns what the subscription has to be told besides events. A discarded run that it has not come to needs no
// word.
func (s *Subscription) notice() (Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.gone) > 0 {
		run := s.gone[0]
		s.gone = s.gone[1:]
		if s.r.whole || s.r.pos.Run < run.Number {
			continue
		}
		if s.r.pos.Run == run.Number {
			taken := s.r.pos.Seq > 0
			s.r.pass(run)
			if !taken {
				continue
			}
		}
		return Batch{Kind: Reset, RunID: run.ID, From: s.r.pos, To: s.r.pos}, true
	}
	if s.changed {
		s.changed = false
		return Batch{Kind: Changed, From: s.r.pos, To: s.r.pos}, true
	}
	return Batch{}, false
}

// sync sets the mark up to which things have to be returned before the next CaughtUp.
func (s *Subscription) sync(ctx context.Context) error {
	s.mu.Lock()
	wanted := s.resync
	s.resync = false
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	if _, err := s.r.aim(ctx); err != nil {
		return err
	}
	s.told = false
	return nil
}

// lookAgain is how long a subscription waits to look again for what it missed, when it could not.
const lookAgain = time.Second

// look aims at what there is now, if the subscription may have missed something. If that cannot be found out for now, it is
// later.
func (s *Subscription) look(ctx context.Context) {
	s.mu.Lock()
	missed := s.missed
	s.missed = false
	s.mu.Unlock()
	if !missed {
		return
	}
	if _, err := s.r.aim(ctx); err != nil && ctx.Err() == nil {
		time.AfterFunc(lookAgain, func() { s.tell(func() { s.missed = true }) })
	}
}

// Close ends the subscription. It may be called more than once, and while Next waits, whose ctx the caller then
// ends.
func (s *Subscription) Close() {
	s.once.Do(func() { s.hub.leave(s) })
}
