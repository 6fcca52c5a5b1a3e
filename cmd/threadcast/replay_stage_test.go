package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/webtest"
)

// stage is where a replay case is played: one node or several, and the agent of the case behind HTTP.
type stage struct {
	*testing.T
	ctx    context.Context
	id     string // of the case
	agent  *agenttest.Server
	events string // the case's agentEvents
	script agenttest.Case

	place  deployment
	shared *cluster // what several nodes share, or one has in Redis; nil if all is in the node's file
	prefix string   // of the keys in Redis
	node   *node    // the first
	others []*node
	turns  atomic.Int64

	mu      sync.Mutex
	viewers []*viewer // all there were
}

// newStage sets the stage. The nodes' agent "scripted" plays the case's agentEvents as they are written; another, "second",
// plays what a case may give it.
func newStage(t *testing.T, id string) *stage {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var file struct {
		ID          string          `json:"id"`
		AgentEvents json.RawMessage `json:"agentEvents"`
	}
	if err := json.Unmarshal(readCase(t, id), &file); err != nil || file.ID != id {
		t.Fatalf("%s: it is the case %q: %v", id, file.ID, err)
	}
	s := &stage{T: t, ctx: ctx, id: id, events: string(file.AgentEvents), agent: agenttest.NewServer(t)}
	s.perform(s.events)
	return s
}

// open starts the nodes of the stage.
func (s *stage) open(d deployment, redis *redistest.Server, flags []string) {
	s.Helper()
	agents := []string{"--agent", "scripted=agui:" + s.agent.URL("scripted"), "--agent", "second=agui:" + s.agent.URL("second")}
	s.place = d
	d.open(s, redis, append(agents, flags...))
}

// large tells whether the case is played in its full size: with the tag integration, on one node that has nothing beside it.
// Elsewhere it is the same in the short form.
func (s *stage) large() bool { return full && s.shared == nil }

// perform makes the agent play other agentEvents from now on.
func (s *stage) perform(events string) {
	s.Helper()
	script, err := agenttest.ParseCase(json.RawMessage(events))
	if err != nil {
		s.Fatal(err)
	}
	s.script = script
	s.agent.Handle("scripted", script.Runs...)
}

// anyIDs makes the agent play the case for whatever thread and run it is asked to, instead of for t1 and r1.
func (s *stage) anyIDs() {
	thread := regexp.MustCompile(`(\\?"threadId\\?":\s*\\?")t\d`).ReplaceAllString(s.events, "${1}{thread}")
	s.perform(regexp.MustCompile(`(\\?"runId\\?":\s*\\?")r\d`).ReplaceAllString(thread, "${1}{run}"))
}

// must ends the test if there is an error. It belongs to the test's goroutine.
func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run starts a run over the API.
func (s *stage) run(thread, run string) accepted {
	s.Helper()
	return s.next().startRun(thread, runRequest{RunID: run})
}

// raw are the options of a viewer who takes events as they were emitted; others take what is past compacted.
var raw = map[string]any{"replay": "raw"}

// viewer is a [webtest.Viewer] with a socket of its own. What it does may be done in any goroutine.
type viewer struct {
	*webtest.Viewer
	s      *stage
	client *webtest.Client
}

