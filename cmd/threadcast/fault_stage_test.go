// The files fault_*_test.go hold what nodes go through while Redis or Postgres fails: real binaries on real servers, runs
// that go on meanwhile, and viewers of each run on its own node and on another. Where a network has to fail, a
// [redistest.Link] stands in for it: like a network, and unlike toxiproxy, it lets what was sent during a black hole
// arrive in the end.

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// pace is the time between two events of a steady agent.
const pace = 20 * time.Millisecond

// ordeal is nodes, agents and viewers that something is done to.
type ordeal struct {
	*testing.T
	*cluster
	agents   *agenttest.Server
	watchers []*watcher
	runs     []string // the thread of each run
}

// newOrdeal returns one without nodes. Its agent "steady" speaks until the gate "over THREAD" is released.
func newOrdeal(t *testing.T, flags ...string) *ordeal {
	t.Helper()
	return withStores(t, redistest.Config{}, "", flags...)
}

// withStores is newOrdeal with a Redis of its own kind, and a database; pgtest's if that is empty.
func withStores(t *testing.T, redis redistest.Config, database string, flags ...string) *ordeal {
	t.Helper()
	redistest.Need(t)
	if database == "" {
		database = pgtest.Database(t)
	}
	o := &ordeal{T: t, agents: agenttest.NewServer(t)}
	o.agents.Record = true
	o.agents.Handle("steady", []agenttest.Step{
		agenttest.Emit(begins), agenttest.Emit(opens),
		agenttest.RepeatUntil("over {thread}", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"#{i};"}`, pace),
		agenttest.Emit(closes), agenttest.Emit(ends),
	})
	o.agents.Handle("brief", emits(begins, ends))
	flags = append([]string{
		"--agent", "steady=agui:" + o.agents.URL("steady"), "--agent", "brief=agui:" + o.agents.URL("brief"), "--log-level", "warn",
	}, flags...)
	o.cluster = &cluster{t: t, redis: redistest.Run(t, redis), database: database, flags: flags}
	return o
}

// run starts the run r1 of a thread on a node, with a viewer on each of the others given, and one on that node.
func (o *ordeal) run(thread string, on *node, others ...*node) []*watcher {
	o.Helper()
	all := []*watcher{o.watch(thread, on)}
	for _, n := range others {
		all = append(all, o.watch(thread, n))
	}
	o.start(thread, on)
	for _, w := range all {
		w.await("the run has begun", func() bool { return len(w.events) > 5 })
	}
	return all
}

// start starts the run r1 of a thread, as soon as it is accepted, and returns how long that takes.
func (o *ordeal) start(thread string, on *node) time.Duration {
	o.Helper()
	return o.request(thread, on, runRequest{RunID: "r1", Messages: json.RawMessage("[]")})
}

// next starts another run of a thread, of an agent that says nothing, waits for its end, and returns how long it took until
// it was accepted.
func (o *ordeal) next(thread, run string, on *node) time.Duration {
	o.Helper()
	took := o.request(thread, on, runRequest{RunID: run, AgentID: "brief", Messages: json.RawMessage("[]")})
	on.ended(thread, run)
	return took
}

func (o *ordeal) request(thread string, on *node, req runRequest) time.Duration {
	o.Helper()
	o.runs = append(o.runs, thread)
	began := time.Now()
	eventually(o, patience, "a run on "+thread+" is accepted", func() bool {
		status, data, err := on.request(http.MethodPost, threadPath(thread)+"/runs", req)
		if err != nil || status != http.StatusAccepted && status != http.StatusServiceUnavailable {
			o.Fatalf("a run on %s was answered %d %s %v", thread, status, data, err)
		}
		return status == http.StatusAccepted
	})
	return time.Since(began)
}

// finish lets the runs of these threads end, and waits until their viewers have the end.
func (o *ordeal) finish(threads ...string) {
	o.Helper()
	for _, id := range threads {
		o.agents.Release("over " + id)
	}
	for _, w := range o.watchers {
		if slices.Contains(threads, w.thread) {
			w.ended()
		}
	}
}

// watcher is a viewer of a thread with one run. Whenever its membership or its socket ends it comes back to where it was,
// as clients do.
type watcher struct {
	follower
	t    *ordeal
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	events  [][]byte    // of the run, as they are after the latest reset
	times   []time.Time // when batches came
	over    bool        // the terminal event has come
	away    int         // how often its membership ended
	cut     int         // how often its socket ended
	refused int         // how often it was not let in
	failed  error
	socket  *webtest.Client // the present one
}

// watch returns a viewer of a thread that has joined on a node.
func (o *ordeal) watch(id string, on *node) *watcher {
	o.Helper()
	w := &watcher{t: o, quit: make(chan struct{})}
	w.follower = follower{n: on, thread: id, replay: "raw", mayReset: true, take: w.see}
	w.begin()
	return w
}

// begin joins, as soon as it is let in, and follows until the test ends.
func (w *watcher) begin() {
	w.t.Helper()
	eventually(w.t, patience, "a viewer joins "+w.thread, func() bool {
		err := w.join()
		if err != nil && webtest.Code(err) != "unavailable" {
			w.t.Fatal(err)
		}
		return err == nil
	})
	w.socket = w.client
	w.t.watchers = append(w.t.watchers, w)
	w.done.Go(w.follow)
	w.t.Cleanup(func() {
		close(w.quit)
		w.mu.Lock()
		w.socket.Drop()
		w.mu.Unlock()
		w.done.Wait()
	})
}

// sentAway counts the memberships that nodes have ended.
func (o *ordeal) sentAway() (n int) {
	for _, w := range o.watchers {
		w.mu.Lock()
		n += w.away
		w.mu.Unlock()
	}
	return n
}

// allResets counts the resets that came.
func (o *ordeal) allResets() (n int) {
	for _, w := range o.watchers {
		w.mu.Lock()
		n += w.resets
		w.mu.Unlock()
	}
	return n
}

// follow reads until the run has ended and the viewer is no longer wanted.
func (w *watcher) follow() {
	defer w.drop()
	for {
		err := error(nil)
		if w.channel == nil {
			err = w.join()
		}
		if err == nil {
			w.mu.Lock()
			w.socket = w.client
			w.mu.Unlock()
			err = w.until(w.leaves)
		}
		w.channel = nil
		if err == nil || !w.goesOn(err) {
			return
		}
		select {
		case <-w.quit:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// goesOn tells whether the viewer comes back after an error.
func (w *watcher) goesOn(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errSentAway):
		w.away++
	case errors.Is(err, errNothingMore):
		w.cut++
		w.drop()
	case webtest.Code(err) == "unavailable":
		w.refused++
	default:
		w.failed = err
		return false
	}
	return true
}

// leaves tells whether the viewer has all that it waits for, or is no longer wanted.
func (w *watcher) leaves() bool {
	select {
	case <-w.quit:
		return true
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func (w *watcher) see(from, _ thread.Cursor, b batch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from.Run != 1 || b.RunID != "r1" {
		return fmt.Errorf("it is of run %d, %s", from.Run, b.RunID)
	}
	if from.Seq == 0 {
		w.events, w.over = nil, false
	}
	w.times = append(w.times, time.Now())
	for _, e := range b.Events {
		if w.over {
			return fmt.Errorf("after the terminal came %.100s", e)
		}
		w.events = append(w.events, e)
		w.over = isTerminal(e)
	}
	return nil
}

// await waits until the viewer has come to something.
func (w *watcher) await(what string, ok func() bool) {
	w.t.Helper()
	eventually(w.t, patience, fmt.Sprintf("%s, for the viewer of %s on %s", what, w.thread, w.n.addr), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failed != nil {
			w.t.Fatalf("viewer of %s on %s: %v", w.thread, w.n.addr, w.failed)
		}
		return ok()
	})
}

// ended waits for the end of the run.
func (w *watcher) ended() {
	w.t.Helper()
	w.await("the run ends", func() bool { return w.over })
}

// after waits for an event that comes after a moment, and returns how long that took.
func (w *watcher) after(moment time.Time) (took time.Duration) {
	w.t.Helper()
	w.await("events go on", func() bool {
		i := slices.IndexFunc(w.times, moment.Before)
		if i >= 0 {
			took = w.times[i].Sub(moment)
		}
		return i >= 0
	})
	return took
}

// returns is another viewer that goes on at a position that the viewer had.
func (w *watcher) returns(at thread.Cursor) *watcher {
	w.t.Helper()
	w.mu.Lock()
	had := slices.Clone(w.events[:at.Seq])
	w.mu.Unlock()
	back := &watcher{t: w.t, quit: make(chan struct{}), events: had}
	back.follower = follower{n: w.n, thread: w.thread, replay: "raw", mayReset: true, take: back.see, pos: at}
	back.begin()
	return back
}

// silence returns the longest time between two batches, of those that began after a moment.
func (w *watcher) silence(since time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, at := range w.times {
		if i > 0 && w.times[i-1].After(since) {
			longest = max(longest, at.Sub(w.times[i-1]))
		}
	}
	return longest
}

// check compares what the viewer has with the agent's record of a run that has ended as the agent wished: byte for byte,
// or, if it was told to begin anew, word for word.
func (w *watcher) check() {
	w.t.Helper()
	w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	want := w.t.agents.Emitted(w.thread, "r1")
	err := sameWords(want, w.events)
	if err == nil && w.resets == 0 {
		err = sameBytes(want, w.events)
	}
	if err != nil {
		w.t.Errorf("viewer of %s on %s, after %d resets, %d ends of its membership and %d of its socket: %v",
			w.thread, w.n.addr, w.resets, w.away, w.cut, err)
	}
}

// sameBytes compares events with those that an agent emitted. Its RUN_STARTED gets the input of the run.
func sameBytes(want, got [][]byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("there are %d events, not %d", len(got), len(want))
	}
	for i, e := range got {
		if i == 0 && bytes.HasPrefix(e, want[0][:len(want[0])-1]) {
			continue
		}
		if !bytes.Equal(want[i], e) {
			return fmt.Errorf("event %d is %.100s, not %.100s", i+1, e, want[i])
		}
	}
	return nil
}

// sameWords compares events that may be compacted with those that an agent emitted.
func sameWords(want, got [][]byte) error {
	if len(got) == 0 || !bytes.HasPrefix(got[0], want[0][:len(want[0])-1]) {
		return fmt.Errorf("%d events do not begin with the agent's first", len(got))
	}
	parsed := make([]emitted, len(want)-1)
	for i, e := range want[1:] {
		parsed[i] = parseEmitted(e)
	}
	return compareWords(parsed, want[1:], got[1:])
}

// compare compares a stored run with what its agent emitted, if that is how it ended, or else with what its viewers saw.
func (o *ordeal) compare(run thread.Run, state thread.Outcome) error {
	if run.End.Outcome != state {
		return fmt.Errorf("it is %s (%s), not %s", run.End.Outcome, run.End.Code, state)
	}
	var got [][]byte
	for _, e := range run.Events {
		got = append(got, e.Data)
	}
	if state == thread.OutcomeFinished {
		return sameWords(o.agents.Emitted(string(run.Thread), "r1"), got)
	}
	for _, w := range o.watchers {
		if w.thread != string(run.Thread) {
			continue
		}
		w.ended()
		w.mu.Lock()
		err := sameWords(w.events, got)
		w.mu.Unlock()
		if err != nil {
			return fmt.Errorf("compared with what was seen on %s: %w", w.n.addr, err)
		}
	}
	return nil
}

// cutOff checks that what the viewer has of its run is the beginning of what the agent emitted, followed by what closes the
// message and the run, with this code.
func (w *watcher) cutOff(code string) {
	w.t.Helper()
	w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	said, n := w.t.agents.Emitted(w.thread, "r1"), len(w.events)-2
	if n < 2 || n > len(said) {
		w.t.Fatalf("the viewer of %s on %s has %d events of %d", w.thread, w.n.addr, len(w.events), len(said))
	}
	if err := sameBytes(said[:n], w.events[:n]); err != nil {
		w.t.Errorf("viewer of %s on %s: %v", w.thread, w.n.addr, err)
	}
	closer, last := parse(w.t, w.events[n]), parse(w.t, w.events[n+1])
	if closer.Type != "TEXT_MESSAGE_END" || last.Type != "RUN_ERROR" || last.Code != code {
		w.t.Errorf("the run of %s ends with %s and %s %q, not with %q", w.thread, closer.Type, last.Type, last.Code, code)
	}
}

// stored waits until the runs r1 of these threads are in the history, and compares them: see compare. No run may be
// unfinished there, and no agent may have been called more than once for one.
func (o *ordeal) stored(state thread.Outcome, threads ...string) {
	o.Helper()
	past := o.history()
	for _, id := range threads {
		var run thread.Run
		eventually(o, patience, "the run of "+id+" is in the history", func() bool {
			var err error
			run, err = past.NextRun(o.Context(), thread.ID(id), 0)
			return err == nil
		})
		if err := o.compare(run, state); err != nil {
			o.Errorf("the stored run of %s: %v", id, err)
		}
		want := 0
		for _, of := range o.runs {
			if of == id {
				want++
			}
		}
		if runs, err := past.Runs(o.Context(), thread.ID(id), 0, 10); err != nil || len(runs) != want {
			o.Errorf("%s has %d runs, not %d, %v", id, len(runs), want, err)
		}
	}
	if left, err := past.Unfinished(o.Context(), "", 0, 10); err != nil || len(left) > 0 {
		o.Errorf("%d runs are not finished, %v", len(left), err)
	}
	if n := o.agents.Invocations(); n != len(o.runs) {
		o.Errorf("agents were called %d times for %d runs", n, len(o.runs))
	}
}

// history opens the database beside the nodes.
func (o *ordeal) history() *history.History {
	o.Helper()
	pool, err := postgres.Open(o.Context(), o.database, postgres.Options{})
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = pool.Close() })
	past, err := history.NewPostgres(o.Context(), pool, history.Options{})
	if err != nil {
		o.Fatal(err)
	}
	return past
}

// readiness asks nodes all the time whether they are ready.
type readiness struct {
	mu    sync.Mutex
	red   map[*node]time.Time // the first time that one was not ready
	green map[*node]time.Time // since when it is ready
}

// never tells whether a node has always been ready.
func (r *readiness) never(n *node) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.red[n].IsZero()
}

// askReady asks until the test ends.
func (o *ordeal) askReady() *readiness {
	r := &readiness{red: map[*node]time.Time{}, green: map[*node]time.Time{}}
	quit := make(chan struct{})
	var all sync.WaitGroup
	for _, n := range o.nodes {
		all.Go(func() {
			again := time.NewTicker(100 * time.Millisecond)
			defer again.Stop()
			for {
				select {
				case <-quit:
					return
				case <-again.C:
				}
				code, _, err := n.request(http.MethodGet, "/readyz", nil)
				r.note(n, err == nil && code == http.StatusOK)
			}
		})
	}
	o.Cleanup(func() { close(quit); all.Wait() })
	return r
}

func (r *readiness) note(n *node, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ready:
		if r.red[n].IsZero() {
			r.red[n] = time.Now()
		}
		delete(r.green, n)
	case r.green[n].IsZero():
		r.green[n] = time.Now()
	}
}

// awaitRed waits until none of the nodes is ready.
func (r *readiness) awaitRed(nodes ...*node) {
	for _, n := range nodes {
		eventually(n.t, patience, "readiness of "+n.addr+" is red", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return !r.red[n].IsZero()
		})
	}
}

// turned waits until a node has been red since a moment, and is green; it returns how long after the moments that was.
func (r *readiness) turned(n *node, down, up time.Time) (red, green time.Duration) {
	n.t.Helper()
	eventually(n.t, patience, "readiness of "+n.addr+" is red and then green", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		red, green = r.red[n].Sub(down), r.green[n].Sub(up)
		return !r.red[n].IsZero() && !r.green[n].IsZero()
	})
	return red, green
}

// verdict is what the API said to a call, and how long it took.
type verdict struct {
	status int
	code   string
	took   time.Duration
}

func (a verdict) String() string {
	return fmt.Sprintf("%d %s in %s", a.status, a.code, a.took.Round(time.Millisecond))
}

// entryPoints calls everything that there is of a thread on a node, all at once: over HTTP, and a join on a new socket.
func (o *ordeal) entryPoints(n *node, id string) map[string]verdict {
	answers := map[string]verdict{}
	var mu sync.Mutex
	var all sync.WaitGroup
	ask := func(name string, call func() (int, string)) {
		all.Go(func() {
			began := time.Now()
			status, code := call()
			mu.Lock()
			defer mu.Unlock()
			answers[name] = verdict{status, code, time.Since(began)}
		})
	}
	for name, r := range map[string]struct {
		method, path string
		body         any
	}{
		"run":    {http.MethodPost, threadPath(id+" new") + "/runs", load("r1", 1, 0, 0, false)},
		"status": {http.MethodGet, threadPath(id), nil},
		"stop":   {http.MethodPost, threadPath(id) + "/stop", nil},
		"events": {http.MethodGet, threadPath(id) + "/events", nil},
		"list":   {http.MethodGet, "/api/threads", nil},
		"delete": {http.MethodDelete, threadPath(id), nil},
	} {
		ask(name, func() (int, string) {
			status, data, err := n.request(r.method, r.path, r.body)
			if err != nil {
				return 0, err.Error()
			}
			var p problem
			_ = json.Unmarshal(data, &p) // what is no problem has no code
			return status, p.Code
		})
	}
	ask("join", func() (int, string) {
		f := &follower{n: n, thread: id, replay: "raw"}
		defer f.drop()
		err := f.join()
		if err == nil {
			return http.StatusOK, ""
		}
		return http.StatusServiceUnavailable, webtest.Code(err)
	})
	all.Wait()
	return answers
}
