package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// The bounds of one append.
const (
	appendEvents = 256
	appendBytes  = 1 << 20
)

// errLost is the cause with which a run's context ends when its lease is lost.
var errLost = errors.New("the node lost the lease of the run")

// drive carries the run from its first event to its end in history. It is the run's owner: it waits for the
// keeper, and for the agent as long as that is owed.
func (e *execution) drive(s *slot) {
	log := e.r.log(e.run.Thread, e.run.ID)
	log.Info("run started", "agent", e.run.Agent, "number", e.run.Number)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	k := startKeeper(e.r, e.getLease(), e)
	defer func() {
		lease := k.stop()
		bounded, done := context.WithTimeout(context.Background(), e.r.cfg.Lease)
		defer done()
		e.r.vacate(bounded, lease, s)
	}()

	returned := make(chan struct{})
	go func() {
		defer close(returned)
		e.runAgent(ctx)
	}()
	over := e.pump()
	cancel(over.cause)
	if over.own {
		e.close(over)
		e.finish(log)
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
		log.Warn("lease lost; whoever holds it now ends the run", "err", over.cause)
	}
}

// close tells everybody that the run is over.
func (e *execution) close(over *conclusion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.final = over
	close(e.ended)
}

// await waits for the agent to return. One that does not is abandoned, and counted for as long as it runs.
func (e *execution) await(returned <-chan struct{}, log *slog.Logger) {
	t := time.NewTimer(e.r.cfg.StopGrace)
	defer t.Stop()
	select {
	case <-returned:
		return
	case <-t.C:
	}
	e.r.abandoned.Add(1)
	log.Warn("agent ignores that it was cancelled; abandoned", "grace", e.r.cfg.StopGrace.String())
	go func() {
		<-returned
		e.r.abandoned.Add(-1)
	}()
}

// pump moves events from the queue to the log until the run is over and the queue is empty. While one append
// is under way the next events gather.
func (e *execution) pump() *conclusion {
	for {
		events, over := e.take()
		if over != nil && over.lost {
			return over
		}
		entries := e.entriesFor(events)
		if over != nil && over.own {
			entries = append(entries, e.endEntry(over.end, len(entries)))
		}
		if len(entries) > 0 {
			if err := e.append(entries); err != nil {
				e.conclude(conclusion{lost: true, cause: err})
				continue
			}
		}
		if over != nil {
			return over
		}
	}
}

// take waits for events and returns some; with the conclusion when they are the last ones.
func (e *execution) take() ([][]byte, *conclusion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && e.over == nil {
		e.changed.Wait()
	}
	n, bytes := 0, 0
	for n < len(e.queue) && n < appendEvents && (n == 0 || bytes+len(e.queue[n]) <= appendBytes) {
		bytes += len(e.queue[n])
		n++
	}
	events := e.queue[:n:n]
	e.queue = e.queue[n:]
	e.queued -= bytes
	e.changed.Broadcast()
	if e.over != nil && (len(e.queue) == 0 || e.over.lost) {
		return events, e.over
	}
	return events, nil
}

func (e *execution) entriesFor(events [][]byte) []thread.Entry {
	entries := make([]thread.Entry, 0, len(events)+1)
	for _, data := range events {
		entries = append(entries, thread.Entry{
			Run: e.run.Number, RunID: e.run.ID, Kind: thread.KindEvent, Data: data,
			Seq: uint64(len(e.entries) + len(entries) + 1),
		})
	}
	return entries
}

func (e *execution) endEntry(end thread.End, ahead int) thread.Entry {
	return newEnd(e.run, uint64(len(e.entries)+ahead+1), end)
}

func newEnd(run thread.Run, seq uint64, end thread.End) thread.Entry {
	data, err := json.Marshal(end)
	if err != nil {
		panic(err) // strings only
	}
	return thread.Entry{Run: run.Number, RunID: run.ID, Seq: seq, Kind: thread.KindEnd, Data: data}
}

// append writes entries to the log, again and again while the log is away and the lease is ours.
func (e *execution) append(entries []thread.Entry) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.entries = append(e.entries, entries...)
	err := e.r.appendAll(ctx, e.getLease, e.entries, entries)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.head = entries[len(entries)-1].Cursor()
	e.mu.Unlock()
	return nil
}

// appendAll appends entries, which are the last of all. If the log lost some of the earlier ones, all are appended
// again: their numbers make that exact.
func (r *Runner) appendAll(ctx context.Context, lease func() thread.Lease, all, entries []thread.Entry) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l := lease()
		call, cancel := context.WithDeadline(ctx, l.Deadline)
		err := r.Log.Append(call, l, entries)
		if errors.Is(err, thread.ErrGap) && len(all) > len(entries) {
			err = r.reappend(call, l, all)
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, thread.ErrLeaseLost), errors.Is(err, thread.ErrGap),
			errors.Is(err, thread.ErrEnded), errors.Is(err, thread.ErrCorrupt):
			return fmt.Errorf("append to run %s: %w", entries[0].RunID, err)
		case time.Now().After(lease().Deadline):
			return fmt.Errorf("append to run %s: %w: %w", entries[0].RunID, errLost, err)
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (r *Runner) reappend(ctx context.Context, lease thread.Lease, all []thread.Entry) error {
	for len(all) > 0 {
		n := min(len(all), appendEvents)
		if err := r.Log.Append(ctx, lease, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// terminate closes what is open and ends the run, in one append (AG-UI 1.0, section 8).
func (e *execution) terminate(over *conclusion) *conclusion {
	e.mu.Lock()
	events, err := closing(e.tracker, e.run, over.end)
	e.mu.Unlock()
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

// closing returns the events that end a run properly: its start if it has none, closers, and the terminal event.
func closing(t *agui.Tracker, run thread.Run, end thread.End) ([][]byte, error) {
	var events [][]byte
	if !t.Started() {
		started, err := agui.RunStarted(run.Input)
		if err != nil {
			return nil, fmt.Errorf("begin run %s: %w", run.ID, err)
		}
		events = append(events, started)
	}
	events = append(events, t.Closers()...)
	if end.Outcome == thread.OutcomeStopped {
		events = append(events, agui.RunCancelled(string(run.Thread), string(run.ID)))
	} else {
		events = append(events, agui.RunError(end.Message, end.Code))
	}
	for _, event := range events {
		if _, err := t.Observe(event); err != nil {
			return nil, fmt.Errorf("close run %s: %w", run.ID, err)
		}
	}
	return events, nil
}

func (e *execution) getLease() thread.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// renewed is called by the keeper.
func (e *execution) renewed(lease thread.Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease = lease
}

// lose is called by the keeper.
func (e *execution) lose(err error) {
	e.conclude(conclusion{lost: true, cause: fmt.Errorf("%w: %w", errLost, err)})
}

// asked is called by the keeper when somebody on another node wants the run stopped.
func (e *execution) asked(req thread.StopRequest) {
	if req.RunID == "" || req.RunID == e.run.ID {
		e.conclude(stopped(req.By))
	}
}

func (e *execution) finish(log *slog.Logger) {
	run := e.run
	run.Ended = time.Now()
	run.End, run.Pending = e.final.end, e.pending
	run.Messages = e.tracker.Created()
	if err := e.r.save(e.getLease, run, e.entries); err != nil {
		e.r.log(run.Thread, run.ID).Error("run not saved; it stays in the live log and is tried again", "err", err)
		return
	}
	log.Info("run ended", "outcome", string(run.End.Outcome), "events", len(e.entries)-1,
		"took", run.Ended.Sub(run.Accepted).Round(time.Millisecond).String())
}
