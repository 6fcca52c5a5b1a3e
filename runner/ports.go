package runner

import (
	"context"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Agent produces the events of a run.
type Agent interface {
	// Run executes the agent on in and calls emit with one AG-UI event after the other, from one goroutine at
	// a time. The bytes belong to the runner after the call. It returns when the agent is done, or soon after
	// ctx is done; [context.Cause] says why. emit blocks while the log cannot keep up, and returns an error
	// once the run takes no more events: Run then returns. An error of Run that is an [*AgentError] is shown to viewers;
	// any other is shown as a failure without particulars, and logged.
	Run(ctx context.Context, in Input, emit func(event []byte) error) error
}

// Input is what an agent gets.
type Input struct {
	ThreadID thread.ID
	RunID    thread.RunID
	JSON     []byte // the whole RunAgentInput
}

// AgentError is a failure of an agent that viewers may read. It becomes RUN_ERROR.
type AgentError struct {
	Code    string // an identifier, such as "agent_unreachable"
	Message string // a sentence for people, without secrets
	Err     error  // what happened, for the log; may be nil
}

func (e *AgentError) Error() string { return e.Message }

func (e *AgentError) Unwrap() error { return e.Err }

// Log is what the runner needs of a live log.
type Log interface {
	// Append adds entries of one run, whose seqs follow each other, durably and all or none of them. Entries
	// that the run already has are passed over, so that a repeated call is harmless; [thread.ErrGap] if
	// the first does not follow the run's last one, [thread.ErrEnded] if an entry would follow the end,
	// [thread.ErrLeaseLost] if the lease is not the thread's current one (an expired lease that nobody took stays
	// current), [thread.ErrFull] if it has no room for them, and [thread.ErrUnavailable] if the log cannot be written.
	// After an ErrUnavailable the entries may have been added or not. An end finds room where events do not, if the log
	// can arrange it. When Append returns nil the entries are readable.
	Append(ctx context.Context, lease thread.Lease, entries []thread.Entry) error
	// Read returns up to limit entries after the given cursor, in order, crossing runs; none if there are none.
	Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error)
	// Drop removes a run's entries after keep has passed. Dropping what is not there is no error.
	Drop(ctx context.Context, id thread.ID, run uint64, keep time.Duration) error
	// Forget removes all entries of the lease's thread at once, and ends its tails with [thread.ErrDeleted];
	// [thread.ErrLeaseLost] if the lease is not the thread's current one.
	Forget(ctx context.Context, lease thread.Lease) error
}

// Heads tells how far the live log is.
type Heads interface {
	// Head returns the position of the thread's last entry in the log; the zero cursor if there is none.
	Head(ctx context.Context, id thread.ID) (thread.Cursor, error)
}

// Leaser hands out the right to run something on a thread.
type Leaser interface {
	// Acquire takes the thread's lease for ttl. A [thread.RunningError] tells who holds it. An expired lease is
	// taken over, with a greater token.
	Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error)
	// Renew prolongs the lease by ttl from now and brings the wish to stop, if there is one;
	// [thread.ErrLeaseLost] if another holds the thread or nobody does.
	Renew(ctx context.Context, lease thread.Lease, ttl time.Duration) (thread.Lease, error)
	// Release gives the lease up. Releasing a lease that is no longer held changes nothing and is no error.
	Release(ctx context.Context, lease thread.Lease) error
}

// Owners tells about the leases of all nodes.
type Owners interface {
	// Holder returns the thread's lease while it has not expired, else [thread.ErrNotFound].
	Holder(ctx context.Context, id thread.ID) (thread.Lease, error)
	// AskStop notes the wish to stop with the lease and wakes its holder; [thread.ErrNotFound] if the
	// thread's lease is not held or is for another run (an empty RunID means any).
	AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (thread.Lease, error)
	// Abandoned returns up to limit leases that expired and were neither released nor taken over.
	Abandoned(ctx context.Context, limit int) ([]thread.Lease, error)
}

