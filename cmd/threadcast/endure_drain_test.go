//go:build integration

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// TestTermEndsEverythingInOrder sends SIGTERM to a process with many runs under way and many viewers. It must end within its
// grace period with code 0, tell the viewers to come back (close code 1012), and leave every run with one terminal
// event in the history, the end of which is known.
func TestTermEndsEverythingInOrder(t *testing.T) {
	const grace = 6 * time.Second
	runs := sized(100, 20)
	n := start(t, "--grace", grace.String(), "--log-level", "warn")
	name := func(i int) string { return fmt.Sprintf("drain %d", i) }
	forEach(runs, 8, func(i int) {
		if err := n.tryRun(name(i), load("r", 1_000_000, 20, 120, true)); err != nil {
			t.Error(err)
		}
	})
	// Three viewers of each run, who see some of it before the signal.
	crowd := make([]*leaver, 3*runs)
	forEach(len(crowd), 8, func(i int) {
		v := &leaver{}
		v.follower = follower{n: n, thread: name(i % runs), replay: []string{"raw", "compact"}[i%2], take: v.see}
		crowd[i] = v
		err := v.join()
		if err == nil {
			err = v.until(func() bool { return v.pos.Seq > 3 })
		}
		if err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		return
	}
	asked := time.Now()
	n.term()
	codes := map[int]int{}
	var mu sync.Mutex
	forEach(len(crowd), len(crowd), func(i int) {
		code := crowd[i].awaitClose(t)
		mu.Lock()
		defer mu.Unlock()
		codes[code]++
	})
	told := time.Since(asked)
	code := n.wait(grace)
	took := time.Since(asked)
	if code != 0 {
		t.Errorf("the process ended with code %d", code)
	}
	if took > grace {
		t.Errorf("the process took %s to end, longer than its grace period of %s", took, grace)
	}
	if len(codes) != 1 || codes[1012] != len(crowd) {
		t.Errorf("the sockets of %d viewers were closed with these codes: %v", len(crowd), codes)
	}
	again := n.restart()
	for i := range runs {
		again.checkShutDown(name(i))
	}
	for i, v := range crowd {
		v.n = again
		v.client, v.channel = nil, nil
		err := v.join()
		if err == nil {
			err = v.until(func() bool { return v.ended })
		}
		if err != nil {
			t.Errorf("viewer %d, back again: %v", i, err)
		}
		v.drop()
	}
	measured(t, "%d runs, %d viewers: all sockets closed with 1012 after %s, process gone after %s of %s, code %d",
		runs, len(crowd), told.Round(time.Millisecond), took.Round(time.Millisecond), grace, code)
}

// leaver is a viewer that goes when it is told to.
type leaver struct {
	follower
	ended bool
}

func (v *leaver) see(_, _ thread.Cursor, b batch) error {
	for _, e := range b.Events {
		if v.ended {
			return fmt.Errorf("after the terminal came %.100s", e)
		}
		v.ended = isTerminal(e)
	}
	return nil
}

// awaitClose returns the code with which the server closes the socket, having read everything that comes before.
func (v *leaver) awaitClose(t *testing.T) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code, err := v.client.Closed(ctx)
	if err != nil {
		t.Error(err)
	}
	for {
		p, err := v.channel.Next(ctx)
		if err != nil {
			return code
		}
		if p.Event == "phx_error" || p.Event == "phx_close" {
			continue // the membership ends with its socket
		}
		if err := v.handle(p); err != nil {
			t.Error(err)
			return code
		}
	}
}

// checkShutDown checks that the thread's run has ended as shut down, in the list of runs and in its events.
func (n *node) checkShutDown(thread string) {
	n.t.Helper()
	runs, err := n.endings(thread)
	if err != nil || len(runs) != 1 || runs[0].State != "shut_down" {
		n.t.Errorf("thread %s has the runs %+v, %v", thread, runs, err)
		return
	}
	for _, replay := range []string{"raw", "compact"} {
		events, err := n.eventsOf(thread, 1, replay)
		if err != nil || len(events) == 0 {
			n.t.Errorf("events of thread %s: %d, %v", thread, len(events), err)
			return
		}
		var last struct{ Type, Code string }
		if err := json.Unmarshal([]byte(events[len(events)-1]), &last); err != nil {
			n.t.Error(err)
		}
		if ends := terminals(events); len(ends) != 1 || last.Type != "RUN_ERROR" || last.Code != "shut_down" {
			n.t.Errorf("thread %s ends with %+v, its terminals are %v", thread, last, ends)
		}
	}
}
