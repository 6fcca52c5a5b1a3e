//go:build integration

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// rollGrace is the grace period of the nodes that are restarted in turn: runs may go on for 3 s less.
const rollGrace = 8 * time.Second

// TestRollingRestart ends the nodes of a cluster one after the other, as a deploy does, and starts each again, while runs go on
// and many viewers watch. Runs that are over within the grace period finish; the others end as shut down, and their threads
// go on elsewhere. Every viewer is told to come back (1012), does so at another node, and sees all of it once; every run
// ends once, in Redis and in the database (F073).
func TestRollingRestart(t *testing.T) {
	r := &rolling{T: t, runs: sized(200, 12), each: sized(5, 2), closes: map[int]int{}}
	r.cluster = startClusterOn(t, steady, 3, "--grace", rollGrace.String(), "--lease", (2 * clusterLease).String(), "--log-level", "warn")
	for i := range r.runs {
		l := &rolled{thread: fmt.Sprintf("roll-%d", i), owner: i % 3, long: i/3%2 == 0}
		for j := range r.each {
			l.viewers = append(l.viewers, newWitness(r.cluster.nodes[(i+j)%3], l.thread, thread.Cursor{}))
		}
		r.lines = append(r.lines, l)
	}
	forEach(r.runs, 8, func(i int) {
		for _, w := range r.lines[i].viewers {
			if err := w.join(); err != nil {
				t.Error(err)
			}
		}
	})
	r.begin(func(l *rolled) bool { return l.long })
	var watching sync.WaitGroup
	for _, l := range r.lines {
		for j, w := range l.viewers {
			watching.Go(func() { r.watch(l, w, l.owner+j) })
		}
	}
	for k := range r.cluster.nodes {
		r.restart(k)
	}
	forEach(len(r.lines), 8, func(i int) {
		l := r.lines[i]
		if err := r.node(i).runWhenFree(l.thread, load(runID(l.last()), 3, 0, 120, false)); err != nil {
			t.Error(err)
		}
	})
	watching.Wait()
	if t.Failed() {
		return
	}
	r.check()
	closed := 0
	for _, n := range r.closes {
		closed += n
	}
	if len(r.closes) != 1 || closed < r.runs*r.each || r.closes[1012] != closed {
		t.Errorf("the sockets of %d viewers were closed with these codes: %v", r.runs*r.each, r.closes)
	}
	measured(t, "%d runs at a time and %d viewers, %d sockets closed with 1012; nodes gone after %v of %s; a viewer was away for p50 %s p99 %s longest %s; %d events delivered, 0 lost, 0 repeated",
		r.runs, r.runs*r.each, closed, r.took, rollGrace, percentile(r.away, 0.5).Round(time.Millisecond),
		percentile(r.away, 0.99).Round(time.Millisecond), percentile(r.away, 1).Round(time.Millisecond), r.delivered)
}

// rolling is a cluster whose nodes are restarted.
type rolling struct {
	*testing.T
	cluster    *cluster
	runs, each int
	lines      []*rolled
	took       []time.Duration // until each node was gone
	further    int             // runs that were refused by a node that drains, and done by another

	mu        sync.Mutex // also of the cluster's list of nodes
	closes    map[int]int
	away      []time.Duration
	delivered int
}

// rolled is a thread with its viewers. Its first run is long, and cut off by the shutdown of its node, or
// it is short and under way when its node is told to end.
type rolled struct {
	thread  string
	owner   int
	long    bool
	viewers []*witness
}

// last is the number of the thread's last run: what is cut off is followed by another, and after the restarts comes one more.
func (l *rolled) last() uint64 {
	if l.long {
		return 3
	}
	return 2
}

// node returns the present node of that number.
func (r *rolling) node(i int) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cluster.nodes[i%3]
}

// begin starts the first runs of some threads.
func (r *rolling) begin(which func(*rolled) bool) {
	r.Helper()
	forEach(len(r.lines), 8, func(i int) {
		l := r.lines[i]
		req := load("r1", 10, 5, 120, false)
		if l.long {
			req = load("r1", 1_000_000, 3, 120, true)
		}
		if which(l) {
			if err := r.node(l.owner).tryRun(l.thread, req); err != nil {
				r.Error(err)
			}
		}
	})
}

// watch is a viewer that starts at some node and goes to the next one whenever it is told to go.
func (r *rolling) watch(l *rolled, w *witness, at int) {
	defer w.drop()
	codes, err := w.roam(l.last(), func(attempt int) *node { return r.node(at + attempt) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.Error(err)
	}
	for _, code := range codes {
		r.closes[code]++
	}
	r.away = append(r.away, w.away...)
	r.delivered += w.events
}

// restart ends a node in an orderly way and starts it again.
func (r *rolling) restart(k int) {
	r.Helper()
	n, other := r.node(k), r.node(k+1)
	r.begin(func(l *rolled) bool { return l.owner == k && !l.long })
	n.term()
	told := time.Now()
	eventually(r.T, time.Second, "the node is not ready any more", func() bool {
		status, _, err := n.request(http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusServiceUnavailable
	})
	req := load("r1", 5, 0, 120, false)
	name := fmt.Sprintf("sent on %d", k)
	status, data, err := n.request(http.MethodPost, threadPath(name)+"/runs", req)
	var p problem
	if err != nil || status != http.StatusServiceUnavailable || json.Unmarshal(data, &p) != nil || p.Code != "draining" {
		r.Errorf("a run is answered %d %s by a node that drains, %v", status, data, err)
	}
	if err := other.tryRun(name, req); err != nil {
		r.Errorf("on another node: %v", err)
	}
	r.further++
	if code := n.wait(rollGrace); code != 0 {
		r.Errorf("the node ended with code %d", code)
	}
	r.took = append(r.took, time.Since(told).Round(10*time.Millisecond))
	forEach(len(r.lines), 8, func(i int) {
		if l := r.lines[i]; l.owner == k && l.long {
			if err := other.tryRun(l.thread, load("r2", 10, 20, 120, false)); err != nil {
				r.Errorf("after its run was shut down: %v", err)
			}
		}
	})
	again := n.restart()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster.nodes[k] = again
}

// check compares what all viewers saw with what is recorded.
func (r *rolling) check() {
	r.Helper()
	runs := r.further
	for i, l := range r.lines {
		for run := uint64(1); run <= l.last(); run++ {
			runs++
			events := l.viewers[0].runs[run]
			for j, w := range l.viewers {
				if !slices.Equal(w.runs[run], events) {
					r.Errorf("of run %d of %s viewer %d has %d events, and the first %d, or others", run, l.thread, j, len(w.runs[run]), len(events))
				}
			}
			outcome := thread.OutcomeFinished
			if l.long && run == 1 {
				outcome = thread.OutcomeShutDown
			}
			r.cluster.checkRun(l.thread, run, events, outcome, r.node(i))
		}
	}
	r.cluster.checkSettled(runs)
}
