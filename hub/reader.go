package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Replay says in what form a reader takes what was there before it came.
type Replay uint8

const (
	// Compact takes runs from their beginning in compacted form, the live one included.
	Compact Replay = iota
	// Raw takes every run entry by entry while the live log has it.
	Raw
	// Stored takes finished runs as history keeps them, and the live one entry by entry: what costs least for a reader
	// who takes everything once, since nothing is compacted and no more of a live run is held than one batch.
	Stored
)

// Options say where a subscription begins.
type Options struct {
	After  thread.Cursor // the last position that the reader has; zero for none
	Now    bool          // begin at the head instead: take only what comes
	Replay Replay
	// Discarded takes also the runs that were replaced.
	Discarded bool
}

// firstPage is how many entries are read as long as it is not known how large they are.
const firstPage = 64

// reader walks from a cursor through history and live log. It is the one place that knows where the entry
// after a position is to be found. It belongs to one goroutine.
type reader struct {
	source
	id     thread.ID
	replay Replay
	whole  bool // runs that were discarded are taken too

	pos    thread.Cursor
	atEnd  bool          // pos is the end of its run
	target thread.Cursor // what there was at the beginning
	queue  *compacted    // a run that is being taken in compacted form
	page   int           // how many entries make about one batch, as far as is known
	loaded thread.Run    // the finished run that was looked at last; zero once it has been taken
	reset  *Batch        // to be returned before anything else
}

// newReader finds where the thread's log and history stand and whether opts.After is a position in them.
// The error is [thread.ErrBadCursor] if it is not and never was.
func newReader(ctx context.Context, src source, id thread.ID, opts Options) (*reader, error) {
	r := &reader{source: src, id: id, replay: opts.Replay, whole: opts.Discarded}
	th, err := r.aim(ctx)
	if err != nil {
		return nil, err
	}
	after := opts.After
	if opts.Now {
		after = r.target
	}
	if err := r.begin(ctx, after, th); err != nil {
		return nil, err
	}
	return r, nil
}

// aim sets the target to what there is now, in log and history, and returns what history knows of the thread.
func (r *reader) aim(ctx context.Context) (thread.Thread, error) {
	head, err := r.log.Head(ctx, r.id)
	if err != nil {
		return thread.Thread{}, fmt.Errorf("find the head of thread %s: %w", r.id, err)
	}
	th, err := r.history.Thread(ctx, r.id)
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return th, fmt.Errorf("look up thread %s: %w", r.id, err)
	}
	if r.target.Before(head) {
		r.target = head
	}
	// Of a run that has not ended this is the position before it: there may be finished ones before that.
	if th.Latest != nil && r.target.Before(th.Latest.Cursor()) {
		r.target = th.Latest.Cursor()
	}
	return th, nil
}

// begin puts the reader at after. A position in a run that is gone makes it begin again from the start.
func (r *reader) begin(ctx context.Context, after thread.Cursor, th thread.Thread) error {
	r.pos = after
	switch {
	case after == thread.Cursor{}:
		return nil
	case after.Run > max(th.LastRun, r.target.Run):
		return fmt.Errorf("%w: %s is ahead of this thread", thread.ErrBadCursor, after)
	case after.Seq == 0:
		return r.beginBefore(ctx, after.Run, th)
	}
	entries, err := r.log.Read(ctx, r.id, thread.Cursor{Run: after.Run, Seq: after.Seq - 1}, 1)
	if err != nil {
		return fmt.Errorf("read thread %s: %w", r.id, err)
	}
	if len(entries) == 1 && entries[0].Cursor() == after {
		r.atEnd = entries[0].Kind == thread.KindEnd
		return nil
	}
	run, err := r.finished(ctx, after.Run)
	switch {
	case err == nil && r.skips(run):
		r.drop(run)
		return nil
	case err == nil && after.Seq > run.LastSeq:
		r.again(run.ID, after.Run) // the log lost what was shown of it, and so has its record
		return nil
	case err == nil:
		if r.atEnd = after.Seq == run.LastSeq; r.atEnd {
			r.loaded = thread.Run{}
		}
		return nil
	case !errors.Is(err, thread.ErrNotFound):
		return err
	case r.target.Run == after.Run && r.target.Seq == 0:
		// The log has nothing of a run that goes on: it lost that, and will be given it again.
		return fmt.Errorf("the live log has not got run %d of thread %s: %w", after.Run, r.id, thread.ErrUnavailable)
	case r.target.Run == after.Run && r.target.Before(after):
		// The log lost some of a run that goes on.
		first, err := r.log.Read(ctx, r.id, thread.Cursor{Run: after.Run}, 1)
		if err != nil {
			return fmt.Errorf("read thread %s: %w", r.id, err)
		}
		if len(first) > 0 && first[0].Run == after.Run {
			r.again(first[0].RunID, after.Run)
			return nil
		}
	}
	r.forget()
	return nil
}

// skips tells whether a run is left out.
func (r *reader) skips(run thread.Run) bool { return run.Discarded && !r.whole }

