package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/webtest"
)

// TestStalledViewersAreEvicted lets many viewers stop reading. Each loses its socket after the write timeout, and then
// nothing of them is left in the process; whoever comes back goes on without a loss.
func TestStalledViewersAreEvicted(t *testing.T) {
	viewers := sized(1_000, 100)
	if underRace {
		viewers = 20
	}
	timeout := fmt.Sprintf("%ds", sized(15, 1))
	n := start(t, "--write-timeout", timeout, "--log-level", "warn")
	past := n.prepare("evict", 8_000) // more than the kernel takes for a socket
	forEach(8, 8, func(int) {         // whatever the process makes once is there afterwards
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
		if i%(viewers/sized(10, 3)) == 0 {
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

// prepare gives a thread a first run of that many events, and returns how many entries it has.
func (n *node) prepare(thread string, events int) uint64 {
	n.t.Helper()
	if err := n.tryRun(thread, load("past", events, 0, 500, false)); err != nil {
		n.t.Fatal(err)
	}
	n.awaitEnding(thread, "finished")
	return uint64(events) + 5 // the start and the end of the run and of its message, and the end entry
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
