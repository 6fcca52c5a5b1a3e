package redislog

import (
	"context"

	"github.com/threadcast/threadcast/persistence/thread"
)

// watch is a thread that is tailed on this node. Its lane's lock guards it.
type watch struct {
	tails map[*tail]struct{}
	run   member // the latest run that is known
	last  uint64 // seq up to which it was brought
	live  bool   // more of it may come
	home  bool   // this node writes it, and brings what it wrote
	known bool   // the run was brought home before the news told of it, as they will
}

// begin makes the watch follow a run that has begun; perhaps once more, after it was lost.
func (w *watch) begin(run member) {
	if run.number < w.run.number {
		return
	}
	if run == w.run && (w.home || w.known) {
		w.known = false
		return
	}
	if w.live && run.number != w.run.number {
		w.lag() // there may be more of the run before
	}
	w.run, w.last, w.live, w.home, w.known = run, 0, true, false, false
}

// put brings entries of the run that is followed.
func (w *watch) put(entries []thread.Entry) {
	last := entries[len(entries)-1]
	w.last = last.Seq
	if last.Kind == thread.KindEnd {
		w.live, w.home = false, false
	}
	for t := range w.tails {
		t.put(entries)
	}
}

// lag makes all tails read for themselves.
func (w *watch) lag() {
	for t := range w.tails {
		t.lag()
	}
}

// see makes the watch follow what there is in the log, when it is not known what happened before.
func (w *watch) see(s sight) {
	w.home, w.known = false, false
	switch {
	case s.run.number == 0 || s.run.number < w.run.number:
		// The run is lost. If it is written again, it goes on where it was.
	case s.run.number == w.run.number:
		w.live, w.last = !s.ended, min(w.last, s.last)
	default:
		w.run, w.live, w.last = s.run, !s.ended, s.last
	}
	for t := range w.tails {
		t.deleted(s.gone)
	}
	w.lag()
}

// watch has a tail brought what happens to a thread from now on.
func (ln *lane) watch(ctx context.Context, id thread.ID, t *tail) error {
	ln.mu.Lock()
	w := ln.watches[id]
	fresh := w == nil
	if fresh {
		w = &watch{tails: make(map[*tail]struct{})}
		ln.watches[id] = w
	}
	w.tails[t] = struct{}{}
	ln.mu.Unlock()
	// After Close has ended the tails that were there, nothing can be looked at.
	s, err := ln.log.look(ctx, id)
	if err != nil {
		return err
	}
	t.begin(s.news)
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if fresh || w.run.number < s.run.number {
		was := w.live
		w.see(s)
		if w.live && !was {
			ln.wake()
		}
	}
	return nil
}

// unwatch undoes watch.
func (ln *lane) unwatch(id thread.ID, t *tail) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w := ln.watches[id]
	if w == nil {
		return
	}
	delete(w.tails, t)
	if len(w.tails) == 0 {
		delete(ln.watches, id)
	}
}

// home brings entries that this node has appended to the thread's tails. As long as that goes on, its stream is not
// read.
func (ln *lane) home(id thread.ID, entries []thread.Entry) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w := ln.watches[id]
	first := entries[0]
	if w == nil || first.Run < w.run.number {
		return
	}
	last := entries[len(entries)-1]
	if first.Run == w.run.number && last.Seq <= w.last && last.Kind != thread.KindEnd {
		return // they were there
	}
	if first.Run != w.run.number && w.live {
		w.lag()
	}
	if first.Run != w.run.number {
		w.known = true
	}
	w.run, w.live, w.home = member{number: first.Run, id: first.RunID}, true, true
	w.put(entries)
}

// leaveHome has the thread's stream read again, after this node has ceased to write it or cannot tell.
func (ln *lane) leaveHome(id thread.ID) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if w := ln.watches[id]; w != nil && w.home {
		w.home = false
		ln.wake()
	}
}

func (ln *lane) endTails(err error) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for _, w := range ln.watches {
		for t := range w.tails {
			t.close(err)
		}
	}
}
