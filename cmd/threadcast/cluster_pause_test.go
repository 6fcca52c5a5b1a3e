package main_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// A node that has only viewers is killed. They go on at the others, where they were (F141).
func TestViewersOfAKilledNodeGoOnElsewhere(t *testing.T) {
	t.Parallel()
	threads, each := sized(6, 2), sized(10, 4)
	agents := agenttest.NewServer(t)
	agents.Handle("talker", append(append(emits(begins, opens), agenttest.Repeat(sized(1_500, 500), talksOn, 2*time.Millisecond)), emits(closes, ends)...))
	c := startClusterOn(t, steady, 3, "--agent", "talker=agui:"+agents.URL("talker"), "--log-level", "error")
	owner, elsewhere, dies := c.nodes[0], c.nodes[1], c.nodes[2]
	name := func(i int) string { return fmt.Sprintf("leave-%d", i) }
	var crowd []*witness
	for i := range threads * each {
		w := newWitness(dies, name(i%threads), thread.Cursor{})
		if err := w.join(); err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, w)
	}
	for i := range threads {
		owner.startRun(name(i), runRequest{RunID: "r1"})
	}
	for i, w := range crowd {
		if err := w.until(func() bool { return w.events > 10*(1+i/threads) }); err != nil {
			t.Fatal(err)
		}
	}
	killed := time.Now()
	dies.kill()
	var back sync.WaitGroup
	had := make([]int, len(crowd))
	for i, w := range crowd {
		had[i] = w.events
		back.Go(func() {
			if _, err := w.roam(1, func(int) *node { return []*node{owner, elsewhere}[i%2] }); err != nil {
				t.Error(err)
			}
			w.drop()
		})
	}
	back.Wait()
	for i, w := range crowd {
		if w.joins != 2 {
			t.Errorf("viewer %d joined %d times", i, w.joins)
		}
		if i < threads {
			c.checkRun(w.thread, 1, w.runs[1], thread.OutcomeFinished, owner, elsewhere)
		}
		if !slices.Equal(w.runs[1], crowd[i%threads].runs[1]) {
			t.Errorf("viewer %d has other events than viewer %d", i, i%threads)
		}
	}
	if n := agents.Invocations(); n != threads {
		t.Errorf("the agent was called %d times for %d runs", n, threads)
	}
	measured(t, "%d viewers of %d runs, with %d to %d events when their node was killed, had all %d within %s",
		len(crowd), threads, slices.Min(had), slices.Max(had), len(crowd[0].runs[1]), time.Since(killed).Round(time.Millisecond))
}

// talksOn is a word that is unlike the others of its message.
const talksOn = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{i} "}`

// TestPausedOwnerFindsItselfReplaced stops a node that runs agents (SIGSTOP) for longer than its leases last. Others end its runs
// and take their threads. When it goes on (SIGCONT), what its agents had sent to it meanwhile, their terminals included, is
// nowhere accepted; it closes their requests, leaves the new runs alone, shows its viewers what the others
// have made of the threads, and runs agents like any other node (F052).
func TestPausedOwnerFindsItselfReplaced(t *testing.T) {
	p := &pausing{T: t, agents: agenttest.NewServer(t)}
	p.agents.Handle("endless", append(emits(begins, opens), agenttest.Repeat(1_000_000, talksOn, 2*time.Millisecond)))
	p.agents.Handle("silent", append(emits(begins, opens, talks), agenttest.WaitFor("never")))
	p.agents.Handle("ending", append(emits(begins, opens, talks), append([]agenttest.Step{agenttest.WaitFor("end")}, emits(closes, ends)...)...))
	flags := []string{"--lease", clusterLease.String(), "--log-level", "warn", "--agent", "demo=demo"}
	for _, name := range []string{"endless", "silent", "ending"} {
		flags = append(flags, "--agent", name+"=agui:"+p.agents.URL(name))
	}
	p.cluster = startClusterOn(t, steady, 3, flags...)
	for _, name := range []string{"endless", "silent", "ending", "demo"} {
		p.lines = append(p.lines, &pausedLine{thread: name, agent: name, request: load("r1", 1_000_000, 400, 120, true)})
	}
	// Short runs that end around the pause: some are being saved in that moment.
	for i := range sized(40, 10) {
		p.lines = append(p.lines, &pausedLine{
			thread: fmt.Sprintf("short-%d", i), agent: "demo", request: load("r1", 20*i, 400, 120, false),
		})
	}
	p.begin()
	p.pauseAndReplace()
	p.checkReplaced()
	p.runAgain()
	p.cluster.checkSettled(2*len(p.lines) + 1)
	measured(t, "of %d runs %d were lost; the last ended %s after the pause began (lease %s); the requests of its agents were closed %s after the node went on",
		len(p.lines), p.lost, p.ended.Round(time.Millisecond), clusterLease, p.resumed.Round(100*time.Microsecond))
}

// pausing is a cluster whose first node owns the first runs of all threads.
type pausing struct {
	*testing.T
	agents  *agenttest.Server
	cluster *cluster
	lines   []*pausedLine
	lost    int           // runs that the others ended
	ended   time.Duration // until viewers had the terminals of all, since SIGSTOP
	resumed time.Duration // until the last request of a replaced run was closed, since SIGCONT
}

// pausedLine is a thread with a viewer on each node.
type pausedLine struct {
	thread, agent string
	request       map[string]any // of the first run
	viewers       []*witness     // by node; the first is on the one that is paused
	outcome       thread.Outcome
}

