//go:build integration

package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/threadcast/threadcast/runner/agui"
)

// minCaptures is how many captures the cases make at least, in the short form and with the race detector.
const minCaptures = 1000

// differences are the captures on which threadcast and the reference client may differ, by the beginnings of their names, and
// why. One that no longer differs must go.
var differences = map[string]string{}

// TestReplayCases plays the cases and has the reference client, @ag-ui/client 1.0.0 from npm, judge all that could be seen of
// them: it must accept every stream, and come to the messages and the state that the API answers with.
func TestReplayCases(t *testing.T) {
	c := newCaptures(t)
	t.Run("cases", func(t *testing.T) { playReplayCases(t, func(s *stage) { s.capture(c) }) })
	if t.Failed() {
		return
	}
	t.Run("the reference client agrees", func(t *testing.T) {
		c.judge(t, differences)
		if c.n < minCaptures {
			t.Errorf("there were %d captures, fewer than %d", c.n, minCaptures)
		}
		for played, n := range c.perCase {
			if n < 2 {
				t.Errorf("case %s made %d captures", played, n)
			}
		}
	})
}

var applyFiles = []string{"apply/replay-safe.json", "apply/reference-divergence.json"}

// applyVector is a stream of events and what it amounts to, for who begins with nothing or with what is initial.
type applyVector struct {
	Name                          string
	InitialMessages, InitialState json.RawMessage
	Events                        []json.RawMessage
	Messages, State               json.RawMessage
}

// The vectors are the reference's own; here our reducer's results for them are judged once more, live and compacted.
func TestReferenceClientAgreesOnVectors(t *testing.T) {
	t.Parallel()
	c := newCaptures(t)
	for _, file := range applyFiles {
		for _, v := range readVectors[applyVector](t, file) {
			initial := &initial{v.InitialMessages, v.InitialState}
			if v.InitialMessages == nil && v.InitialState == nil {
				initial = nil
			}
			for form, events := range map[string][]json.RawMessage{"live": v.Events, "compacted": compacted(v.Events)} {
				made := reduction(t, events, initial)
				made.Name, made.Initial = v.Name+" "+form, initial
				c.write(t, file, made)
			}
		}
	}
	c.judge(t, nil)
	if c.n < 190 {
		t.Errorf("there were %d captures", c.n)
	}
}

