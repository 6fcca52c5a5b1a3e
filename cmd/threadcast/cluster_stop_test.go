package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestStopFromAnotherNode stops runs from another node than their own, 0 to 50 ms after they were asked for, or after they were
// accepted, and asks a third node for the next run at once. When stop says stopped, the terminal is the last of the run, for
// viewers, in Redis and in the database, and the agent's request is closed, if it was called at all. All
// of it takes less than a second (F060 to F062, F066).
func TestStopFromAnotherNode(t *testing.T) {
	const threads = 4
	times := sized(250, 10)
	s := &stopping{T: t, agents: agenttest.NewServer(t), hungUp: map[string]time.Time{}}
	s.agents.Handle("endless", append(emits(begins, opens), agenttest.Repeat(1_000_000, talksOn, time.Millisecond)))
	s.cluster = startClusterOn(t, steady, 3, "--agent", "endless=agui:"+s.agents.URL("endless"), "--log-level", "warn")
	done := make(chan struct{})
	var watching, all sync.WaitGroup
	watching.Go(func() { s.noteHangUps(done) })
	chains := make([]*chain, threads)
	for i := range chains {
		chains[i] = &chain{stopping: s, thread: fmt.Sprintf("stop-%d", i), rng: rand.New(rand.NewPCG(17, uint64(i)))}
		all.Go(func() { chains[i].run(i, times) })
	}
	all.Wait()
	if !t.Failed() {
		s.checkCalls()
	}
	close(done)
	watching.Wait()
	if t.Failed() {
		return
	}
	for _, c := range chains {
		c.check()
	}
	s.cluster.checkSettled(threads * times)
	if longest := percentile(s.stops, 1); longest > time.Second {
		t.Errorf("a stop took %s", longest)
	}
	if longest := percentile(s.closed, 1); longest > time.Second {
		t.Errorf("an agent's request was closed only %s after the stop was sent", longest)
	}
	ms := func(times []time.Duration, fraction float64) time.Duration {
		return percentile(times, fraction).Round(100 * time.Microsecond)
	}
	measured(t, "%d stops, %d of them before the run was accepted and then again, %d of an agent that was not called; stopped after p50 %s p99 %s longest %s, agent's request closed after p50 %s p99 %s longest %s, next run on a third node, asked for at once, accepted after p50 %s p99 %s; never busy",
		threads*times, s.early, threads*times-len(s.closed), ms(s.stops, 0.5), ms(s.stops, 0.99), ms(s.stops, 1),
		ms(s.closed, 0.5), ms(s.closed, 0.99), ms(s.closed, 1), ms(s.accepts, 0.5), ms(s.accepts, 0.99))
}

// stopping is a cluster whose runs are stopped.
type stopping struct {
	*testing.T
	agents  *agenttest.Server
	cluster *cluster

	mu                     sync.Mutex
	hungUp                 map[string]time.Time // when the agent's request for a run was closed, by thread and run
	sent                   []sentStop
	stops, accepts, closed []time.Duration
	early                  int // stops that came before the run was accepted
}

// sentStop is when a stop was sent, and for what.
type sentStop struct {
	run string // thread and run
	at  time.Time
}

// noteHangUps notes when the agent's requests are closed.
func (s *stopping) noteHangUps(done <-chan struct{}) {
	for {
		select {
		case h := <-s.agents.Closed():
			s.mu.Lock()
			s.hungUp[h.ThreadID+" "+h.RunID] = time.Now()
			s.mu.Unlock()
		case <-done:
			return
		}
	}
}

// checkCalls waits until the request of each agent that was called is closed, and notes how long that took.
func (s *stopping) checkCalls() {
	called := map[string]bool{}
	for _, input := range s.agents.Inputs() {
		var ids struct{ ThreadID, RunID string }
		if err := json.Unmarshal(input, &ids); err != nil {
			s.Error(err)
		}
		if run := ids.ThreadID + " " + ids.RunID; called[run] {
			s.Errorf("the agent was called twice for %s", run)
		} else {
			called[run] = true
		}
	}
	for _, stop := range s.sent {
		if !called[stop.run] {
			continue
		}
		var at time.Time
		eventually(s.T, 10*time.Second, "the agent's request for "+stop.run+" is closed", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			at = s.hungUp[stop.run]
			return !at.IsZero()
		})
		s.closed = append(s.closed, at.Sub(stop.at))
	}
}

