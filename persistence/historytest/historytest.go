// Package historytest is the conformance suite of histories: what the runner, the hub and the HTTP API rely on,
// as tests that every database has to pass. It stands beside package history; each database's conformance test
// calls [Run] and nothing else does. A bug found in one database adds a case here, for all.
package historytest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Recorder is the runner's way to write runs.
type Recorder interface {
	Known(ctx context.Context, id thread.ID, messages []string) (map[string]bool, error)
	StartRun(ctx context.Context, run thread.Run) (thread.Run, error)
	TakeRun(ctx context.Context, run thread.Run) error
	SaveRun(ctx context.Context, run thread.Run) error
}

// Records is the runner's way to look runs up.
type Records interface {
	FindRun(ctx context.Context, id thread.ID, run thread.RunID) (thread.Run, error)
	Unfinished(ctx context.Context, id thread.ID, skip, limit int) ([]thread.Run, error)
	DeleteThread(ctx context.Context, lease thread.Lease) error
	Thread(ctx context.Context, id thread.ID) (thread.Thread, error)
}

// Lists is the hub's way to replay a thread, and the HTTP API's way to list threads and runs.
type Lists interface {
	NextRun(ctx context.Context, id thread.ID, after uint64) (thread.Run, error)
	Threads(ctx context.Context, page thread.Page) ([]thread.Thread, string, error)
	Runs(ctx context.Context, id thread.ID, after uint64, limit int) ([]thread.Run, error)
}

// Line is the runner's way to let requests wait.
type Line interface {
	Enqueue(ctx context.Context, q thread.Queued, limit int) (thread.Queued, error)
	NextQueued(ctx context.Context, id thread.ID) (thread.Queued, error)
	Queue(ctx context.Context, id thread.ID) ([]thread.Queued, error)
	Dequeue(ctx context.Context, id thread.ID, run thread.RunID) error
}

// Story is the runner's way to look at what happened, and to change it.
type Story interface {
	Discard(ctx context.Context, id thread.ID, run thread.RunID, messages []string) error
	Answered(ctx context.Context, id thread.ID, answers []thread.Answer) error
	IdleQueues(ctx context.Context, limit int) ([]thread.ID, error)
}

// Results keeps what is too large for the live log.
type Results interface {
	SaveResult(ctx context.Context, result thread.Result) error
	Result(ctx context.Context, id thread.ID, run thread.RunID, place int) (thread.Result, error)
}

// Directory is the HTTP API's way to change how threads stand in lists, and to hear of what changes there.
type Directory interface {
	Edit(ctx context.Context, id thread.ID, edit thread.Edit) (thread.Thread, error)
	Listen(fn func(thread.Change))
	Secret(ctx context.Context) ([]byte, error)
}

// Breaker does to stored rows what no program should: the driver's test supplies it.
type Breaker interface {
	// Damage cuts off a part of the stored events of a finished run.
	Damage(ctx context.Context, id thread.ID, run uint64) error
	// Remove takes away the row of a run.
	Remove(ctx context.Context, id thread.ID, run uint64) error
	// Reopen closes the database and returns what another process finds that opens it.
	Reopen(ctx context.Context) (History, error)
}

// History is what the suite tests.
type History interface {
	Recorder
	Records
	Lists
	Line
	Story
	Results
	Directory
	Breaker
}

// Run runs the suite. open returns an empty history, closed by the test's cleanup; it is called for every test.
func Run(t *testing.T, open func(t *testing.T) History) {
	subjects := []struct {
		name string
		test func(b *bench)
	}{
		{"start", testStart},
		{"save", testSave},
		{"fencing", testFencing},
		{"order", testOrder},
		{"run ids", testRunIDs},
		{"unfinished", testUnfinished},
		{"deletion", testDeletion},
		{"messages", testMessages},
		{"lossless", testLossless},
		{"threads", testThreads},
		{"owners", testOwners},
		{"edit", testEdit},
		{"changes", testChanges},
		{"secret", testSecret},
		{"runs", testRuns},
		{"pending", testPending},
		{"answers", testAnswers},
		{"queue", testQueue},
		{"discard", testDiscard},
		{"reserve", testReserve},
		{"results", testResults},
		{"concurrency", testConcurrency},
		{"context", testContext},
	}
	for _, subject := range subjects {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			subject.test(&bench{T: t, open: open})
		})
	}
}

// bench is a test with a history of its own.
type bench struct {
	*testing.T
	History
	open func(t *testing.T) History
}

// run runs a subtest on a new history.
func (b *bench) run(name string, test func(b *bench)) {
	b.Run(name, func(t *testing.T) {
		test(&bench{T: t, History: b.open(t), open: b.open})
	})
}

// epoch is when the first run of a test is accepted.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a time, n seconds after the epoch.
func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// newRun is a run to be accepted.
func newRun(id thread.ID, run thread.RunID) thread.Run {
	return thread.Run{Thread: id, ID: run, Agent: "demo", Owner: "node-a", Token: 1, Accepted: epoch}
}

// finished is run as it ends a second after its acceptance, with the given events.
func finished(run thread.Run, events ...string) thread.Run {
	run.Ended = run.Accepted.Add(time.Second)
	run.End = thread.End{Outcome: thread.OutcomeFinished}
	run.Events = make([]thread.Event, len(events))
	for i, e := range events {
		run.Events[i] = thread.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: []byte(e)}
	}
	run.LastSeq = uint64(len(events) + 1)
	return counted(run)
}

// counted is run with the counts that a history makes of its events.
func counted(run thread.Run) thread.Run {
	run.EventCount, run.Bytes = len(run.Events), 0
	for _, e := range run.Events {
		run.Bytes += int64(len(e.Data))
	}
	return run
}

func (b *bench) start(run thread.Run) thread.Run {
	b.Helper()
	started, err := b.StartRun(b.Context(), run)
	if err != nil {
		b.Fatal(err)
	}
	return started
}

func (b *bench) save(run thread.Run) {
	b.Helper()
	if err := b.SaveRun(b.Context(), run); err != nil {
		b.Fatal(err)
	}
}

// complete accepts a run and finishes it at once.
func (b *bench) complete(run thread.Run, events ...string) thread.Run {
	b.Helper()
	run = finished(b.start(run), events...)
	b.save(run)
	return run
}

func (b *bench) find(id thread.ID, run thread.RunID) thread.Run {
	b.Helper()
	found, err := b.FindRun(b.Context(), id, run)
	if err != nil {
		b.Fatal(err)
	}
	return found
}

func (b *bench) thread(id thread.ID) thread.Thread {
	b.Helper()
	t, err := b.Thread(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func (b *bench) delete(id thread.ID) {
	b.Helper()
	if err := b.DeleteThread(b.Context(), Holding(id)); err != nil {
		b.Fatal(err)
	}
}

// replay reads a thread's finished runs as the hub does.
func (b *bench) replay(id thread.ID) []thread.Run {
	b.Helper()
	var runs []thread.Run
	for after := uint64(0); ; {
		run, err := b.NextRun(b.Context(), id, after)
		if isNotFound(err) {
			return runs
		}
		if err != nil {
			b.Fatal(err)
		}
		runs = append(runs, run)
		after = run.Number
	}
}

// name numbers things so that they sort as they count.
func name(prefix string, n int) string { return fmt.Sprintf("%s-%04d", prefix, n) }