// pass moves the reader behind a run that is left out.
func (r *reader) pass(run thread.Run) {
	r.pos, r.atEnd = run.Cursor(), true
	r.queue, r.loaded = nil, thread.Run{}
}

// drop is pass for a run of which something was taken.
func (r *reader) drop(run thread.Run) {
	r.pass(run)
	r.reset = &Batch{Kind: Reset, RunID: run.ID, From: r.pos, To: r.pos}
}

// again makes the reader begin again with a run.
func (r *reader) again(id thread.RunID, number uint64) {
	r.pos = thread.Cursor{Run: number}
	r.reset = &Batch{Kind: Reset, RunID: id, From: r.pos, To: r.pos}
}

// forget makes the reader begin again, as its position is in a run that is no more: the thread was deleted since.
func (r *reader) forget() {
	r.pos = thread.Cursor{}
	r.reset = &Batch{Kind: Reset}
}

// beginBefore checks that the run exists before whose first entry the reader is to begin.
func (r *reader) beginBefore(ctx context.Context, number uint64, th thread.Thread) error {
	if th.Latest != nil && th.Latest.Number == number {
		return nil // it may have no entry yet
	}
	entries, err := r.log.Read(ctx, r.id, thread.Cursor{Run: number}, 1)
	if err != nil {
		return fmt.Errorf("read thread %s: %w", r.id, err)
	}
	if len(entries) == 1 && entries[0].Run == number {
		return nil
	}
	if _, err = r.finished(ctx, number); errors.Is(err, thread.ErrNotFound) {
		r.forget()
		return nil
	}
	return err
}

// fetch reads what follows a position in the log: about as much as makes one batch, however large the entries are.
// full tells whether there may be more.
func (r *reader) fetch(ctx context.Context, after thread.Cursor) (entries []thread.Entry, full bool, err error) {
	want := r.page
	if want == 0 {
		want = min(firstPage, r.cfg.Page)
	}
	entries, err = r.log.Read(ctx, r.id, after, want)
	if err != nil {
		return nil, false, fmt.Errorf("read thread %s after %s: %w", r.id, after, err)
	}
	if len(entries) > 0 {
		bytes := 0
		for _, e := range entries {
			bytes += size(e)
		}
		r.page = min(max(1, r.cfg.BatchBytes*len(entries)/bytes), r.cfg.Page)
	}
	return entries, len(entries) == want, nil
}

// finished returns the finished run of that number. A damaged one comes with stand-in events.
func (r *reader) finished(ctx context.Context, number uint64) (thread.Run, error) {
	run, err := r.nextRun(ctx, number-1)
	if err == nil && run.Number != number {
		return thread.Run{}, thread.ErrNotFound
	}
	return run, err
}

func (r *reader) nextRun(ctx context.Context, after uint64) (thread.Run, error) {
	if r.loaded.Number == after+1 {
		return r.loaded, nil
	}
	run, err := r.history.NextRun(ctx, r.id, after)
	if errors.Is(err, thread.ErrCorrupt) && run.Number > after {
		run.Events, err = r.cfg.Damaged(run), nil
	}
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		err = fmt.Errorf("load the run after %d of thread %s: %w", after, r.id, err)
	}
	if err == nil {
		r.loaded = run
	}
	return run, err
}

// boundary tells whether the reader has nothing of the run it will take next.
func (r *reader) boundary() bool { return r.atEnd || r.pos.Seq == 0 }

// caughtUp tells whether the reader has everything that was there when it began.
func (r *reader) caughtUp() bool {
	return r.queue == nil && r.reset == nil && !r.pos.Before(r.target)
}

// queued returns what has been prepared to be taken next.
func (r *reader) queued() (Batch, bool) {
	if r.reset != nil {
		b := *r.reset
		r.reset = nil
		return b, true
	}
	if r.queue == nil {
		return Batch{}, false
	}
	b := r.queue.take(r.cfg.limits())
	b.Replay = r.pos.Before(r.target)
	r.pos = b.To
	if len(r.queue.events) == 0 {
		r.atEnd = r.queue.ended
		r.queue = nil
	}
	return b, true
}

// step returns the batch after the reader's position, from live log or history; ok is false if there is
// nothing yet.
func (r *reader) step(ctx context.Context) (b Batch, ok bool, err error) {
	for {
		if b, ok := r.queued(); ok {
			return b, true, nil
		}
		var more bool
		if r.boundary() {
			b, more, err = r.nextStep(ctx)
		} else {
			b, more, err = r.withinStep(ctx)
		}
		if err != nil {
			return Batch{}, false, err
		}
		if !more {
			// There is nothing after pos, whatever there was when the reader began.
			if r.pos.Before(r.target) {
				r.target = r.pos
			}
			return Batch{}, false, nil
		}
		if b.Events != nil {
			return b, true, nil
		}
	}
}

// remaining is step for as long as the reader has not caught up.
func (r *reader) remaining(ctx context.Context) (b Batch, ok bool, err error) {
	if r.caughtUp() {
		return Batch{}, false, nil
	}
	return r.step(ctx)
}