// chain is one thread, whose runs are stopped one after the other, and its viewer.
type chain struct {
	*stopping
	thread string
	rng    *rand.Rand
	viewer *witness
	ends   map[uint64]thread.Cursor // as stop answered
}

// run stops so many runs: each is asked for on one node, stopped from the next one, and followed by one on the third.
func (c *chain) run(first, times int) {
	c.ends = map[uint64]thread.Cursor{}
	c.viewer = newWitness(c.cluster.nodes[first%3], c.thread, thread.Cursor{})
	if err := c.viewer.join(); err != nil {
		c.Error(err)
		return
	}
	defer c.viewer.drop()
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := c.viewer.untilOver(uint64(times)); err != nil {
			c.Error(err)
		}
	})
	for i := range times {
		number := uint64(i) + 1
		owner, other := c.cluster.nodes[(first+2*i)%3], c.cluster.nodes[(first+2*i+1)%3]
		if err := c.stop(number, owner, other); err != nil {
			c.Errorf("thread %s, run %d: %v", c.thread, number, err)
			break
		}
	}
	if c.Failed() {
		c.viewer.drop()
	}
	watching.Wait()
}

// stop starts a run and stops it a moment later.
func (c *chain) stop(number uint64, owner, other *node) error {
	asked := time.Now()
	accepted := make(chan error, 1)
	go func() { accepted <- owner.tryRun(c.thread, load(runID(number), 0, 0, 0, false)) }()
	wait := time.Duration(c.rng.IntN(50_000)) * time.Microsecond
	answered := c.rng.IntN(2) == 0
	if answered { // the moment counts from the answer
		if err := <-accepted; err != nil {
			return err
		}
		c.noteAccepted(time.Since(asked))
	}
	<-time.After(wait) // the test is about this moment
	if !answered {
		select {
		case err := <-accepted:
			if err != nil {
				return err
			}
			answered = true
		default:
		}
	}
	stopped, end, err := c.askStop(number, other)
	if err != nil {
		return err
	}
	if !stopped && answered {
		return fmt.Errorf("%s after it was accepted or asked for, it is not there to be stopped", wait)
	}
	if !answered {
		if err := <-accepted; err != nil {
			return err
		}
	}
	if !stopped { // it came first
		c.mu.Lock()
		c.early++
		c.mu.Unlock()
		if stopped, end, err = c.askStop(number, other); err == nil && !stopped {
			err = errors.New("once it was accepted, it is not there to be stopped")
		}
		if err != nil {
			return err
		}
	}
	c.ends[number] = end
	return nil
}

func (c *chain) noteAccepted(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepts = append(c.accepts, took)
}

// askStop asks a node to stop the run, by its id or whatever runs, and tells whether this run was stopped. What runs may be
// the run before, which was stopped, too, and whose lease is being given up.
func (c *chain) askStop(number uint64, n *node) (stopped bool, end thread.Cursor, err error) {
	req := map[string]string{"runId": runID(number)}
	if number%2 == 0 {
		req = map[string]string{}
	}
	asked := time.Now()
	var reply struct {
		Stopped bool
		RunID   string
		Cursor  string
	}
	if err := n.post(threadPath(c.thread)+"/stop", req, &reply); err != nil || !reply.Stopped {
		return false, end, err
	}
	if req["runId"] == "" && reply.RunID == runID(number-1) {
		return false, end, nil
	}
	if reply.RunID != runID(number) {
		return false, end, fmt.Errorf("run %s was stopped", reply.RunID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops = append(c.stops, time.Since(asked))
	c.sent = append(c.sent, sentStop{c.thread + " " + runID(number), asked})
	end, err = thread.ParseCursor(reply.Cursor)
	return true, end, err
}

// check compares what the viewer saw of each run with what is in Redis and in the database, and with where stop said that it
// ended.
func (c *chain) check() {
	c.Helper()
	for number, end := range c.ends {
		events := c.viewer.runs[number]
		if want := (thread.Cursor{Run: number, Seq: uint64(len(events)) + 1}); end != want {
			c.Errorf("run %d of %s: stop says that it ended at %s; the viewer saw its last event before %s", number, c.thread, end, want)
		}
		if last := events[len(events)-1]; !strings.Contains(last, `"cancelled"`) {
			c.Errorf("run %d of %s ends with %s", number, c.thread, last)
		}
		c.cluster.checkRun(c.thread, number, events, thread.OutcomeStopped)
	}
}
