package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// prepare gives a thread a first run of that many events, and returns how many entries it has.
func (n *node) prepare(thread string, events int) uint64 {
	n.t.Helper()
	if err := n.tryRun(thread, load("past", events, 0, 500, false)); err != nil {
		n.t.Fatal(err)
	}
	n.awaitEnding(thread, "finished")
	return uint64(events) + 5 // the start and the end of the run and of its message, and the end entry
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

// stalled is a viewer that has stopped reading with much ahead of it.
type stalled struct {
	follower
	count map[uint64]uint64 // events by run
}

// stall lets a viewer begin to read a thread and then stop. The smaller its buffer, the less the kernel takes for it, and the
// longer it takes to read on.
func (n *node) stall(name string, buffer int) *stalled {
	n.t.Helper()
	s := &stalled{count: map[uint64]uint64{}}
	s.follower = follower{n: n, thread: name, replay: "raw", opts: &webtest.Options{ReadBuffer: buffer}}
	s.take = func(_, to thread.Cursor, b batch) error {
		s.count[to.Run] += uint64(len(b.Events))
		return nil
	}
	if err := s.join(); err != nil {
		n.t.Fatal(err)
	}
	s.client.StopReading()
	return s
}

// ended tells whether the socket is gone.
func (s *stalled) ended() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.client.Closed(ctx)
	return err == nil
}

// goOn lets the viewer read on, on its socket or on another one, until it is at to, and checks that nothing is missing.
func (s *stalled) goOn(sameSocket bool, to thread.Cursor, past uint64) {
	s.n.t.Helper()
	if sameSocket {
		s.client.ResumeReading()
	} else {
		// What has arrived is taken, and the rest asked for again.
		s.client.Drop()
		if err := s.until(func() bool { return false }); err == nil {
			s.n.t.Fatal("the socket is still there")
		}
		s.client, s.opts = nil, nil
		if err := s.join(); err != nil {
			s.n.t.Fatal(err)
		}
	}
	if err := s.until(func() bool { return !s.pos.Before(to) }); err != nil {
		s.n.t.Error(err)
	}
	if s.count[1] != past-1 || (s.pos.Run == 2 && s.count[2] != s.pos.Seq) {
		s.n.t.Errorf("at %s the stalled viewer has %d events of the first run, which has %d, and %d of the second",
			s.pos, s.count[1], past-1, s.count[2])
	}
	s.drop()
}

// TestStalledViewersAreEvicted lets many viewers stop reading. Each loses its socket after the write timeout, and then
// nothing of them is left in the process; whoever comes back goes on without a loss.
func TestStalledViewersAreEvicted(t *testing.T) {
	viewers := sized(1_000, 100)
	timeout := fmt.Sprintf("%ds", sized(15, 1))
	n := start(t, "--write-timeout", timeout, "--log-level", "warn")
	past := n.prepare("evict", 8_000)
	forEach(16, 16, func(int) { // whatever the process makes once is there afterwards
		if _, err := n.eventsOf("evict", 1, "raw"); err != nil {
			t.Error(err)
		}
	})
	client.CloseIdleConnections()
	base := n.atRest()
	before := n.usage()

	all := make([]*stalled, viewers)
	forEach(viewers, 16, func(i int) { all[i] = n.stall("evict", 4<<10) })
	most := n.usage()
	began := time.Now()
	eventually(t, 2*time.Minute, "the sockets of the stalled viewers are closed", func() bool {
		return n.sockets() <= base
	})
	took := time.Since(began)
	for i, s := range all {
		if i%(viewers/10) == 0 {
			s.client.ResumeReading() // to read what has arrived, and learn of the end
			s.goOn(false, thread.Cursor{Run: 1, Seq: past}, past)
		} else {
			s.drop()
		}
	}
	client.CloseIdleConnections()
	sockets, after := n.atRest(), n.usage()
	if sockets > base || after.fds > before.fds+8 {
		t.Errorf("the process has %d sockets in %d files; before it had %d in %d", sockets, after.fds, base, before.fds)
	}
	fresh := start(t, "--log-level", "warn")
	left, normal := n.goroutines(), fresh.goroutines()
	if left > normal+10 {
		t.Errorf("the process has %d goroutines; a fresh one has %d", left, normal)
	}
	measured(t, "%d viewers evicted %s after the last had stopped to read, write timeout %s; files %d, at most %d, then %d; goroutines %d, of a fresh process %d; memory %d MB, peak %d MB, then %d MB",
		viewers, took.Round(time.Millisecond), timeout, before.fds, most.fds, after.fds, left, normal, before.rss>>20, after.peak>>20, after.rss>>20)
}

// sockets counts the node's open sockets, the one that listens among them.
func (n *node) sockets() int {
	n.t.Helper()
	proc := fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid)
	open, err := os.ReadDir(proc)
	if err != nil {
		n.t.Fatal(err)
	}
	count := 0
	for _, fd := range open {
		if what, err := os.Readlink(filepath.Join(proc, fd.Name())); err == nil && strings.HasPrefix(what, "socket:") {
			count++
		}
	}
	return count
}

// atRest waits until the number of sockets does not change any more, and returns it.
func (n *node) atRest() int {
	n.t.Helper()
	last, since := n.sockets(), time.Now()
	eventually(n.t, time.Minute, "the sockets come to rest", func() bool {
		if now := n.sockets(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	return last
}
