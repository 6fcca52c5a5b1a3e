package webtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrEnded is what [Viewer.Apply] returns for phx_close and phx_error: nothing follows in this membership.
var ErrEnded = errors.New("the server ended the membership")

// Run is what a viewer has of one run.
type Run struct {
	ID     string
	Number uint64
	From   uint64            // the seq after which the viewer has the run
	To     uint64            // the seq up to which it has the run
	Events []json.RawMessage // as they came
	Types  []string          // the type of each of them
}

// Terminal tells whether the last event of the run ends it.
func (r *Run) Terminal() bool {
	n := len(r.Types)
	return n > 0 && (r.Types[n-1] == "RUN_FINISHED" || r.Types[n-1] == "RUN_ERROR")
}

// Viewer is one reader of a thread: it keeps what it has seen over any number of sockets, and checks that
// it has everything once and in order. It belongs to one goroutine. The exported fields may be read between calls.
type Viewer struct {
	Thread   string
	Cursor   string // of the last thing seen; "0-0" at the beginning
	Runs     []*Run // in the order in which they came
	CaughtUp int    // how many caught_up came in the present membership
	Resets   int    // how many reset came in all
	Replaces bool   // runs may be replaced: then they are missing, or vanish wherever the viewer is
	Deleted  bool   // thread_deleted came
	Frames   int    // how many ag_ui_events came in all
	// Exact makes the viewer insist that every event stands for one seq, as in a run that is not compacted.
	Exact bool

	options map[string]any
	channel *Channel
	cause   string // the answer to join, for messages
	wiped   bool   // the server said that it begins from the start although a cursor was given: a reset must come
}

// NewViewer returns a viewer of a thread that has seen nothing. The options go into each join beside after, such as
// {"replay":"raw"}.
func NewViewer(thread string, options map[string]any) *Viewer {
	return &Viewer{Thread: thread, Cursor: "0-0", options: options}
}

// Channel returns the present membership, or nil before the first Join.
func (v *Viewer) Channel() *Channel { return v.channel }

// Join joins the thread on a socket, from where the viewer is.
func (v *Viewer) Join(ctx context.Context, c *Client) error {
	payload := maps.Clone(v.options)
	if payload == nil {
		payload = map[string]any{}
	}
	if v.Cursor != "0-0" {
		payload["after"] = v.Cursor
		delete(payload, "from")
	}
	ch, err := c.Join(ctx, "thread:"+v.Thread, payload)
	if err != nil {
		return err
	}
	return v.joined(ch)
}

// joined checks the answer to a join against the viewer's position.
func (v *Viewer) joined(ch *Channel) error {
	var reply struct {
		Cursor  string `json:"cursor"`
		Resumed bool   `json:"resumed"`
	}
	if err := json.Unmarshal(ch.joined, &reply); err != nil {
		return fmt.Errorf("the answer to join is %.200q: %w", ch.joined, err)
	}
	v.channel, v.cause, v.CaughtUp, v.wiped = ch, string(ch.joined), 0, false
	switch {
	case v.Cursor == "0-0":
		v.Cursor = reply.Cursor // not 0-0 with "from":"now"
	case !reply.Resumed:
		v.wiped = true
	case reply.Cursor != v.Cursor:
		return fmt.Errorf("asked for what follows %s, and the server goes on from %s", v.Cursor, reply.Cursor)
	}
	return nil
}

// Until applies pushes until done says so. It fails with what [Viewer.Apply] and [Channel.Next] fail with.
func (v *Viewer) Until(ctx context.Context, done func(*Viewer) bool) error {
	for !done(v) {
		p, err := v.channel.Next(ctx)
		if err != nil {
			return fmt.Errorf("viewer at %s: %w", v.Cursor, err)
		}
		if err := v.Apply(p); err != nil {
			return err
		}
	}
	return nil
}

// CaughtUp is a condition of [Viewer.Until]: what was there at the join has come.
func CaughtUp(v *Viewer) bool { return v.CaughtUp > 0 }

// Ended is a condition of [Viewer.Until]: the terminal event of the run has come.
func Ended(runID string) func(*Viewer) bool {
	return func(v *Viewer) bool {
		r := v.Run(runID)
		return r != nil && r.Terminal()
	}
}

// Seen is a condition of [Viewer.Until]: the viewer has at least n events.
func Seen(n int) func(*Viewer) bool {
	return func(v *Viewer) bool { return len(v.Events()) >= n }
}