// History is where the runner records runs.
type History interface {
	// Known tells which of the message ids the thread has already seen.
	Known(ctx context.Context, id thread.ID, messages []string) (map[string]bool, error)
	// StartRun records an accepted run, the ids of its input messages (run.Messages) and what it answers (run.Answers),
	// and returns it with Number and Previous filled in. [thread.ErrRunIDUsed] if the thread has a run of that id;
	// a [thread.UnfinishedError] if it has a run that was not finished; a [thread.AnsweredError] if an answer comes too
	// late. It creates the thread if needed, and takes the run out of the thread's queue if it waits there.
	StartRun(ctx context.Context, run thread.Run) (thread.Run, error)
	// TakeRun notes the owner and token of who finishes a run in another's place, so that
	// the former owner's SaveRun is refused; [thread.ErrLeaseLost] if a greater token is noted already.
	TakeRun(ctx context.Context, run thread.Run) error
	// SaveRun records a finished run with its events. It is idempotent. [thread.ErrLeaseLost] if a greater
	// token is noted; [thread.ErrNotFound] if the run is not there (its thread was deleted).
	SaveRun(ctx context.Context, run thread.Run) error
}

// Records is what the runner looks up in the history.
type Records interface {
	// FindRun returns a run's particulars without its events, or [thread.ErrNotFound].
	FindRun(ctx context.Context, id thread.ID, run thread.RunID) (thread.Run, error)
	// DeleteThread removes a thread's runs and all else but its last run number, and marks it deleted.
	// [thread.ErrNotFound] if there is no such thread, or it is deleted already; [thread.ErrLeaseLost] if it has a run
	// with a greater token than the lease's.
	DeleteThread(ctx context.Context, lease thread.Lease) error
	// Thread returns what is known of a thread, deleted ones included; [thread.ErrNotFound] for one that
	// never was.
	Thread(ctx context.Context, id thread.ID) (thread.Thread, error)
}

// Backlog tells what somebody has to see to.
type Backlog interface {
	// Unfinished returns up to limit runs that were accepted and not finished, oldest first, without the first skip
	// of them; of all threads, or of one if id is not empty.
	Unfinished(ctx context.Context, id thread.ID, skip, limit int) ([]thread.Run, error)
	// IdleQueues returns up to limit threads on which requests wait while no run is recorded as active.
	IdleQueues(ctx context.Context, limit int) ([]thread.ID, error)
}

// Line is where requests wait for the active run of their thread to end.
type Line interface {
	// Enqueue records a request, and returns it with Place, After and Since filled in. One that is recorded
	// already stays as it is. [thread.ErrQueueFull] if limit requests wait; [thread.ErrRunIDUsed] if the thread
	// has a run of that id.
	Enqueue(ctx context.Context, q thread.Queued, limit int) (thread.Queued, error)
	// NextQueued returns the request whose turn is next, or [thread.ErrNotFound].
	NextQueued(ctx context.Context, id thread.ID) (thread.Queued, error)
	// Queue returns what waits, the next one first, without inputs.
	Queue(ctx context.Context, id thread.ID) ([]thread.Queued, error)
	// Dequeue takes a request out of the queue before its turn; [thread.ErrNotFound] if it does not wait.
	Dequeue(ctx context.Context, id thread.ID, run thread.RunID) error
}

// Story is what a thread's past says, and how it is changed.
type Story interface {
	// NextRun returns the first finished run whose number is greater than after, with its events, or
	// [thread.ErrNotFound]. One whose events are damaged comes without them and with a [thread.ErrCorrupt].
	NextRun(ctx context.Context, id thread.ID, after uint64) (thread.Run, error)
	// Discard marks a finished run as replaced, and forgets that the thread has seen the messages given;
	// [thread.ErrUnfinished] if the run has not ended.
	Discard(ctx context.Context, id thread.ID, run thread.RunID, messages []string) error
	// Answered returns a [thread.AnsweredError] for the first of answers that comes too late by what is recorded.
	Answered(ctx context.Context, id thread.ID, answers []thread.Answer) error
}

// Results keeps what tools answered that is too large for the live log.
type Results interface {
	// SaveResult stores a result. Storing it again changes nothing. [thread.ErrLeaseLost] if a greater token is noted with
	// its run.
	SaveResult(ctx context.Context, result thread.Result) error
}

// Board is told what changes on a thread besides its events. Its methods must not block.
type Board interface {
	// Changed tells that what waits on the thread has changed: its queue, or what it asks for.
	Changed(id thread.ID)
	// Discarded tells that a run is no longer a part of the thread.
	Discarded(id thread.ID, run thread.Run)
}