// begin starts the threads' first runs on the node that will be paused.
func (p *pausing) begin() {
	p.Helper()
	forEach(len(p.lines), 8, func(i int) {
		l := p.lines[i]
		for _, n := range p.cluster.nodes {
			w := newWitness(n, l.thread, thread.Cursor{})
			if err := w.join(); err != nil {
				p.Error(err)
			}
			l.viewers = append(l.viewers, w)
		}
	})
	for _, l := range p.lines {
		for _, w := range l.viewers {
			p.Cleanup(w.drop)
		}
	}
	forEach(len(p.lines), 8, func(i int) {
		l := p.lines[i]
		l.request["agentId"] = l.agent
		if err := p.cluster.nodes[0].tryRun(l.thread, l.request); err != nil {
			p.Error(err)
		}
	})
	if p.Failed() {
		p.FailNow()
	}
}

// pauseAndReplace stops the first node, waits until the others have ended its runs, starts the next run on each thread,
// and lets the first node go on.
func (p *pausing) pauseAndReplace() {
	p.Helper()
	for _, l := range p.lines[:4] {
		if err := l.viewers[0].until(func() bool { return l.viewers[0].events >= 3 }); err != nil {
			p.Fatal(err)
		}
	}
	owner := p.cluster.nodes[0]
	owner.pause()
	paused := time.Now()
	p.agents.Release("end") // its words and its terminal wait in the owner's socket
	var others []*witness
	for _, l := range p.lines {
		others = append(others, l.viewers[1:]...)
	}
	forEach(len(others), len(others), func(i int) {
		if err := others[i].untilOver(1); err != nil {
			p.Error(err)
		}
	})
	var longest time.Duration
	for _, w := range others {
		longest = max(longest, w.over[1].Sub(paused))
	}
	if longest > clusterLease+5*time.Second {
		p.Errorf("the last run of the paused node ended only after %s", longest)
	}
	forEach(len(p.lines), 4, func(i int) {
		if err := p.cluster.nodes[1+i%2].runWhenFree(p.lines[i].thread, load("r2", 1_000_000, 20, 120, true)); err != nil {
			p.Error(err)
		}
	})
	if took := time.Since(paused); took < clusterLease {
		p.Fatalf("the pause took only %s", took)
	}
	owner.resume()
	p.awaitHangUps("endless", "silent")
	p.ended = longest
}

// awaitHangUps waits until the requests of these agents are closed.
func (p *pausing) awaitHangUps(agents ...string) {
	p.Helper()
	went := time.Now()
	for len(agents) > 0 {
		h := await(p.T, p.agents.Closed(), 5*time.Second, "the agents' requests are closed")
		agents = slices.DeleteFunc(agents, func(name string) bool { return name == h.Agent })
	}
	p.resumed = time.Since(went)
}

// checkReplaced checks that the first runs stayed as the others ended them, for the viewers of the paused node, too, and that
// the second ones still run, each with a lease of its own.
func (p *pausing) checkReplaced() {
	p.Helper()
	for _, l := range p.lines {
		back := l.viewers[0] // its socket may have been closed: nobody answered pings
		if _, err := back.roam(1, func(int) *node { return p.cluster.nodes[0] }); err != nil {
			p.Fatal(err)
		}
		events := l.viewers[1].runs[1]
		for i, w := range l.viewers {
			if !slices.Equal(w.runs[1], events) {
				p.Errorf("of %s the viewer on node %d has %d events, and that on node 2 has %d, or others", l.thread, i+1, len(w.runs[1]), len(events))
			}
		}
		l.outcome = thread.OutcomeFinished
		if code(events[len(events)-1]) == "lost" {
			l.outcome = thread.OutcomeLost
			p.lost++
		}
		p.cluster.checkRun(l.thread, 1, events, l.outcome, p.cluster.nodes...)
		if l.agent != "demo" && l.outcome != thread.OutcomeLost {
			p.Errorf("run 1 of %s is %s", l.thread, l.outcome)
		}
		for i, n := range p.cluster.nodes {
			if st := n.thread(l.thread).Status; !st.Running || st.RunID != "r2" {
				p.Errorf("for node %d thread %s stands at %+v", i+1, l.thread, st)
			}
		}
	}
	if p.lost < 4 {
		p.Errorf("only %d runs were lost", p.lost)
	}
}

// runAgain stops the second runs by way of the node that was paused, whose later runs work.
func (p *pausing) runAgain() {
	p.Helper()
	owner := p.cluster.nodes[0]
	forEach(len(p.lines), 4, func(i int) {
		l := p.lines[i]
		var stopped struct{ Stopped bool }
		if err := owner.post(threadPath(l.thread)+"/stop", map[string]string{"runId": "r2"}, &stopped); err != nil || !stopped.Stopped {
			p.Errorf("stop of %s was answered %+v, %v", l.thread, stopped, err)
		}
		for _, w := range l.viewers {
			if err := w.untilOver(2); err != nil {
				p.Error(err)
				return
			}
		}
	})
	for _, l := range p.lines {
		p.cluster.checkRun(l.thread, 2, l.viewers[0].runs[2], thread.OutcomeStopped, owner)
	}
	req := load("r3", 50, 0, 120, false)
	req["agentId"] = "demo"
	if err := owner.tryRun("silent", req); err != nil {
		p.Fatal(err)
	}
	for _, l := range p.lines {
		if l.thread != "silent" {
			continue
		}
		for _, w := range l.viewers {
			if err := w.untilOver(3); err != nil {
				p.Fatal(err)
			}
		}
		p.cluster.checkRun(l.thread, 3, l.viewers[1].runs[3], thread.OutcomeFinished, p.cluster.nodes...)
	}
	owner.term()
	if code := owner.wait(patience); code != 0 {
		p.Errorf("the node that was paused ended with code %d", code)
	}
	if n := strings.Count(owner.stderr.String(), `msg="run given up`); n < p.lost {
		p.Errorf("the paused node says of %d runs that it gave them up; %d were taken from it", n, p.lost)
	}
}
