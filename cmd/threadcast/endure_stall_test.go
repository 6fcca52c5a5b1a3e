//go:build integration

package main_test

import (
	"bytes"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/webtest"
)

// nanotime is the clock of the stamps that the built-in agent puts into its events.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// TestOneStalledViewerHarmsNobody measures how long events take to many viewers, in rounds with and without one viewer that
// does not read. The others must not notice it, the process must not grow, and the stalled one must be able to go on
// without a loss. A ratio of two measurements is logged; only one that no noise explains fails the test.
func TestOneStalledViewerHarmsNobody(t *testing.T) {
	viewers, rounds := sized(199, 30), sized(5, 1)
	n := start(t, "--write-timeout", "60s", "--log-level", "warn")
	past := n.prepare("stall", 20_000) // what the stalled viewer has ahead of it
	if err := n.tryRun("stall", load("live", 1_000_000, 25, 200, true)); err != nil {
		t.Fatal(err)
	}
	w := &watchers{n: n, thread: "stall"}
	w.open(viewers)
	defer w.close()
	w.measure(time.Second) // to warm up

	var without, with []time.Duration
	rssWithout, rssWith := 0, 0
	for round := range rounds {
		p99, rss := w.measure(time.Duration(sized(4, 2)) * time.Second)
		without, rssWithout = append(without, p99), max(rssWithout, rss)

		s := n.stall("stall", 64<<10)
		p99, rss = w.measure(time.Duration(sized(4, 2)) * time.Second)
		with, rssWith = append(with, p99), max(rssWith, rss)
		if s.ended() {
			t.Error("the stalled viewer's socket was closed before its time")
		}
		s.goOn(round%2 == 0, thread.Cursor{Run: 2, Seq: 10}, past)
	}
	before, after := percentile(without, 0.5), percentile(with, 0.5)
	if after > 3*before+20*time.Millisecond {
		t.Errorf("with a stalled viewer the p99 is %s, without one %s", after, before)
	}
	if rssWith > rssWithout+64<<20 {
		t.Errorf("with a stalled viewer the process holds %d MB, without one %d MB", rssWith>>20, rssWithout>>20)
	}
	measured(t, "%d viewers, median p99 of %d rounds: %s without and %s with a stalled one, ratio %.2f; memory at most %d MB without, %d MB with",
		viewers, rounds, before, after, float64(after)/float64(before), rssWithout>>20, rssWith>>20)
}

// watchers are viewers who measure how long events take to them.
type watchers struct {
	n      *node
	thread string
	all    []*follower
	done   sync.WaitGroup
	over   atomic.Bool

	mu      sync.Mutex
	on      bool
	samples []time.Duration
}

// open lets viewers watch the thread from now on.
func (w *watchers) open(viewers int) {
	w.n.t.Helper()
	head, err := thread.ParseCursor(w.n.thread(w.thread).Status.Cursor)
	if err != nil {
		w.n.t.Fatal(err)
	}
	w.all = make([]*follower, viewers)
	forEach(viewers, 8, func(i int) {
		f := &follower{n: w.n, thread: w.thread, replay: "raw", pos: head, opts: &webtest.Options{OnFrame: w.clock}}
		f.take = func(_, _ thread.Cursor, _ batch) error { return nil }
		w.all[i] = f
		if err := f.join(); err != nil {
			w.n.t.Error(err)
		}
	})
	if w.n.t.Failed() {
		w.n.t.FailNow()
	}
	for _, f := range w.all {
		w.done.Go(func() {
			if err := f.until(w.over.Load); err != nil && !w.over.Load() {
				w.n.t.Error(err)
			}
		})
	}
}

// close ends the viewers.
func (w *watchers) close() {
	w.over.Store(true)
	for _, f := range w.all {
		f.drop()
	}
	w.done.Wait()
}

// clock notes how old the events of a frame are.
func (w *watchers) clock(frame []byte) {
	now := nanotime()
	_, rest, ok := bytes.Cut(frame, []byte(`"delta":"#`))
	for ok {
		var mark []byte
		mark, rest, _ = bytes.Cut(rest, []byte(";"))
		_, stamp, _ := bytes.Cut(mark, []byte("@"))
		if at, err := strconv.ParseInt(string(stamp), 10, 64); err == nil {
			w.mu.Lock()
			if w.on {
				w.samples = append(w.samples, time.Duration(now-at))
			}
			w.mu.Unlock()
		}
		_, rest, ok = bytes.Cut(rest, []byte(`"delta":"#`))
	}
}

// measure returns the 99th percentile of what it takes to deliver an event, and the most memory that the process held.
func (w *watchers) measure(d time.Duration) (p99 time.Duration, rss int) {
	w.n.t.Helper()
	w.mu.Lock()
	w.on, w.samples = true, nil
	w.mu.Unlock()
	over := time.After(d)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for going := true; going; {
		select {
		case <-again.C:
			rss = max(rss, w.n.usage().rss)
		case <-over:
			going = false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = false
	if len(w.samples) < len(w.all) {
		w.n.t.Fatalf("%d viewers got only %d events within %s", len(w.all), len(w.samples), d)
	}
	return percentile(w.samples, 0.99), rss
}
