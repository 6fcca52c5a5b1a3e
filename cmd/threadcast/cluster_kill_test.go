package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestKilledNodesRunsEndOnTheOthers kills nodes that run agents, again and again, at any phase of their runs: from before
// these are accepted until after they are saved. The viewers are on two other nodes. A run that was accepted ends within the
// lease and five seconds, with one terminal, and with everything that anybody saw of it, byte for byte; its agent is called
// once, although its client asks another node for the same run again; and its thread takes the next run on another node (F071,
// F077).
func TestKilledNodesRunsEndOnTheOthers(t *testing.T) {
	t.Parallel()
	s := &killings{t: t, agents: agenttest.NewServer(t), phases: map[string]int{}, heard: map[string]bool{}}
	const threads = 3 // of each victim
	victims, kills := sized(5, 2), sized(10, 2)
	flags := []string{"--lease", clusterLease.String(), "--log-level", "error", "--agent", "demo=demo"}
	for i := range victims {
		name := fmt.Sprintf("told-%d", i)
		flags = append(flags, "--agent", name+"=agui:"+s.agents.URL(name))
	}
	s.cluster = startClusterOn(t, steady, 2+victims, flags...)
	var all sync.WaitGroup
	for i := range victims {
		all.Go(func() {
			v := s.newVictim(i, threads)
			for k := range kills {
				if !v.die(k) {
					return
				}
			}
			for _, l := range v.lines {
				l.leave()
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	s.cluster.checkSettled(2 * victims * kills * threads)
	s.checkCalls()
	limit := clusterLease + 5*time.Second
	if longest := percentile(s.retaken, 1); longest > limit {
		t.Errorf("a thread took the next run only %s after its node was killed", longest)
	}
	if longest := percentile(s.ended, 1); longest > limit {
		t.Errorf("a viewer had the terminal only %s after the kill", longest)
	}
	ms := func(times []time.Duration, fraction float64) time.Duration {
		return percentile(times, fraction).Round(time.Millisecond)
	}
	measured(t, "%d kills, %d runs each, killed %v; terminal at the viewers after p50 %s p99 %s longest %s, next run on another node after p50 %s p99 %s longest %s (lease %s); %d events, none lost or repeated; no agent called twice",
		victims*kills, threads, s.phases, ms(s.ended, 0.5), ms(s.ended, 0.99), ms(s.ended, 1),
		ms(s.retaken, 0.5), ms(s.retaken, 0.99), ms(s.retaken, 1), clusterLease, s.events)
}

// killings is a cluster whose first two nodes live, while the others are killed and started again.
type killings struct {
	t       *testing.T
	cluster *cluster
	agents  *agenttest.Server

	mu             sync.Mutex
	phases         map[string]int
	ended, retaken []time.Duration // since the kill
	events         int
	heard          map[string]bool // runs of an AG-UI agent of which there are events
}

// victim is a node that is killed, with the threads whose runs it drives.
type victim struct {
	*killings
	node  *node
	rng   *rand.Rand
	lines []*lifeline
}

// lifeline is a thread with two viewers that stay, on the nodes that live, and what is known of its present run.
type lifeline struct {
	thread string
	agent  string // the AG-UI agent of its runs; empty for the built-in one
	stay   []*witness
	number uint64

	record  *recording
	insider *witness // a viewer on the victim
	asked   error    // how the victim answered the request for the run
}

func (s *killings) newVictim(i, threads int) *victim {
	v := &victim{killings: s, node: s.cluster.nodes[2+i], rng: rand.New(rand.NewPCG(3, uint64(i)))}
	for j := range threads {
		l := &lifeline{thread: fmt.Sprintf("kill-%d-%d", i, j)}
		if j == 0 {
			l.agent = fmt.Sprintf("told-%d", i)
		}
		for _, n := range s.cluster.nodes[:2] {
			w := newWitness(n, l.thread, thread.Cursor{})
			if err := w.join(); err != nil {
				s.t.Error(err)
			}
			l.stay = append(l.stay, w)
		}
		v.lines = append(v.lines, l)
	}
	return v
}

// offset is how long after the request for its runs the process is killed: often so early that they are being accepted,
// at times so late that they are over.
func (v *victim) offset() time.Duration {
	if v.rng.IntN(4) == 0 {
		return time.Duration(v.rng.IntN(40)) * time.Millisecond
	}
	return time.Duration(v.rng.IntN(1_600)) * time.Millisecond
}

// die is one kill, and what comes of it. It tells whether all is well.
func (v *victim) die(kill int) bool {
	var asked sync.WaitGroup
	for _, l := range v.lines {
		l.number++
		l.insider = newWitness(v.node, l.thread, thread.Cursor{Run: l.number - 1})
		if l.number > 1 {
			l.insider.pos = l.stay[0].pos
		}
		if err := l.insider.join(); err != nil {
			v.t.Errorf("kill %d: %v", kill, err)
			return false
		}
		if l.agent != "" {
			l.record = newRecording(l.thread, runID(l.number), 600, v.rng)
			v.agents.Handle(l.agent, paced(l.record, time.Second))
		}
		asked.Go(func() { l.asked = v.node.tryRun(l.thread, l.request()) })
	}
	<-time.After(v.offset()) // any moment will do
	v.node.kill()
	killed := time.Now()
	asked.Wait()
	var up sync.WaitGroup
	up.Go(func() { v.node = v.node.restart() })
	for i, l := range v.lines {
		up.Go(func() {
			if err := v.outlive(l, killed, v.cluster.nodes[(kill+i)%2]); err != nil {
				v.t.Errorf("kill %d, thread %s: %v", kill, l.thread, err)
			}
		})
	}
	up.Wait()
	return !v.t.Failed()
}

// paced plays a recording in about d, with a silence in the middle.
func paced(r *recording, d time.Duration) (steps []agenttest.Step) {
	const pieces = 50
	size := len(r.events)/pieces + 1
	for piece := range slices.Chunk(r.events, size) {
		var text strings.Builder
		for _, e := range piece {
			fmt.Fprintf(&text, "data: %s\n\n", e)
		}
		steps = append(steps, agenttest.SSE(text.String(), agenttest.OnePiece), agenttest.Sleep(3*d/4/pieces))
		if len(steps) == pieces {
			steps = append(steps, agenttest.Sleep(d/4))
		}
	}
	return steps
}

func (l *lifeline) request() map[string]any {
	req := load(runID(l.number), 400, 400, 120, false)
	if l.agent != "" {
		req = load(runID(l.number), 0, 0, 0, false)
		req["agentId"] = l.agent
	} else {
		req["agentId"] = "demo"
	}
	return req
}

// outlive waits on another node for the end of the run, and starts the next one there.
func (v *victim) outlive(l *lifeline, killed time.Time, other *node) error {
	defer l.insider.drop()
	if err := l.insider.until(func() bool { return false }); !isOver(err) {
		return fmt.Errorf("a viewer on the node that was killed: %w", err)
	}
	// As a client does that got no answer: if the run was accepted, this starts nothing.
	if err := other.tryRun(l.thread, l.request()); err != nil {
		return fmt.Errorf("asked again: %w", err)
	}
	for _, w := range l.stay {
		if err := w.untilOver(l.number); err != nil {
			return err
		}
	}
	run := l.number
	l.number++
	// Its node may have written the terminal and no more. Then its lease has to pass first.
	if err := other.runWhenFree(l.thread, load(runID(l.number), 20, 0, 120, false)); err != nil {
		return fmt.Errorf("the next run: %w", err)
	}
	took := time.Since(killed)
	for _, w := range l.stay {
		if err := w.untilOver(l.number); err != nil {
			return fmt.Errorf("the next run: %w", err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.retaken = append(v.retaken, took)
	if code(l.stay[0].runs[run][len(l.stay[0].runs[run])-1]) == "lost" {
		for _, w := range l.stay {
			v.ended = append(v.ended, w.over[run].Sub(killed))
		}
	}
	return v.judge(l, run)
}

// judge checks what everybody has of the run that was cut off, and of the next one. v.mu is held.
func (v *victim) judge(l *lifeline, run uint64) error {
	events := l.stay[0].runs[run]
	if !slices.Equal(events, l.stay[1].runs[run]) {
		return fmt.Errorf("of run %d one viewer saw %d events and another %d, or others", run, len(events), len(l.stay[1].runs[run]))
	}
	seen := l.insider.runs[run]
	if len(seen) > len(events) || !slices.Equal(seen, events[:len(seen)]) {
		return fmt.Errorf("the viewer on the node that was killed saw %d events, which are not the first of the %d that are left", len(seen), len(events))
	}
	outcome := thread.OutcomeFinished
	if code(events[len(events)-1]) == "lost" {
		outcome = thread.OutcomeLost
	}
	told, err := l.told(events, outcome)
	if err != nil {
		return err
	}
	v.cluster.checkRun(l.thread, run, events, outcome, v.cluster.nodes[:2]...)
	v.cluster.checkRun(l.thread, run+1, l.stay[0].runs[run+1], thread.OutcomeFinished, v.cluster.nodes[:2]...)
	v.events += len(events)
	switch {
	case l.asked != nil && outcome == thread.OutcomeFinished:
		v.phases["unanswered, and done by another node"]++
	case l.asked != nil:
		v.phases["unanswered, and recorded"]++
	case outcome == thread.OutcomeFinished:
		v.phases["when done"]++
	case told == 0:
		v.phases["before the agent spoke"]++
	default:
		v.phases["in the middle"]++
	}
	if told > 0 && l.agent != "" {
		v.heard[l.thread+" "+runID(run)] = true
	}
	return nil
}

// told returns how many events of the run are the agent's. They must be the first that it has, and what follows them no more
// than what ends a run.
func (l *lifeline) told(events []string, outcome thread.Outcome) (int, error) {
	own := func(i int) bool { return isLoad(events[i], i) }
	if l.record != nil {
		own = func(i int) bool {
			return i < len(l.record.events) && (i == 0 || events[i] == string(l.record.events[i]))
		}
	}
	n := 0
	for n < len(events) && own(n) {
		n++
	}
	if outcome == thread.OutcomeFinished && l.record != nil && n != len(l.record.events) {
		return n, fmt.Errorf("it finished with %d of the agent's %d events", n, len(l.record.events))
	}
	for _, e := range events[n:] {
		var head struct{ Type string }
		if err := json.Unmarshal([]byte(e), &head); err != nil {
			return n, err
		}
		if !strings.HasSuffix(head.Type, "_END") && !isTerminal([]byte(e)) {
			return n, fmt.Errorf("after %d events of the agent comes %.120s", n, e)
		}
	}
	if l.record != nil && n > 0 {
		return n - 1, l.record.checkStarted([]byte(events[0]))
	}
	return max(0, n-2), nil
}

// isLoad tells whether an event is number i of a run of the built-in agent.
func isLoad(event string, i int) bool {
	switch i {
	case 0:
		return strings.HasPrefix(event, `{"type":"RUN_STARTED"`)
	case 1:
		return strings.HasPrefix(event, `{"type":"TEXT_MESSAGE_START"`)
	}
	return strings.Contains(event, fmt.Sprintf(`"delta":"#%d@`, i-2))
}

func (l *lifeline) leave() {
	for _, w := range l.stay {
		w.drop()
	}
}

// checkCalls checks that no agent was called twice for one run, and each that was heard of.
func (s *killings) checkCalls() {
	calls := map[string]int{}
	for _, input := range s.agents.Inputs() {
		var ids struct{ ThreadID, RunID string }
		if err := json.Unmarshal(input, &ids); err != nil {
			s.t.Error(err)
		}
		calls[ids.ThreadID+" "+ids.RunID]++
	}
	for run, n := range calls {
		if n > 1 {
			s.t.Errorf("the agent was called %d times for run %s", n, run)
		}
	}
	for run := range maps.Keys(s.heard) {
		if calls[run] == 0 {
			s.t.Errorf("the agent of run %s was heard of, and not called", run)
		}
	}
}
