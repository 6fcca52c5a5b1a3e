package runner

import (
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
)

// floor is what this node does, on which thread, and whether it still begins anything.
type floor struct {
	mu       sync.Mutex
	slots    map[thread.ID]*slot
	draining bool           // no run is accepted
	ending   bool           // runs are ended as soon as they begin
	shut     int            // runs that were ended so
	running  sync.WaitGroup // runs, and what is about to become one
}

// slot is what this node does on a thread: a run, or something that must be waited for before the next run.
type slot struct {
	exec *execution    // nil while a run is reclaimed, or the thread is deleted
	done chan struct{} // closed when the lease is given up
}

// active returns how many runs this node is driving.
func (f *floor) active() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.slots {
		if s.exec != nil {
			n++
		}
	}
	return n
}

// begin lets a run go on its way, unless it is to be ended at once.
func (f *floor) begin(e *execution, s *slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending && e.conclude(shutDown) {
		f.shut++
	}
	f.running.Go(func() { e.drive(s) })
}

// closed tells whether no run is accepted any more.
func (f *floor) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}

// drain refuses new runs from now on, and returns a channel that is closed when none is left.
func (f *floor) drain() <-chan struct{} {
	f.mu.Lock()
	f.draining = true
	f.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		f.running.Wait()
		close(idle)
	}()
	return idle
}

// occupy notes that this node does something on a thread whose lease it holds.
func (f *floor) occupy(id thread.ID, e *execution) *slot {
	s := &slot{exec: e, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slots[id] = s
	return s
}

// leave lets the next one in, who has to take the lease over if it was not released.
func (f *floor) leave(id thread.ID, s *slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots[id] == s {
		delete(f.slots, id)
	}
	close(s.done)
}

// slot returns what this node does on the thread, or nil.
func (f *floor) slot(id thread.ID) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[id]
}

// execution returns the run that this node drives on the thread, or nil.
func (f *floor) execution(id thread.ID) *execution {
	if s := f.slot(id); s != nil {
		return s.exec
	}
	return nil
}

// endAll ends every run of this node as shut down, and those that are about to begin.
func (f *floor) endAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
	for _, s := range f.slots {
		if s.exec != nil && s.exec.conclude(shutDown) {
			f.shut++
		}
	}
}

func (f *floor) shutDowns() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shut
}

// enter counts a caller among what Drain waits for, and tells whether the node still takes runs.
func (f *floor) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.draining {
		f.running.Add(1)
	}
	return !f.draining
}
