package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/webtest"
)

// watcher is a viewer of a thread with one run. Whenever its membership or its socket ends it comes back to where it was,
// as clients do.
type watcher struct {
	follower
	t    *ordeal
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	events  [][]byte    // of the run, as they are after the latest reset
	times   []time.Time // when batches came
	over    bool        // the terminal event has come
	away    int         // how often its membership ended
	cut     int         // how often its socket ended
	refused int         // how often it was not let in
	failed  error
	socket  *webtest.Client // the present one
}

// watch returns a viewer of a thread that has joined on a node, and has caught up.
func (o *ordeal) watch(id string, on *node) *watcher {
	o.Helper()
	w := &watcher{t: o, quit: make(chan struct{})}
	w.follower = follower{n: on, thread: id, replay: "raw", mayReset: true, take: w.see}
	caught := make(chan struct{})
	w.caught = sync.OnceFunc(func() { close(caught) })
	w.begin()
	await(o, caught, patience, "a viewer of "+id+" catches up")
	return w
}

// begin joins, as soon as it is let in, and follows until the test ends.
func (w *watcher) begin() {
	w.t.Helper()
	eventually(w.t, patience, "a viewer joins "+w.thread, func() bool {
		err := w.join()
		if err != nil && webtest.Code(err) != "unavailable" {
			w.t.Fatal(err)
		}
		return err == nil
	})
	w.socket = w.client
	w.t.watchers = append(w.t.watchers, w)
	w.done.Go(w.follow)
	w.t.Cleanup(func() {
		close(w.quit)
		w.mu.Lock()
		w.socket.Drop()
		w.mu.Unlock()
		w.done.Wait()
	})
}

// sentAway counts the memberships that nodes have ended.
func (o *ordeal) sentAway() (n int) {
	for _, w := range o.watchers {
		w.mu.Lock()
		n += w.away
		w.mu.Unlock()
	}
	return n
}

// allResets counts the resets that came.
func (o *ordeal) allResets() (n int) {
	for _, w := range o.watchers {
		w.mu.Lock()
		n += w.resets
		w.mu.Unlock()
	}
	return n
}

