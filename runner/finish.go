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

// saveTimeout bounds one attempt to save a run. It may last longer than the lease: the history checks tokens itself.
const saveTimeout = 30 * time.Second

// save compacts a run's entries, records them in the history and lets the log drop them. It tries again while the
// history is away and the lease is ours; every step may be repeated.
func (r scribe) save(ctx context.Context, lease func() thread.Lease, run thread.Run, entries []thread.Entry) error {
	run.LastSeq = entries[len(entries)-1].Seq
	run.Events = Compact(events(entries))
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l := lease()
		run.Token = l.Token
		call, cancel := context.WithTimeout(ctx, saveTimeout)
		err := r.History.SaveRun(call, run)
		cancel()
		switch {
		case err == nil, errors.Is(err, thread.ErrNotFound):
			r.letGo(ctx, lease, run)
			return nil
		case !passing(err) || time.Now().After(lease().Deadline) || !pause(ctx, wait):
			return fmt.Errorf("save run %s: %w", run.ID, err)
		}
	}
}

// letGo has the log drop a saved run after its retention. If the log is away for longer than the lease lasts, the run stays
// there for as long as the log keeps what nobody renews.
func (r scribe) letGo(ctx context.Context, lease func() thread.Lease, run thread.Run) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l := lease()
		call, cancel := context.WithDeadline(ctx, l.Deadline)
		err := r.Log.Drop(call, run.Thread, run.Number, r.cfg.Retention)
		cancel()
		if err == nil {
			return
		}
		if !passing(err) || time.Now().After(lease().Deadline) || !pause(ctx, wait) {
			r.log(run.Thread, run.ID).Warn("a saved run stays in the live log for longer than its retention", "err", err)
			return
		}
	}
}

// events returns the events among a run's entries, uncompacted.
func events(entries []thread.Entry) []thread.Event {
	out := make([]thread.Event, 0, len(entries))
	for _, e := range entries {
		if e.Kind == thread.KindEvent {
			out = append(out, thread.Event{First: e.Seq, Last: e.Seq, Data: e.Data})
		}
	}
	return out
}

// Compact makes fewer events of a run's, with the same meaning and in the same order (AG-UI 1.0 document,
// section 14.3). The hub and the history share it.
func Compact(in []thread.Event) []thread.Event {
	raw := make([]agui.Event, len(in))
	for i, e := range in {
		raw[i] = agui.Event(e)
	}
	compacted := agui.Compact(raw)
	out := make([]thread.Event, len(compacted))
	for i, e := range compacted {
		out[i] = thread.Event(e)
	}
	return out
}

// lostEnd is how a run ends whose owner went away.
var lostEnd = thread.End{
	Outcome: thread.OutcomeLost, Code: "lost",
	Message: "The server that ran the agent went away, or lost its storage, before the run ended.",
}

// takeOver ends and saves a run that another owner left, under a lease on its thread, which it returns renewed.
func (r reclaimer) takeOver(ctx context.Context, lease thread.Lease, run thread.Run) (thread.Lease, error) {
	from := run.Owner
	run.Owner, run.Token = lease.Owner, lease.Token
	if err := r.History.TakeRun(ctx, run); err != nil {
		return lease, fmt.Errorf("take run %s over: %w", run.ID, err)
	}
	h := &holding{lease: lease}
	k := startKeeper(r.Runner, lease, h)
	err := r.finishLeft(ctx, h.current, run, from)
	return k.stop(), err
}

// finishLeft writes what the run's entries lack, and saves it.
func (r reclaimer) finishLeft(ctx context.Context, lease func() thread.Lease, run thread.Run, from string) error {
	entries, err := r.Runner.scribe().readRun(ctx, run)
	if err != nil {
		return err
	}
	tracker, step := replay(run, entries)
	if len(entries) == 0 || entries[len(entries)-1].Kind != thread.KindEnd {
		add, err := ending(tracker, run, entries, step)
		if err != nil {
			return err
		}
		entries = append(entries, add...)
		if err := r.Runner.scribe().appendAll(ctx, lease, entries, add); err != nil {
			return err
		}
	}
	run.Ended, run.Messages = time.Now(), tracker.Created()
	run.Pending, run.Usage = step.Interrupts, step.Usage
	if in, err := agui.ParseInput(run.Input); err == nil {
		run.Calls = pendingCalls(tracker, step, run.ID, in.Tools)
	}
	if err := json.Unmarshal(entries[len(entries)-1].Data, &run.End); err != nil {
		return fmt.Errorf("read the end of run %s: %w: %w", run.ID, thread.ErrCorrupt, err)
	}
	if err := r.Runner.scribe().save(ctx, lease, run, entries); err != nil {
		return err
	}
	r.log(run.Thread, run.ID).Info("run reclaimed", "from", from, "outcome", string(run.End.Outcome), "events", len(entries)-1)
	return nil
}

// readRun reads a whole run back from the log.
func (r scribe) readRun(ctx context.Context, run thread.Run) ([]thread.Entry, error) {
	var all []thread.Entry
	for after := (thread.Cursor{Run: run.Number}); ; {
		entries, err := r.Log.Read(ctx, run.Thread, after, 1000)
		if err != nil {
			return nil, fmt.Errorf("read run %s back: %w", run.ID, err)
		}
		for _, e := range entries {
			if e.Run != run.Number {
				return all, nil
			}
			all = append(all, e)
		}
		if len(entries) == 0 {
			return all, nil
		}
		after = entries[len(entries)-1].Cursor()
	}
}

// replay brings a tracker to where the entries leave it.
func replay(run thread.Run, entries []thread.Entry) (*agui.Tracker, agui.Step) {
	t := agui.NewTracker(string(run.Thread), string(run.ID))
	var last agui.Step
	for _, e := range entries {
		if e.Kind == thread.KindEvent {
			if step, err := t.Observe(e.Data); err == nil { // it was checked before it was written
				last = step
			}
		}
	}
	return t, last
}

// ending returns the entries that a run lacks.
func ending(t *agui.Tracker, run thread.Run, entries []thread.Entry, last agui.Step) ([]thread.Entry, error) {
	end := lostEnd
	var events [][]byte
	if last.Terminal {
		end = endOf(last)
		if end.Code == stoppedError.Code && end.Message == stoppedError.Message {
			end = stoppedError // which the owner wrote
		}
	} else {
		var err error
		if events, err = closing(t, run, end); err != nil {
			return nil, err
		}
	}
	next := uint64(len(entries) + 1)
	return append(newEvents(run, next, events), newEnd(run, next+uint64(len(events)), end)), nil
}