// A judge that finds no fault in anything would be of no use.
func TestReferenceClientFindsFaults(t *testing.T) {
	t.Parallel()
	events := []json.RawMessage{
		[]byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`), []byte(`{"type":"TEXT_MESSAGE_START","messageId":"m"}`),
		[]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","unknown":1}`),
		[]byte(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`),
		[]byte(`{"type":"STATE_SNAPSHOT","snapshot":{"a":[1]}}`),
		[]byte(`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`),
	}
	c := newCaptures(t)
	faults := map[string]func(*capture){
		"none":            func(*capture) {},
		"another text":    func(c *capture) { c.Messages = bytes.Replace(c.Messages, []byte(`"a"`), []byte(`"b"`), 1) },
		"another message": func(c *capture) { c.Messages = []byte(`[]`) },
		"another state":   func(c *capture) { c.State = []byte(`{"a":[1,null]}`) },
		"no interrupt":    func(c *capture) { c.Pending = []byte(`[]`) },
		"no start":        func(c *capture) { c.Events = slices.Delete(slices.Clone(c.Events), 1, 2) },
		"no content":      func(c *capture) { c.Events = slices.Delete(slices.Clone(c.Events), 2, 3) },
		"a malformed event": func(c *capture) {
			c.Events = append(slices.Clone(c.Events[:1]), json.RawMessage(`{"type":"STATE_DELTA","delta":5}`))
		},
	}
	found := map[string]string{}
	for name, spoil := range faults {
		made := reduction(t, events, nil)
		made.Name = name
		spoil(&made)
		c.write(t, "faults", made)
		found[name] = "a fault that was made"
	}
	delete(found, "none")
	c.judge(t, found)
}

// capture is a stream of events as somebody saw it, with what threadcast says that it amounts to.
type capture struct {
	Name     string            `json:"name"`
	Initial  *initial          `json:"initial,omitempty"`
	Events   []json.RawMessage `json:"events"`
	Messages json.RawMessage   `json:"messages"`
	State    json.RawMessage   `json:"state"`
	Pending  json.RawMessage   `json:"pending"`
}

// sum tells captures apart by all but their names.
func (c capture) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	parts := [][]byte{c.Messages, c.State, c.Pending}
	if c.Initial != nil {
		parts = append(parts, c.Initial.Messages, c.Initial.State)
	}
	for _, event := range c.Events {
		parts = append(parts, event)
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// initial is what a client has before the first event.
type initial struct {
	Messages json.RawMessage `json:"messages,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
}

// captures are files for the reference client to read. Those that are the same but for their names are one file.
type captures struct {
	dir string

	mu      sync.Mutex
	n       int
	perCase map[string]int
	files   map[[sha256.Size]byte]bool
}

func newCaptures(t *testing.T) *captures {
	return &captures{dir: t.TempDir(), perCase: map[string]int{}, files: map[[sha256.Size]byte]bool{}}
}

// expect notes a case that has to make captures.
func (c *captures) expect(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.perCase[id] += 0
}

func (c *captures) write(t testing.TB, id string, made capture) {
	t.Helper()
	sum, name := made.sum(), ""
	c.mu.Lock()
	c.n++
	c.perCase[id]++
	if !c.files[sum] {
		c.files[sum] = true
		name = fmt.Sprintf("%06d.json", c.n)
	}
	c.mu.Unlock()
	if name == "" {
		return
	}
	file := filepath.Join(c.dir, name)
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatalf("%s: %v", made.Name, err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// judge has the reference client read all captures. It may differ on those whose names begin as the keys of allowed do, and on
// no others.
func (c *captures) judge(t *testing.T, allowed map[string]string) {
	t.Helper()
	sc := runScript(t, "reference-client.mjs", c.dir)
	last := sc.await("judged")
	if last.N != len(c.files) {
		t.Errorf("of %d captures %d were judged", len(c.files), last.N)
	}
	missing := maps.Clone(allowed)
	for _, f := range sc.past {
		if f.Fact != "differs" {
			continue
		}
		known := false
		for name := range allowed {
			if strings.HasPrefix(f.Name, name) {
				known = true
				delete(missing, name)
			}
		}
		if !known {
			t.Errorf("%s: %s", f.Name, f.Why)
		}
	}
	for name := range missing {
		t.Errorf("%s no longer differs", name)
	}
	t.Logf("measured: %s: the reference client judged %d captures, %d of them different, with %d events", t.Name(), c.n, last.N, last.Events)
}

// reduction is what our reducer makes of events.
func reduction(t testing.TB, events []json.RawMessage, from *initial) capture {
	t.Helper()
	if from == nil {
		from = &initial{}
	}
	r, err := agui.NewReducer(from.Messages, from.State)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range events {
		if err := r.Apply(data); err != nil {
			t.Fatalf("reduce: %v\n%.200s", err, data)
		}
	}
	made := capture{Events: events, Messages: r.Messages(), State: r.State(), Pending: r.Pending()}
	if made.Pending == nil {
		made.Pending = []byte("[]")
	}
	return made
}

func compacted(events []json.RawMessage) []json.RawMessage {
	list := make([]agui.Event, len(events))
	for i, data := range events {
		list[i] = agui.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: data}
	}
	var out []json.RawMessage
	for _, e := range agui.Compact(list) {
		out = append(out, e.Data)
	}
	return out
}

// capture writes down all that was seen of the stage's threads: by every viewer live, and by whoever reads them now, compacted
// and as they were emitted. A node that is gone is started again for that.
func (s *stage) capture(c *captures) {
	s.Helper()
	s.revive()
	id := s.id + " " + s.place.name
	c.expect(id)
	threads := map[string]*captured{}
	for _, thread := range s.threads() {
		now := s.answers(thread)
		threads[thread] = now
		for _, form := range []string{"compact", "raw"} {
			made := now.made
			made.Name = fmt.Sprintf("%s %s replayed %s", id, thread, form)
			batches := s.next().record(thread, "", form)
			if made.Events = allEvents(batches); form == "raw" {
				now.raw = batches
			}
			c.write(s, id, made)
		}
	}
	for i, v := range s.viewers {
		if count(v.Viewer) == 0 {
			continue // it came for something else
		}
		events := v.Events()
		before, whole := before(s, v, threads[v.Thread])
		if !whole {
			s.Fatalf("what viewer %d of %s saw begins at %s-%d, and nobody knows what was before", i, v.Thread, v.Runs[0].ID, v.Runs[0].From)
		}
		events = append(before, events...)
		var made capture
		if now := threads[v.Thread]; now != nil && now.cursor == v.Cursor {
			made = now.made
			made.Events = events
		} else {
			made = reduction(s, events, nil)
		}
		made.Name = fmt.Sprintf("%s %s live %d", id, v.Thread, i)
		c.write(s, id, made)
	}
}

// threads are the ids of all threads that the node knows.
func (s *stage) threads() []string {
	s.Helper()
	var ids []string
	for before := ""; ; {
		var page struct {
			Threads []struct{ ID string }
			Next    string
		}
		if code := s.next().do(http.MethodGet, "/api/threads?limit=200&before="+url.QueryEscape(before), nil, &page); code != http.StatusOK {
			s.Fatalf("the API answers %d", code)
		}
		for _, t := range page.Threads {
			ids = append(ids, t.ID)
		}
		if before = page.Next; before == "" {
			return ids
		}
	}
}

// captured is what the API answers about a thread.
type captured struct {
	made   capture
	cursor string
	raw    []batch
}

func (s *stage) answers(thread string) *captured {
	s.Helper()
	var messages struct {
		Messages, Pending json.RawMessage
		Cursor            string
		Running           bool
		Truncated         bool
	}
	var state struct {
		State  json.RawMessage
		Cursor string
	}
	codes := []int{
		s.next().do(http.MethodGet, threadPath(thread)+"/messages", nil, &messages),
		s.next().do(http.MethodGet, threadPath(thread)+"/state", nil, &state),
	}
	if !slices.Equal(codes, []int{200, 200}) || messages.Running || messages.Truncated || state.Cursor != messages.Cursor {
		s.Fatalf("thread %s: the API answers %v, running %t, truncated %t, at %s and %s",
			thread, codes, messages.Running, messages.Truncated, messages.Cursor, state.Cursor)
	}
	made := capture{Messages: messages.Messages, State: state.State, Pending: messages.Pending}
	return &captured{made: made, cursor: messages.Cursor}
}

// before returns what a viewer who began in the middle of a thread had from elsewhere: the runs before its first one, and
// the events before its first one. It reports false if those are no longer to be had one by one.
func before(s *stage, v *viewer, now *captured) ([]json.RawMessage, bool) {
	s.Helper()
	first := v.Runs[0]
	if first.From == 0 && first.Number == 1 {
		return nil, true
	}
	if now == nil {
		return nil, false
	}
	var events []json.RawMessage
	for _, b := range now.raw {
		run, from, to := span(s, b)
		switch {
		case run > first.Number || run == first.Number && from >= first.From:
			return events, true
		case run < first.Number || to <= first.From:
			events = append(events, b.Events...)
		case uint64(len(b.Events)) < to-from-1: // it is compacted
			return nil, false
		default:
			return append(events, b.Events[:first.From-from]...), true
		}
	}
	return events, true
}

func span(s *stage, b batch) (run, from, to uint64) {
	s.Helper()
	for text, seq := range map[string]*uint64{b.From: &from, b.To: &to} {
		if _, err := fmt.Sscanf(text, "%d-%d", &run, seq); err != nil {
			s.Fatalf("the cursor is %q", text)
		}
	}
	return run, from, to
}