// follow reads until the run has ended and the viewer is no longer wanted.
func (w *watcher) follow() {
	defer w.drop()
	for {
		err := error(nil)
		if w.channel == nil {
			err = w.join()
		}
		if err == nil {
			w.mu.Lock()
			w.socket = w.client
			w.mu.Unlock()
			err = w.until(w.leaves)
		}
		w.channel = nil
		if err == nil || !w.goesOn(err) {
			return
		}
		select {
		case <-w.quit:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// goesOn tells whether the viewer comes back after an error.
func (w *watcher) goesOn(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errSentAway):
		w.away++
	case errors.Is(err, errNothingMore):
		w.cut++
		w.drop()
	case webtest.Code(err) == "unavailable":
		w.refused++
	default:
		w.failed = err
		return false
	}
	return true
}

// leaves tells whether the viewer has all that it waits for, or is no longer wanted.
func (w *watcher) leaves() bool {
	select {
	case <-w.quit:
		return true
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func (w *watcher) see(from, _ thread.Cursor, b batch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from.Run != 1 || b.RunID != "r1" {
		return fmt.Errorf("it is of run %d, %s", from.Run, b.RunID)
	}
	if from.Seq == 0 {
		w.events, w.over = nil, false
	}
	w.times = append(w.times, time.Now())
	for _, e := range b.Events {
		if w.over {
			return fmt.Errorf("after the terminal came %.100s", e)
		}
		w.events = append(w.events, e)
		w.over = isTerminal(e)
	}
	return nil
}

// await waits until the viewer has come to something.
func (w *watcher) await(what string, ok func() bool) {
	w.t.Helper()
	eventually(w.t, patience, fmt.Sprintf("%s, for the viewer of %s on %s", what, w.thread, w.n.addr), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failed != nil {
			w.t.Fatalf("viewer of %s on %s: %v", w.thread, w.n.addr, w.failed)
		}
		return ok()
	})
}

// ended waits for the end of the run.
func (w *watcher) ended() {
	w.t.Helper()
	w.await("the run ends", func() bool { return w.over })
}

// after waits for an event that comes after a moment, and returns how long that took.
func (w *watcher) after(moment time.Time) (took time.Duration) {
	w.t.Helper()
	w.await("events go on", func() bool {
		i := slices.IndexFunc(w.times, moment.Before)
		if i >= 0 {
			took = w.times[i].Sub(moment)
		}
		return i >= 0
	})
	return took
}

// returns is another viewer that goes on at a position that the viewer had.
func (w *watcher) returns(at thread.Cursor) *watcher {
	w.t.Helper()
	w.mu.Lock()
	had := slices.Clone(w.events[:at.Seq])
	w.mu.Unlock()
	back := &watcher{t: w.t, quit: make(chan struct{}), events: had}
	back.follower = follower{n: w.n, thread: w.thread, replay: "raw", mayReset: true, take: back.see, pos: at}
	back.begin()
	return back
}

// silence returns for how long nothing came, at most, between a moment and the end of the run, or now.
func (w *watcher) silence(since time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.times {
		if at.After(since) {
			longest, since = max(longest, at.Sub(since)), at
		}
	}
	if !w.over {
		longest = max(longest, time.Since(since))
	}
	return longest
}

// check compares what the viewer has with the agent's record of a run that has ended as the agent wished: byte for byte,
// or, if it was told to begin anew, word for word.
func (w *watcher) check() {
	w.t.Helper()
	w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	want := w.t.agents.Emitted(w.thread, "r1")
	err := saysTheSame(want, w.events)
	if err == nil && w.resets == 0 {
		err = sameBytes(want, w.events)
	}
	if err != nil {
		w.t.Errorf("viewer of %s on %s, after %d resets, %d ends of its membership and %d of its socket: %v",
			w.thread, w.n.addr, w.resets, w.away, w.cut, err)
	}
}

// sameBytes compares events with those that an agent emitted. Its RUN_STARTED gets the input of the run.
func sameBytes(want, got [][]byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("there are %d events, not %d", len(got), len(want))
	}
	for i, e := range got {
		if i == 0 && bytes.HasPrefix(e, want[0][:len(want[0])-1]) {
			continue
		}
		if !bytes.Equal(want[i], e) {
			return fmt.Errorf("event %d is %.100s, not %.100s", i+1, e, want[i])
		}
	}
	return nil
}

// saysTheSame compares events that may be compacted with those that an agent emitted.
func saysTheSame(want, got [][]byte) error {
	if len(got) == 0 || !bytes.HasPrefix(got[0], want[0][:len(want[0])-1]) {
		return fmt.Errorf("%d events do not begin with the agent's first", len(got))
	}
	parsed := make([]emitted, len(want)-1)
	for i, e := range want[1:] {
		parsed[i] = parseEmitted(e)
	}
	return compareWords(parsed, want[1:], got[1:])
}

// cutOff checks that what the viewer has of its run is the beginning of what the agent emitted, followed by what closes the
// message and the run, with this code.
func (w *watcher) cutOff(code string) {
	w.t.Helper()
	w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	said, n := w.t.agents.Emitted(w.thread, "r1"), len(w.events)-2
	if n < 2 || n > len(said) {
		w.t.Fatalf("the viewer of %s on %s has %d events of %d", w.thread, w.n.addr, len(w.events), len(said))
	}
	if err := sameBytes(said[:n], w.events[:n]); err != nil {
		w.t.Errorf("viewer of %s on %s: %v", w.thread, w.n.addr, err)
	}
	closer, last := parse(w.t, w.events[n]), parse(w.t, w.events[n+1])
	if closer.Type != "TEXT_MESSAGE_END" || last.Type != "RUN_ERROR" || last.Code != code {
		w.t.Errorf("the run of %s ends with %s and %s %q, not with %q", w.thread, closer.Type, last.Type, last.Code, code)
	}
}