// take moves the reader over entries that begin right after its position and returns those of one batch.
func (r *reader) take(entries []thread.Entry) Batch {
	n := r.cfg.limits().fits(len(entries), func(i int) int { return len(entries[i].Data) })
	b := entryBatch(r.pos, entries[:n])
	b.Replay = r.pos.Before(r.target)
	taken := entries[0]
	for _, e := range entries[:n] {
		if e.Run != taken.Run {
			break
		}
		taken = e
	}
	r.pos, r.atEnd = b.To, taken.Kind == thread.KindEnd
	return b
}

// withinStep goes on in the middle of a run. It returns more with an empty batch when it only found out
// more about the position.
func (r *reader) withinStep(ctx context.Context) (b Batch, more bool, err error) {
	entries, _, err := r.fetch(ctx, r.pos)
	if err != nil {
		return b, false, err
	}
	if len(entries) > 0 && entries[0].Run == r.pos.Run && entries[0].Seq == r.pos.Seq+1 {
		return r.take(entries), true, nil
	}
	run, err := r.finished(ctx, r.pos.Run)
	if errors.Is(err, thread.ErrNotFound) {
		return b, false, nil // it is live, and nothing has come yet
	}
	if err != nil {
		return b, false, err
	}
	if r.skips(run) {
		r.drop(run)
		return b, true, nil
	}
	if run.LastSeq == r.pos.Seq {
		r.atEnd, r.loaded = true, thread.Run{}
		return b, true, nil
	}
	events, cut := rest(run.Events, r.pos.Seq)
	if !cut {
		from := thread.Cursor{Run: run.Number}
		r.reset = &Batch{Kind: Reset, RunID: run.ID, From: from, To: from}
		r.pos, r.atEnd = from, false
		return b, true, nil
	}
	r.queue = &compacted{
		run: run.Number, runID: run.ID, last: run.LastSeq, ended: true, from: r.pos.Seq, events: events,
	}
	r.loaded = thread.Run{}
	return b, true, nil
}

// nextStep begins the next run. The log is asked before the history: a run is saved before it is dropped,
// so that it is found in one of them whenever this runs.
func (r *reader) nextStep(ctx context.Context) (b Batch, more bool, err error) {
	after := r.pos.Run
	if !r.atEnd && after > 0 {
		after--
	}
	entries, full, err := r.fetch(ctx, thread.Cursor{Run: after, Seq: ^uint64(0) >> 1})
	if err != nil {
		return b, false, err
	}
	live := len(entries) > 0 && entries[0].Seq == 1
	if live && r.replay == Raw && entries[0].Run == after+1 {
		// Nothing can lie before it, so that the history, which would load the whole run, need not be asked.
		r.pos, r.atEnd = thread.Cursor{Run: entries[0].Run}, false
		return r.take(entries), true, nil
	}
	run, err := r.nextRun(ctx, after)
	saved := err == nil
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return b, false, err
	}
	if saved && r.skips(run) && (!live || run.Number <= entries[0].Run) {
		r.pass(run)
		return b, true, nil
	}
	if saved && live {
		switch number := entries[0].Run; {
		case number < run.Number:
			saved = false
		case number > run.Number || r.replay != Raw:
			live = false
		default:
			saved = false
		}
	}
	if !saved {
		r.loaded = thread.Run{}
	}
	switch {
	case saved:
		r.begun(compacted{
			run: run.Number, runID: run.ID, last: run.LastSeq, ended: true, events: run.Events,
		})
		return b, true, nil
	case !live:
		return b, false, nil
	case r.replay == Compact && r.pos.Before(r.target):
		return b, true, r.compactLive(ctx, entries, full)
	}
	r.pos, r.atEnd = thread.Cursor{Run: entries[0].Run}, false
	return r.take(entries), true, nil
}

// begun queues a run that is taken from its beginning.
func (r *reader) begun(c compacted) {
	r.pos, r.atEnd = thread.Cursor{Run: c.run}, false
	r.queue, r.loaded = &c, thread.Run{}
}

// compactLive queues what the live log has of a run, compacted. entries are its first ones.
func (r *reader) compactLive(ctx context.Context, entries []thread.Entry, full bool) error {
	c := compacted{run: entries[0].Run, runID: entries[0].RunID}
	for len(entries) > 0 {
		for _, e := range entries {
			if e.Run != c.run {
				break
			}
			c.last, c.ended = e.Seq, e.Kind == thread.KindEnd
			if e.Kind == thread.KindEvent {
				c.events = append(c.events, thread.Event{First: e.Seq, Last: e.Seq, Data: e.Data})
			}
		}
		last := entries[len(entries)-1]
		if last.Run != c.run || !full || !last.Cursor().Before(r.target) {
			break
		}
		var err error
		if entries, full, err = r.fetch(ctx, last.Cursor()); err != nil {
			return err
		}
	}
	c.events = r.cfg.Compact(c.events)
	r.begun(c)
	return nil
}
