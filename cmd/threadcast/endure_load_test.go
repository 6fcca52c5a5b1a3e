package main_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// TestManyRunsLeaveNothingBehind runs thousands of short runs over 200 threads, each watched and each thread one after the
// other, with a log that forgets them after a second. After a while memory, threads of the system, open files and the
// write-ahead log must not grow any more, and at the end no goroutine may be left.
func TestManyRunsLeaveNothingBehind(t *testing.T) {
	const workers = 4
	runs, threads := sized(10_000, 1_000), sized(200, 40)
	n := start(t, "--retention", "1s", "--log-level", "error")
	all := make([]*sprinter, threads)
	forEach(threads, workers, func(i int) {
		s := &sprinter{}
		s.follower = follower{n: n, thread: fmt.Sprintf("many %d", i), replay: "raw", take: s.see}
		all[i] = s
		if err := s.join(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	var samples []holds
	const parts = 10
	var failed atomic.Bool
	for part := range parts {
		forEach(threads, workers, func(i int) {
			for range runs / threads / parts {
				if err := all[i].sprint(); err != nil && !failed.Swap(true) {
					t.Error(err)
				}
			}
			if (part+i)%5 == 0 { // some come and go
				all[i].drop()
				if err := all[i].join(); err != nil {
					t.Error(err)
				}
			}
		})
		if failed.Load() {
			return
		}
		samples = append(samples, n.holds())
	}
	took := time.Since(began)
	// The first parts are the warm-up.
	middle, last := samples[parts/2], samples[parts-1]
	for _, grown := range []struct {
		what        string
		from, to    int
		factor, add int
	}{
		{"MB of memory", middle.rss >> 20, last.rss >> 20, 25, 32},
		{"threads", middle.threads, last.threads, 0, 8},
		{"open files", middle.fds, last.fds, 0, 8},
		{"MB of write-ahead log", middle.wal >> 20, last.wal >> 20, 0, 16},
	} {
		if grown.to > grown.from+grown.from*grown.factor/100+grown.add {
			t.Errorf("%s: %d after half of the runs, %d at the end", grown.what, grown.from, grown.to)
		}
	}
	for _, s := range all {
		s.drop()
	}
	client.CloseIdleConnections()
	sockets := n.atRest()
	fresh := start(t, "--log-level", "error")
	left, normal := n.goroutines(), fresh.goroutines()
	if left > normal+10 {
		t.Errorf("the process has %d goroutines; a fresh one has %d", left, normal)
	}
	measured(t, "%d runs on %d threads in %s, %.1f ms each; after a tenth, the half and all of them: memory %d, %d, %d MB, threads %d, %d, %d, files %d, %d, %d, write-ahead log %d, %d, %d MB; in the end %d sockets, %d goroutines, fresh %d",
		runs, threads, took.Round(time.Millisecond), float64(took.Milliseconds())/float64(runs),
		samples[0].rss>>20, middle.rss>>20, last.rss>>20, samples[0].threads, middle.threads, last.threads,
		samples[0].fds, middle.fds, last.fds, samples[0].wal>>20, middle.wal>>20, last.wal>>20, sockets, left, normal)
}

// holds is what a process holds, its write-ahead log included.
type holds struct {
	usage
	wal int
}

func (n *node) holds() holds {
	n.t.Helper()
	info, err := os.Stat(n.database() + "-wal")
	if err != nil {
		n.t.Fatal(err)
	}
	return holds{n.usage(), int(info.Size())}
}

// sprinter watches its thread and runs short runs on it.
type sprinter struct {
	follower
	run    uint64
	events int
	ended  bool
}

// sprintEvents is how many events a short run has: 20 deltas, and the beginning and the end of message and run.
const sprintEvents = 24

// sprint runs one run and waits for its end.
func (s *sprinter) sprint() error {
	s.run++
	s.events, s.ended = 0, false
	if err := s.n.tryRun(s.thread, load(runID(s.run), sprintEvents-4, 0, 120, false)); err != nil {
		return err
	}
	if err := s.until(func() bool { return s.ended }); err != nil {
		return err
	}
	if s.events != sprintEvents {
		return fmt.Errorf("run %d of thread %s came with %d events, not %d", s.run, s.thread, s.events, sprintEvents)
	}
	return nil
}

func (s *sprinter) see(from, _ thread.Cursor, b batch) error {
	if from.Run != s.run {
		if len(b.Events) > 0 {
			return fmt.Errorf("it is of run %d; the present one is %d", from.Run, s.run)
		}
		return nil // the end entry of the run before
	}
	for _, e := range b.Events {
		s.events++
		s.ended = s.ended || isTerminal(e)
	}
	return nil
}
