package thread

import (
	"errors"
	"fmt"
	"time"
)

// What can go wrong, as sentinels for [errors.Is]. Package web turns them into the codes of the wire.
var (
	ErrBadInput     = errors.New("bad input")
	ErrBadCursor    = errors.New("bad cursor")
	ErrNotFound     = errors.New("not found")
	ErrRunning      = errors.New("a run is active on this thread") // see [RunningError]
	ErrRunIDUsed    = errors.New("run id is already used")
	ErrUnfinished   = errors.New("an earlier run of this thread has not been finished") // see [UnfinishedError]
	ErrLeaseLost    = errors.New("lease lost")
	ErrEnded        = errors.New("run has ended")
	ErrGap          = errors.New("entry does not follow the last one")
	ErrDeleted      = errors.New("thread was deleted")
	ErrDraining     = errors.New("node is draining")
	ErrUnavailable  = errors.New("storage is not available")
	ErrCorrupt      = errors.New("storage is damaged")
	ErrUnknownAgent = errors.New("unknown agent")
	ErrTooLarge     = errors.New("too large")
	ErrFull         = errors.New("storage is full")              // nothing was stored; it does not help to try again at once
	ErrAnswered     = errors.New("it has been answered already") // see [AnsweredError]
	ErrQueued       = errors.New("others wait for this thread")  // who is not the next
	ErrQueueFull    = errors.New("too many runs wait for this thread")
)

// RunningError says who holds a thread. It is an [ErrRunning].
type RunningError struct {
	RunID RunID
	Owner string
	Since time.Time
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("run %s is active on this thread since %s", e.RunID, e.Since.UTC().Format(time.RFC3339))
}

// Is makes a RunningError an [ErrRunning].
func (e *RunningError) Is(target error) bool { return target == ErrRunning }

// UnfinishedError names the run that has to be finished before another can be accepted.
// It is an [ErrUnfinished].
type UnfinishedError struct{ Run Run }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("run %s of this thread has not been finished", e.Run.ID)
}

// Is makes an UnfinishedError an [ErrUnfinished].
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// AnsweredError says that an interrupt or a tool call has its answer, or is past, and by which run. It is an [ErrAnswered].
type AnsweredError struct {
	Answer Answer
	RunID  RunID
}

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("%s %s waits no more: run %s has settled it", e.Answer.Kind, e.Answer.ID, e.RunID)
}

// Is makes an AnsweredError an [ErrAnswered].
func (e *AnsweredError) Is(target error) bool { return target == ErrAnswered }
