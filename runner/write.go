package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// newEvents makes the entries of a run's events, the first of which gets the number seq.
func newEvents(run thread.Run, seq uint64, events [][]byte) []thread.Entry {
	entries := make([]thread.Entry, 0, len(events)+1) // the end may follow
	for i, data := range events {
		entries = append(entries, thread.Entry{
			Run: run.Number, RunID: run.ID, Seq: seq + uint64(i), Kind: thread.KindEvent, Data: data,
		})
	}
	return entries
}

func newEnd(run thread.Run, seq uint64, end thread.End) thread.Entry {
	data, err := json.Marshal(end)
	if err != nil {
		panic(err) // strings only
	}
	return thread.Entry{Run: run.Number, RunID: run.ID, Seq: seq, Kind: thread.KindEnd, Data: data}
}

// appendAll appends entries, which are the last of all, and tries again while the log is away and the lease is ours.
// If the log lost some of the earlier ones, all are appended again: their numbers make that exact.
func (r scribe) appendAll(ctx context.Context, lease func() thread.Lease, all, entries []thread.Entry) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l := lease()
		call, cancel := context.WithDeadline(ctx, l.Deadline)
		err := r.Log.Append(call, l, entries)
		gap := errors.Is(err, thread.ErrGap) && len(all) > len(entries)
		if gap {
			err = r.reappend(call, l, all)
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case !passing(err) && !(gap && errors.Is(err, thread.ErrGap)):
			return fmt.Errorf("append to run %s: %w", entries[0].RunID, err)
		case time.Now().After(lease().Deadline):
			return fmt.Errorf("append to run %s: %w: %w", entries[0].RunID, errLost, err)
		}
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// passing tells whether a call may succeed when it is made again.
func passing(err error) bool {
	return errors.Is(err, thread.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

func (r scribe) reappend(ctx context.Context, lease thread.Lease, all []thread.Entry) error {
	for len(all) > 0 {
		n, _ := fit(len(all), func(i int) int { return len(all[i].Data) })
		if err := r.Log.Append(ctx, lease, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
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
	if end.Finished() {
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