// Run returns what the viewer has of a run, or nil.
func (v *Viewer) Run(id string) *Run {
	for _, r := range v.Runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Events returns the events of all runs, in order.
func (v *Viewer) Events() []json.RawMessage {
	var events []json.RawMessage
	for _, r := range v.Runs {
		events = append(events, r.Events...)
	}
	return events
}

// Apply takes a push. It fails if the push does not follow what came before.
func (v *Viewer) Apply(p Push) error {
	if v.wiped && p.Event != "reset" {
		return v.wrong(p, "the join did not resume, and something other than a reset came first")
	}
	switch p.Event {
	case "ag_ui_events":
		return v.events(p)
	case "reset":
		return v.reset(p)
	case "caught_up":
		var c struct{ Cursor string }
		if err := json.Unmarshal(p.Payload, &c); err != nil || c.Cursor != v.Cursor && !v.Replaces {
			return v.wrong(p, "it is not where the viewer is")
		}
		v.CaughtUp++
	case "thread_deleted":
		v.Deleted = true
	case "phx_close", "phx_error":
		return fmt.Errorf("%w with %s", ErrEnded, p.Event)
	}
	return nil
}

func (v *Viewer) wrong(p Push, why string) error {
	return fmt.Errorf("viewer of %s at %s, joined with %s, got %s %.300s: %s", v.Thread, v.Cursor, v.cause, p.Event, p.Payload, why)
}

func (v *Viewer) events(p Push) error {
	var e struct {
		RunID    string
		From, To string
		Events   []json.RawMessage
	}
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		return v.wrong(p, err.Error())
	}
	v.Frames++
	run, from, errFrom := parseCursor(e.From)
	last, to, errTo := parseCursor(e.To)
	if err := cmp.Or(errFrom, errTo); err != nil {
		return v.wrong(p, err.Error())
	}
	r, err := v.follow(e.RunID, e.From)
	switch steps := to - from; {
	case err != nil:
		return v.wrong(p, err.Error())
	case last != run || to < from || uint64(len(e.Events)) > steps && v.options["input"] == nil:
		return v.wrong(p, "its events do not fit between from and to")
	case v.Exact && uint64(len(e.Events)) < steps-min(steps, 1):
		return v.wrong(p, "it has fewer events than seqs")
	}
	for _, event := range e.Events {
		var head map[string]json.RawMessage // by exact names, which a struct would not match
		var kind string
		if err := cmp.Or(json.Unmarshal(event, &head), json.Unmarshal(head["type"], &kind)); err != nil {
			return v.wrong(p, err.Error())
		}
		if r.Terminal() {
			return v.wrong(p, "the run had its terminal event already")
		}
		r.Events, r.Types = append(r.Events, event), append(r.Types, kind)
	}
	if v.Exact && uint64(len(r.Events)) < to-r.From && !r.Terminal() {
		return v.wrong(p, "the run has fewer events than seqs")
	}
	r.To, v.Cursor = to, e.To
	return nil
}

// follow returns the run that goes on at from, and an error if from is not what follows the viewer's position.
func (v *Viewer) follow(id, from string) (*Run, error) {
	at, _, err := parseCursor(v.Cursor)
	if err != nil {
		return nil, err
	}
	number, seq, err := parseCursor(from)
	if err != nil {
		return nil, err
	}
	var last *Run
	if len(v.Runs) > 0 {
		last = v.Runs[len(v.Runs)-1]
	}
	switch {
	case from == v.Cursor && last != nil && last.Number == number:
		if last.ID != id {
			return nil, fmt.Errorf("run %d was %s and is %s now", number, last.ID, id)
		}
		return last, nil
	case from == v.Cursor:
	case number <= at || seq != 0:
		return nil, errors.New("it does not begin where the viewer is")
	case at != 0 && number != at+1 && !v.Replaces:
		return nil, errors.New("runs in between are missing")
	case last != nil && last.Number == at && !last.Terminal():
		return nil, errors.New("the run before it had no terminal event")
	}
	if v.Run(id) != nil {
		return nil, errors.New("that run id came before")
	}
	r := &Run{ID: id, Number: number, From: seq, To: seq}
	v.Runs = append(v.Runs, r)
	return r, nil
}

func (v *Viewer) reset(p Push) error {
	var e struct {
		RunID *string
		From  string
	}
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		return v.wrong(p, err.Error())
	}
	number, seq, err := parseCursor(e.From)
	if err != nil || seq != 0 && !v.Replaces {
		return v.wrong(p, "from is not the beginning of a run")
	}
	if at, _, _ := parseCursor(v.Cursor); e.RunID != nil && number != at && !v.Replaces {
		return v.wrong(p, "it is not the run in which the viewer is")
	}
	v.Runs = slices.DeleteFunc(v.Runs, func(r *Run) bool { return e.RunID == nil || r.ID == *e.RunID })
	v.Cursor, v.wiped = e.From, false
	v.Resets++
	return nil
}

// parseCursor reads "<run>-<seq>".
func parseCursor(s string) (run, seq uint64, err error) {
	a, b, ok := strings.Cut(s, "-")
	run, errRun := strconv.ParseUint(a, 10, 64)
	seq, errSeq := strconv.ParseUint(b, 10, 64)
	if !ok || errRun != nil || errSeq != nil {
		return 0, 0, fmt.Errorf("%q is not a cursor", s)
	}
	return run, seq, nil
}
