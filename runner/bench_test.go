package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/runner/agui"
)

// The lease and grace of every bench.
const (
	lease = 15 * time.Second
	grace = time.Second
)

// bench is a log, a history and the nodes that share them.
type bench struct {
	*testing.T
	memory *memlog.Log
	log    *logtest.FaultyLog // in front of memory
	past   *archive
	said   *record
	nodes  []*runner.Runner
}

// bubble runs a test in a bubble, where time is fake and passes only while everybody waits.
func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.tidy()
		test(b)
	})
}

func newBench(t *testing.T) *bench {
	memory := memlog.New()
	return &bench{T: t, memory: memory, log: logtest.Faulty(memory), past: newArchive(), said: &record{}}
}

// tidy ends what a test left running: a bubble must be empty in the end, also after a failure.
func (b *bench) tidy() {
	b.log.Up()
	b.past.fail(nil)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range b.nodes {
		later, cancel := context.WithTimeout(context.Background(), time.Hour)
		if _, err := r.Drain(now, later); err != nil {
			b.Errorf("at the end of the test: %v", err)
		}
		cancel()
	}
	if err := b.memory.Close(); err != nil {
		b.Error(err)
	}
}

// record keeps what is logged.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(line)
}

func (r *record) contains(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.buf.String(), text)
}

// agents is what a node runs, by name.
type agents = map[string]runner.Agent

// config is what every node of a bench gets.
func (b *bench) config() runner.Config {
	return runner.Config{
		Lease: lease, StopGrace: grace, Retention: 24 * time.Hour, Logger: slog.New(slog.NewTextHandler(b.said, nil)),
	}
}

// node returns a runner whose default agent is a.
func (b *bench) node(a runner.Agent) *runner.Runner { return b.nodeWith(a, b.config()) }

func (b *bench) nodeWith(a runner.Agent, cfg runner.Config) *runner.Runner {
	return b.nodeOn(b.log, a, cfg)
}

// nodeOn returns a runner that sees the log through another one.
func (b *bench) nodeOn(log live, a runner.Agent, cfg runner.Config) *runner.Runner {
	stores := runner.Stores{Log: log, Heads: log, Leaser: log, Owners: log, History: b.past, Records: b.past, Backlog: b.past, Line: b.past, Story: b.past}
	r := runner.New(stores, agents{"a": a, "other": a}, "a", cfg)
	b.nodes = append(b.nodes, r)
	return r
}

// live is all that a live log does for a runner.
type live interface {
	runner.Log
	runner.Heads
	runner.Leaser
	runner.Owners
}

// request asks for a run with one user message, which is named after the run.
func request(id thread.ID, run thread.RunID) thread.Request {
	return requestWith(id, run, fmt.Sprintf(`"messages":[{"id":"u-%s","role":"user","content":"hi"}]`, run))
}

// requestWith asks for a run with these members in its input.
func requestWith(id thread.ID, run thread.RunID, members string) thread.Request {
	return thread.Request{Thread: id, RunID: run, Input: func(given thread.RunID) ([]byte, error) {
		return fmt.Appendf(nil, `{"threadId":%q,"runId":%q,%s}`, id, given, members), nil
	}}
}

// begin starts a run, which must be accepted.
func (b *bench) begin(r *runner.Runner, id thread.ID, run thread.RunID) thread.Accepted {
	b.Helper()
	acc, err := r.Run(b.Context(), request(id, run))
	if err != nil {
		b.Fatalf("run %s: %v", run, err)
	}
	return acc
}

// ask starts a run, which must be accepted, without waiting for that.
func (b *bench) ask(r *runner.Runner, id thread.ID, run thread.RunID) <-chan thread.Accepted {
	answered := make(chan thread.Accepted, 1)
	go func() {
		acc, err := r.Run(b.Context(), request(id, run))
		if err != nil {
			b.Errorf("run %s: %v", run, err)
		}
		answered <- acc
	}()
	return answered
}

// perform starts a run and lets it end.
func (b *bench) perform(r *runner.Runner, id thread.ID, run thread.RunID) capture {
	b.Helper()
	b.begin(r, id, run)
	synctest.Wait()
	return b.last(id)
}

// stop stops whatever runs on a thread, which must be this run.
func (b *bench) stop(r *runner.Runner, id thread.ID, run thread.RunID) thread.Stopped {
	b.Helper()
	st, err := r.Stop(b.Context(), id, "", "operator")
	if err != nil || !st.Stopped || st.RunID != run {
		b.Fatalf("stop of %s: %+v, %v", run, st, err)
	}
	return st
}

// pass lets fake time pass, and then everything happen that it brings. One goroutine at a time may call it.
func (b *bench) pass(d time.Duration) {
	b.rest(d)
	synctest.Wait()
}

