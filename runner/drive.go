package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// errLost is the cause with which a run's context ends when its lease is lost.
var errLost = fmt.Errorf("the run is no longer this node's: %w", thread.ErrLeaseLost)

// drive carries the run from its first event to its end in history. It is the run's owner: it waits for the
// keeper, and for the agent as long as that is owed.
func (e *execution) drive(s *slot) {
	log := e.r.log(e.run.Thread, e.run.ID)
	log.Info("run started", "agent", e.run.Agent, "number", e.run.Number)
	defer e.cancel(nil)
	k := startKeeper(e.r, e.getLease(), e)
	vacate := sync.OnceFunc(func() {
		e.r.vacate(k.stop(), s)
		e.r.line().advance(e.run.Thread)
	})
	defer vacate()

	defer e.clock()()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		e.invoke(log)
	}()
	over := e.pump()
	if over.own {
		e.close(over)
		e.finish(log)
		vacate() // an agent that lingers keeps nobody from the thread
		e.await(returned, log)
		return
	}
	e.await(returned, log)
	if !over.lost {
		over = e.terminate(over)
	}
	e.close(over)
	if !over.lost {
		e.finish(log)
	} else {
		log.Warn("run given up; who takes its lease next ends it", "err", over.cause)
	}
}

// pump moves events from the queue to the log until the run is over and the queue is empty. While one append
// is under way the next events gather.
func (e *execution) pump() *conclusion {
	for {
		events, over := e.take()
		if over != nil && over.lost {
			return over
		}
		if over == nil && len(events) == 0 {
			e.refresh()
			continue
		}
		entries := e.entriesFor(events)
		if over != nil && over.own {
			entries = append(entries, e.endEntry(over.end, len(entries)))
		}
		if len(entries) > 0 {
			if err := e.append(entries); errors.Is(err, thread.ErrFull) {
				e.recede(len(entries), err)
				continue
			} else if err != nil {
				e.conclude(conclusion{lost: true, cause: err})
				continue
			}
		}
		if over != nil {
			return over
		}
	}
}

// refresh appends the last entry again, so that a log which has lost the run has it again before the agent's next word. A
// log that has no room for it is asked again with that.
func (e *execution) refresh() {
	if len(e.entries) == 0 {
		return
	}
	last := e.entries[len(e.entries)-1:]
	err := e.r.scribe().appendAll(context.Background(), e.getLease, e.entries, last)
	if err != nil && !errors.Is(err, thread.ErrFull) {
		e.conclude(conclusion{lost: true, cause: err})
	}
}

// terminate closes what is open and ends the run, in one append (AG-UI 1.0, section 8).
func (e *execution) terminate(over *conclusion) *conclusion {
	events, err := e.closers(over.end)
	if err != nil {
		return &conclusion{lost: true, cause: err}
	}
	entries := e.entriesFor(events)
	entries = append(entries, e.endEntry(over.end, len(entries)))
	if err := e.append(entries); err != nil {
		return &conclusion{lost: true, cause: err}
	}
	return over
}

// finish saves the run, whose end is in the log.
func (e *execution) finish(log *slog.Logger) {
	run := e.run
	run.Ended = time.Now()
	run.End, run.Pending, run.Calls, run.Usage = e.final.end, e.final.pending, e.final.calls, e.final.usage
	run.Messages = e.tracker.Created()
	if err := e.r.scribe().save(context.Background(), e.getLease, run, e.entries); err != nil {
		log.Error("run not saved; it stays in the live log and is tried again", "err", err)
		return
	}
	r := e.r.log(run.Thread, run.ID).With("outcome", string(run.End.Outcome), "events", len(e.entries)-1,
		"took", run.Ended.Sub(run.Accepted).Round(time.Millisecond).String())
	switch run.End.Outcome {
	case thread.OutcomeFailed, thread.OutcomeTimedOut:
		if !e.final.own { // what the agent says itself is not for the log
			r = r.With("err", e.final.cause)
		}
		r.Warn("run ended", "code", run.End.Code)
	default:
		r.Info("run ended")
	}
}

func (e *execution) entriesFor(events [][]byte) []thread.Entry {
	return newEvents(e.run, uint64(len(e.entries)+1), events)
}

func (e *execution) endEntry(end thread.End, ahead int) thread.Entry {
	return newEnd(e.run, uint64(len(e.entries)+ahead+1), end)
}

// append writes entries to the log, again and again while the log is away and the lease is ours.
func (e *execution) append(entries []thread.Entry) error {
	e.entries = append(e.entries, entries...)
	if err := e.r.scribe().appendAll(context.Background(), e.getLease, e.entries, entries); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.head = entries[len(entries)-1].Cursor()
	return nil
}