// viewer returns a viewer that has not joined.
func (s *stage) viewer(thread string, options map[string]any) *viewer {
	v := &viewer{Viewer: webtest.NewViewer(thread, options), s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers = append(s.viewers, v)
	return v
}

// watch returns a viewer that has joined.
func (s *stage) watch(thread string, options map[string]any) *viewer {
	s.Helper()
	return s.watchAt(s.next(), thread, options)
}

// watchAt is watch on a node of one's choice.
func (s *stage) watchAt(n *node, thread string, options map[string]any) *viewer {
	s.Helper()
	v := s.viewer(thread, options)
	s.must(v.joinAt(n, nil))
	return v
}

// join opens a socket to the node whose turn it is, and joins from where the viewer is.
func (v *viewer) join() error { return v.joinAt(v.s.next(), nil) }

// joinAt joins as join does, on a node of one's choice.
func (v *viewer) joinAt(n *node, opts *webtest.Options) error {
	client, err := webtest.Dial(v.s.ctx, n.url, opts)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	v.s.Cleanup(client.Drop)
	v.client = client
	return v.Join(v.s.ctx, client)
}

// drop cuts the viewer's socket.
func (v *viewer) drop() { v.client.Drop() }

// until applies what comes until done.
func (v *viewer) until(done func(*webtest.Viewer) bool) error { return v.Until(v.s.ctx, done) }

// count returns how many events the viewer has.
func count(v *webtest.Viewer) int {
	n := 0
	for _, r := range v.Runs {
		n += len(r.Events)
	}
	return n
}

// has is a condition of until: the viewer has n events.
func has(n int) func(*webtest.Viewer) bool {
	return func(v *webtest.Viewer) bool { return count(v) >= n }
}

// deleted is a condition of until: the viewer was told that the thread is deleted.
func deleted(v *webtest.Viewer) bool { return v.Deleted }

// push sends a request on the viewer's membership and decodes the answer.
func (v *viewer) push(event string, payload, answer any) error {
	data, err := v.Channel().Push(v.s.ctx, event, payload)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

// refused pushes what must be refused, and returns how it was.
func (v *viewer) refused(event string, payload any) *webtest.Refused {
	v.s.Helper()
	var refused *webtest.Refused
	if err := v.push(event, payload, nil); !errors.As(err, &refused) {
		v.s.Fatalf("%s was not refused: %v", event, err)
	}
	return refused
}

// status asks how the thread stands, on the socket.
func (v *viewer) status() status {
	v.s.Helper()
	var st status
	v.s.must(v.push("status", nil, &st))
	return st
}

// event is what the tests read of an event.
type event struct {
	Type       string          `json:"type"`
	ThreadID   string          `json:"threadId"`
	RunID      string          `json:"runId"`
	MessageID  string          `json:"messageId"`
	ToolCallID string          `json:"toolCallId"`
	Delta      json.RawMessage `json:"delta"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Outcome    struct {
		Type string `json:"type"`
	} `json:"outcome"`
}

func parse(t testing.TB, data json.RawMessage) event {
	t.Helper()
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatalf("an event is not JSON: %v\n%.200s", err, data)
	}
	return e
}

// text joins the text of a message of these events. The deltas are joined as they are written, so that a pair of
// surrogates may be split between two of them.
func text(t testing.TB, events []json.RawMessage, message string) string {
	t.Helper()
	joined := joinedDelta(t, events, message)
	var s string
	if err := json.Unmarshal(joined, &s); err != nil {
		t.Fatalf("the deltas of %s are no text: %v\n%.200s", message, err, joined)
	}
	return s
}

func joinedDelta(t testing.TB, events []json.RawMessage, message string) []byte {
	t.Helper()
	joined := []byte{'"'}
	for _, data := range events {
		if e := parse(t, data); e.Type == "TEXT_MESSAGE_CONTENT" && e.MessageID == message {
			joined = append(joined, e.Delta[1:len(e.Delta)-1]...)
		}
	}
	return append(joined, '"')
}

// types are the types of the events, in order.
func types(t testing.TB, events []json.RawMessage) []string {
	t.Helper()
	names := make([]string, 0, len(events))
	for _, data := range events {
		names = append(names, parse(t, data).Type)
	}
	return names
}

// events returns the events of a run among the batches of a record.
func eventsOf(batches []batch, run string) []json.RawMessage {
	var events []json.RawMessage
	for _, b := range batches {
		if b.RunID == run {
			events = append(events, b.Events...)
		}
	}
	return events
}

// allEvents returns the events of all runs.
func allEvents(batches []batch) []json.RawMessage {
	var events []json.RawMessage
	for _, b := range batches {
		events = append(events, b.Events...)
	}
	return events
}

// verify checks that the events are a legal stream of runs (AG-UI 1.0, section 11), and that each run has one terminal.
func verify(t testing.TB, what string, events []json.RawMessage) {
	t.Helper()
	var v agui.Verifier
	terminals, started := 0, 0
	for i, data := range events {
		if err := v.Verify(data); err != nil {
			t.Errorf("%s: event %d is not legal: %v\n%.200s", what, i, err, data)
		}
		switch e := parse(t, data); e.Type {
		case "RUN_STARTED":
			started++
		case "RUN_FINISHED", "RUN_ERROR":
			terminals++
		}
	}
	if terminals != started || started == 0 {
		t.Errorf("%s: %d runs started, and there are %d terminals", what, started, terminals)
	}
}

// message is what the tests read of a message.
type message struct {
	ID         string `json:"id"`
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"toolCallId"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`
}

// reduce returns the messages and the state that the events amount to (AG-UI 1.0, section 13).
func reduce(t testing.TB, events []json.RawMessage) ([]message, []byte) {
	t.Helper()
	r := new(agui.Reducer)
	for _, data := range events {
		if err := r.Apply(data); err != nil {
			t.Fatalf("reduce: %v\n%.200s", err, data)
		}
	}
	var messages []message
	if err := json.Unmarshal(r.Messages(), &messages); err != nil {
		t.Fatal(err)
	}
	return messages, r.State()
}

// ids are the ids of the messages, in order.
func ids(messages []message) []string {
	names := make([]string, 0, len(messages))
	for _, m := range messages {
		names = append(names, m.ID)
	}
	return names
}

// same compares lists of events byte for byte.
func same(t testing.TB, what string, got, want []json.RawMessage) {
	t.Helper()
	equal := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	if slices.EqualFunc(got, want, equal) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !equal(got[i], want[i]) {
			t.Errorf("%s: there are %d events instead of %d; number %d is\n%.300s\ninstead of\n%.300s",
				what, len(got), len(want), i, at(got, i), at(want, i))
			return
		}
	}
}

func at(events []json.RawMessage, i int) json.RawMessage {
	if i < len(events) {
		return events[i]
	}
	return json.RawMessage("nothing")
}

// views plays the run r1 on t1 and returns all that can be seen of it: live, from the stream, and from SQL.
func (s *stage) views() (live, stream, sql []json.RawMessage) {
	s.Helper()
	v := s.watch("t1", raw)
	s.run("t1", "r1")
	s.must(v.until(webtest.Ended("r1")))
	s.next().ended("t1", "r1")
	return v.Run("r1").Events, allEvents(s.next().record("t1", "", "raw")), allEvents(s.next().record("t1", "", "compact"))
}

// progress lets goroutines wait until a run has come to a certain event.
type progress struct {
	mu      sync.Mutex
	reached int
	waiting map[int]chan struct{}
}

// after returns a channel that is closed when n events have been seen.
func (p *progress) after(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[int]chan struct{}{}
	}
	if p.waiting[n] == nil {
		p.waiting[n] = make(chan struct{})
		if n <= p.reached {
			close(p.waiting[n])
		}
	}
	return p.waiting[n]
}

// see notes that n events have been seen.
func (p *progress) see(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.reached < n; p.reached++ {
		if ch := p.waiting[p.reached+1]; ch != nil {
			close(ch)
		}
	}
}

// watchedBy makes a viewer's condition report how far it has come.
func (p *progress) watchedBy(done func(*webtest.Viewer) bool) func(*webtest.Viewer) bool {
	return func(v *webtest.Viewer) bool {
		p.see(count(v))
		return done(v)
	}
}