// rest lets fake time pass for its caller.
func (b *bench) rest(d time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// capture is a run as the log has it.
type capture struct {
	number uint64
	id     thread.RunID
	events []string
	end    *thread.End
}

func (c capture) types() string {
	var types []string
	for _, event := range c.events {
		var header struct{ Type string }
		if err := json.Unmarshal([]byte(event), &header); err != nil {
			return err.Error()
		}
		types = append(types, header.Type)
	}
	return strings.Join(types, " ")
}

// outcome is how the run ended, and with what code.
func (c capture) outcome() string {
	if c.end == nil {
		return "no end"
	}
	return strings.TrimSpace(string(c.end.Outcome) + " " + c.end.Code)
}

// entries returns all that the log has of a thread.
func (b *bench) entries(id thread.ID) []thread.Entry {
	entries, err := b.memory.Read(b.Context(), id, thread.Cursor{}, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	return entries
}

// captures returns the runs of a thread as the log has them, after checking that they are numbered without holes.
func (b *bench) captures(id thread.ID) []capture {
	b.Helper()
	var runs []capture
	for _, e := range b.entries(id) {
		if e.Seq == 1 {
			runs = append(runs, capture{number: e.Run, id: e.RunID})
		}
		c := &runs[len(runs)-1]
		if e.Run != c.number || e.RunID != c.id || c.end != nil || e.Seq != uint64(len(c.events)+1) {
			b.Fatalf("entry %s of run %s follows run %d with %d events and end %v", e.Cursor(), e.RunID, c.number, len(c.events), c.end)
		}
		if e.Kind == thread.KindEvent {
			c.events = append(c.events, string(e.Data))
			continue
		}
		c.end = &thread.End{}
		if err := json.Unmarshal(e.Data, c.end); err != nil {
			b.Fatal(err)
		}
	}
	return runs
}

// check tells what is wrong with a run that has ended: with its events by the rules of AG-UI, with its one terminal
// event, with its end, or with what the history has of it. It is empty if nothing is.
func (b *bench) check(id thread.ID, c capture) string {
	tracker := agui.NewTracker(string(id), string(c.id))
	events := make([]thread.Event, 0, len(c.events))
	for i, event := range c.events {
		step, err := tracker.Observe([]byte(event))
		if err != nil {
			return fmt.Sprintf("event %d of run %s: %v", i+1, c.id, err)
		}
		if step.Terminal != (i == len(c.events)-1) {
			return fmt.Sprintf("event %d of run %s, of %d: terminal is %v", i+1, c.id, len(c.events), step.Terminal)
		}
		events = append(events, thread.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: []byte(event)})
	}
	run, there := b.past.run(id, c.id)
	switch {
	case c.end == nil:
		return fmt.Sprintf("run %s has no end", c.id)
	case !there:
		return fmt.Sprintf("run %s is not in the history", c.id)
	case run.Ended.IsZero():
		return fmt.Sprintf("run %s is not saved", c.id)
	case run.Number != c.number || run.LastSeq != uint64(len(c.events)+1) || run.End != *c.end:
		return fmt.Sprintf("run %s is saved as number %d to %d with end %+v; the log has number %d to %d with end %+v",
			c.id, run.Number, run.LastSeq, run.End, c.number, len(c.events)+1, *c.end)
	}
	return difference(runner.Compact(events), run.Events)
}

// ended returns the runs of a thread after checking that all of them ended properly and are saved.
func (b *bench) ended(id thread.ID) []capture {
	b.Helper()
	runs := b.captures(id)
	for _, c := range runs {
		if wrong := b.check(id, c); wrong != "" {
			b.Fatal(wrong)
		}
	}
	return runs
}

// last returns the last run of a thread, all of whose runs must have ended properly.
func (b *bench) last(id thread.ID) capture {
	b.Helper()
	runs := b.ended(id)
	if len(runs) == 0 {
		b.Fatalf("thread %s has no runs", id)
	}
	return runs[len(runs)-1]
}

// same compares what is got with what is wanted.
func same[V any](b *bench, what string, want, got V) {
	b.Helper()
	if diff := difference(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// difference is empty if there is none, which takes less time to find out than what it is.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// Events that scripts are made of.
const (
	started  = `{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`
	finished = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`
	open     = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	word     = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{i} "}`
	shut     = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
	custom   = `{"type":"CUSTOM","name":"n","value":"{i}"}`
)

// script makes steps of events.
func script(events ...string) []agenttest.Step {
	steps := make([]agenttest.Step, 0, len(events))
	for _, event := range events {
		steps = append(steps, agenttest.Emit(event))
	}
	return steps
}

// answer is the script of an agent that says n words.
func answer(n int) []agenttest.Step {
	return append(append(script(started, open), agenttest.Repeat(n, word, 0)), script(shut, finished)...)
}

// held is a script that emits some events, marks "here", and waits for the gate "go" before it goes on.
func held(before, after []string) []agenttest.Step {
	return append(append(script(before...), agenttest.Mark("here"), agenttest.WaitFor("go")), script(after...)...)
}
