package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// killLease is the lease of the nodes that are killed. Under the race detector, on a busy machine, a run may not get to
// renew one of a second.
var killLease = func() time.Duration {
	if underRace {
		return 4 * time.Second
	}
	return time.Second
}()

// TestKillLosesNothingThatWasSeen kills the process in the middle of its runs and starts it again, many times in a row on one
// database. Whatever any viewer had seen must still be there, byte for byte; each run must have ended as lost, with
// one terminal; the threads must take new runs within the lease time; and the viewers must be able to go on.
func TestKillLosesNothingThatWasSeen(t *testing.T) {
	kills := sized(50, 5)
	n := start(t, "--lease", killLease.String(), "--log-level", "error")
	rng := rand.New(rand.NewPCG(3, 4))
	var ls []*listeners
	for i := range 3 {
		ls = append(ls, newListeners(fmt.Sprintf("kill %d", i)))
	}
	var retaken []time.Duration
	events := 0
	for _, l := range ls {
		l.begin(n)
	}
	for k := range kills {
		enough := rng.IntN(1_000)
		for _, l := range ls {
			l.awaitSeen(t, enough)
		}
		n.kill()
		for _, l := range ls {
			l.stop(t)
		}
		n = n.restart()
		up := time.Now()
		for _, l := range ls {
			l.begin(n)
			retaken = append(retaken, time.Since(up))
		}
		for _, l := range ls {
			events += l.verify(n)
		}
		if t.Failed() {
			t.Fatalf("after kill %d", k+1)
		}
	}
	n.kill()
	for _, l := range ls {
		l.stop(t)
	}
	longest := percentile(retaken, 1)
	if longest > killLease+2*time.Second {
		t.Errorf("a thread took a new run only %s after its node was up again", longest)
	}
	measured(t, "%d kills of %d runs each, %d events seen, all of them there afterwards; a new run was accepted after p50 %s, longest %s (lease %s)",
		kills, len(ls), events, percentile(retaken, 0.5).Round(time.Millisecond), longest.Round(time.Millisecond), killLease)
}

// listeners are two viewers of one thread, whose socket ends whenever the node is killed, and what they have seen.
type listeners struct {
	thread string
	on     *follower // goes on where it was
	back   *follower // begins again with the run that was cut off
	both   sync.WaitGroup

	mu     sync.Mutex
	number uint64                     // of the present run
	seen   map[thread.Cursor][]byte   // by position
	ends   map[uint64][]thread.Cursor // positions of the terminals, by run
	before int                        // how many events of the run before the present one were seen until the process was killed
	failed error
}

func newListeners(name string) *listeners {
	l := &listeners{thread: name, seen: map[thread.Cursor][]byte{}, ends: map[uint64][]thread.Cursor{}}
	l.on = &follower{thread: name, replay: "raw", take: l.see}
	l.back = &follower{thread: name, replay: "raw", take: l.see}
	return l
}

// begin starts the next run as soon as the thread accepts it, and lets the viewers follow.
func (l *listeners) begin(n *node) {
	n.t.Helper()
	l.mu.Lock()
	l.number++
	l.mu.Unlock()
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for again := time.NewTicker(20 * time.Millisecond); ; {
		if err = n.tryRun(l.thread, load(runID(l.number), 1_000_000, 1_500, 120, true)); err == nil {
			again.Stop()
			break
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			n.t.Fatalf("thread %s takes no run: %v", l.thread, err)
		}
	}
	l.back.pos = thread.Cursor{Run: max(l.number, 2) - 1}
	for _, f := range []*follower{l.on, l.back} {
		f.n = n
		if err := f.join(); err != nil {
			n.t.Fatal(err)
		}
		l.both.Go(func() { l.follow(f) })
	}
}

func runID(number uint64) string { return fmt.Sprintf("r%d", number) }

// follow reads until the socket ends.
func (l *listeners) follow(f *follower) {
	err := f.until(func() bool { return false })
	f.drop()
	if !errors.Is(err, errNothingMore) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = err
	}
}

// see notes what a viewer gets, and compares it with what was seen before at that place.
func (l *listeners) see(from, to thread.Cursor, b batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.RunID != runID(from.Run) {
		return fmt.Errorf("run %d is %s", from.Run, b.RunID)
	}
	if from.Seq == 0 && from.Run > 1 && len(l.ends[from.Run-1]) != 1 {
		return fmt.Errorf("the run before it has its terminals at %v", l.ends[from.Run-1])
	}
	if uint64(len(b.Events)) != to.Seq-from.Seq && !l.complete(to, b.Events) {
		return fmt.Errorf("it has %d events", len(b.Events))
	}
	for i, e := range b.Events {
		at := thread.Cursor{Run: from.Run, Seq: from.Seq + uint64(i) + 1}
		if before, known := l.seen[at]; known && !bytes.Equal(before, e) {
			return fmt.Errorf("at %s is %.100s and was %.100s", at, e, before)
		} else if !known && isTerminal(e) {
			l.ends[at.Run] = append(l.ends[at.Run], at)
		}
		l.seen[at] = e
	}
	return nil
}

// complete tells whether a batch ends with the end entry, which is no event. l.mu is held.
func (l *listeners) complete(to thread.Cursor, events []json.RawMessage) bool {
	if n := len(events); n > 0 {
		return isTerminal(events[n-1])
	}
	return len(l.ends[to.Run]) > 0
}

// awaitSeen waits until some viewer has seen that many events of the present run.
func (l *listeners) awaitSeen(t *testing.T, events int) {
	t.Helper()
	eventually(t, time.Minute, "events of "+l.thread+" are seen", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.failed != nil {
			t.Fatal(l.failed)
		}
		return l.seen[thread.Cursor{Run: l.number, Seq: uint64(events) + 1}] != nil
	})
}

// stop waits until the viewers have read what had reached them.
func (l *listeners) stop(t *testing.T) {
	t.Helper()
	l.both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		t.Fatal(l.failed)
	}
	for l.before = 0; l.seen[thread.Cursor{Run: l.number, Seq: uint64(l.before) + 1}] != nil; l.before++ {
	}
}

// verify compares what was seen of the run before the present one with what the process has of it, and returns how many events
// that are.
func (l *listeners) verify(n *node) int {
	n.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.number - 1
	run := runID(number)
	runs, err := n.endings(l.thread)
	if err != nil || uint64(len(runs)) != number+1 || runs[number-1].RunID != run || runs[number-1].State != "lost" {
		n.t.Errorf("thread %s has the runs %+v, %v; the last but one is not %s, lost", l.thread, runs, err, run)
		return 0
	}
	events, err := n.eventsOf(l.thread, int(number), "raw")
	if err != nil {
		n.t.Error(err)
		return 0
	}
	for i := range l.before {
		if e := l.seen[thread.Cursor{Run: number, Seq: uint64(i) + 1}]; i >= len(events) || events[i] != string(e) {
			n.t.Errorf("event %d of run %s on thread %s was seen and is not there any more", i+1, run, l.thread)
		}
	}
	var last struct{ Type, Code string }
	ends := terminals(events)
	if len(ends) != 1 || json.Unmarshal([]byte(events[len(events)-1]), &last) != nil || last.Type != "RUN_ERROR" || last.Code != "lost" {
		n.t.Errorf("run %s on thread %s ends with %v, the terminals being %v", run, l.thread, last, ends)
	}
	return l.before
}
