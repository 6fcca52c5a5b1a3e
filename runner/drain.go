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
	idle := r.floor.drain()
	select {
	case <-idle:
		return 0, nil
	case <-soft.Done():
	}
	r.floor.endAll()
	select {
	case <-idle:
		return r.floor.shutDowns(), nil
	case <-hard.Done():
		return r.floor.shutDowns(), errors.New("some runs could not be saved in time; they are reclaimed at the next start")
	}
}
