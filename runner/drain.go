package runner

import (
	"context"
	"errors"

	"github.com/threadcast/threadcast/persistence/thread"
)

// errShutDown is the cause with which a run's context ends when its node shuts down.
var errShutDown = errors.New("the node is shutting down")

// shutDown is how a run ends whose node shuts down.
var shutDown = conclusion{
	end: thread.End{
		Outcome: thread.OutcomeShutDown, Code: "shut_down",
		Message: "The server shut down before the run ended.",
	},
	cause: errShutDown,
}

// Drain refuses new runs from now on, waits for those under way until soft is done, then ends what is
// left as shut down, and waits for that until hard is done. It returns how many runs it ended, and an error if some
// were still not saved.
func (r *Runner) Drain(soft, hard context.Context) (int, error) {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		r.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return 0, nil
	case <-soft.Done():
	}
	r.endAll()
	select {
	case <-idle:
		return r.shutDowns(), nil
	case <-hard.Done():
		return r.shutDowns(), errors.New("some runs could not be saved in time; they are reclaimed at the next start")
	}
}

// endAll ends every run of this node as shut down, and those that are about to begin.
func (r *Runner) endAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	for _, s := range r.slots {
		if s.exec != nil && s.exec.conclude(shutDown) {
			r.shut++
		}
	}
}

func (r *Runner) shutDowns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shut
}
