package agenttest

import (
	"context"
	"slices"
	"sync"
)

// Signals connect a test with the scripts it follows. The zero value is ready for use, and safe for concurrent
// use.
type Signals struct {
	mu    sync.Mutex
	marks map[string]chan struct{}
	gates map[string]*gate
	ended bool
}

// gate is where scripts wait.
type gate struct {
	waiting []chan struct{}
	passes  int // releases that found nobody waiting
}

// Mark returns a channel that receives each time a script reaches the mark of that name; as often as it was reached
// before, too, up to 1024 times.
func (s *Signals) Mark(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark(name)
}

func (s *Signals) mark(name string) chan struct{} {
	if s.marks == nil {
		s.marks = map[string]chan struct{}{}
	}
	if s.marks[name] == nil {
		s.marks[name] = make(chan struct{}, 1024)
	}
	return s.marks[name]
}

func (s *Signals) reach(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.mark(name) <- struct{}{}:
	default: // nobody counts that far
	}
}

// Release lets all scripts go on that wait at the gate of that name. If there are none, it lets the next one
// pass that comes.
func (s *Signals) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gate(name)
	if len(g.waiting) == 0 {
		g.passes++
	}
	for _, ch := range g.waiting {
		close(ch)
	}
	g.waiting = nil
}

func (s *Signals) gate(name string) *gate {
	if s.gates == nil {
		s.gates = map[string]*gate{}
	}
	if s.gates[name] == nil {
		s.gates[name] = &gate{}
	}
	return s.gates[name]
}

// Waiting returns how many scripts wait at the gate of that name now.
func (s *Signals) Waiting(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.gate(name).waiting)
}

// wait returns nil once the gate is released, or the cause of ctx.
func (s *Signals) wait(ctx context.Context, name string) error {
	ch := s.enter(name)
	if ch == nil {
		return nil
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		s.leave(name, ch)
		return context.Cause(ctx)
	}
}

// enter returns the channel to wait on, or nil if there is nothing to wait for.
func (s *Signals) enter(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gate(name)
	if s.ended {
		return nil
	}
	if g.passes > 0 {
		g.passes--
		return nil
	}
	ch := make(chan struct{})
	g.waiting = append(g.waiting, ch)
	return ch
}

func (s *Signals) leave(name string, ch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gate(name)
	g.waiting = slices.DeleteFunc(g.waiting, func(c chan struct{}) bool { return c == ch })
}

// end opens all gates for ever.
func (s *Signals) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, g := range s.gates {
		for _, ch := range g.waiting {
			close(ch)
		}
		g.waiting = nil
	}
}
