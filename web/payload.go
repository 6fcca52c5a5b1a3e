package web

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

func badInput(message string) error { return fmt.Errorf("%w: %s", thread.ErrBadInput, message) }

// fields is a JSON object by its exact keys.
type fields map[string]json.RawMessage

func parseFields(payload []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(payload, &f); err != nil || f == nil || !utf8.Valid(payload) {
		return nil, badInput("the payload is not a JSON object")
	}
	return f, nil
}

// text returns a field that must be a string if it is there; null counts as absent.
func (f fields) text(name string) (string, bool, error) {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return "", false, nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false, badInput(name + " is not a string")
	}
	return s, true, nil
}

// after reads the field of that name as a cursor.
func (f fields) after() (thread.Cursor, bool, error) {
	raw, ok := f["after"]
	if !ok || string(raw) == "null" {
		return thread.Cursor{}, false, nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return thread.Cursor{}, false, fmt.Errorf("%w: after is not a string", thread.ErrBadCursor)
	}
	c, err := thread.ParseCursor(s)
	return c, err == nil, err
}

// joining is what a join asks for.
type joining struct {
	hub.Options
	inputAsEvents bool // the messages of RUN_STARTED.input come as events
}

// parseJoin reads the payload of a join.
func parseJoin(payload []byte) (joining, error) {
	var opts joining
	f, err := parseFields(payload)
	if err != nil {
		return opts, err
	}
	after, resumes, err := f.after()
	if err != nil {
		return opts, err
	}
	opts.After = after
	replay, _, err := f.text("replay")
	if err != nil {
		return opts, err
	}
	if opts.Replay, err = parseReplay(replay); err != nil {
		return opts, err
	}
	from, given, err := f.text("from")
	switch {
	case err != nil:
		return opts, err
	case given && from != "now":
		return opts, badInput(`from must be "now" if it is given`)
	case given && resumes:
		return opts, badInput("after and from cannot both be given")
	}
	opts.Now = given
	input, given, err := f.text("input")
	if err != nil {
		return opts, err
	}
	if given && input != "events" {
		return opts, badInput(`input must be "events" if it is given`)
	}
	opts.inputAsEvents = given
	discarded, _, err := f.text("discarded")
	if err != nil {
		return opts, err
	}
	opts.Discarded, err = parseDiscarded(discarded)
	return opts, err
}

func parseReplay(s string) (hub.Replay, error) {
	switch s {
	case "", "compact":
		return hub.Compact, nil
	case "raw":
		return hub.Raw, nil
	}
	return 0, badInput(`replay must be "compact" or "raw"`)
}

func parseSync(payload []byte) (thread.Cursor, bool, error) {
	f, err := parseFields(payload)
	if err != nil {
		return thread.Cursor{}, false, err
	}
	return f.after()
}

// parseStop reads which run to stop; empty for any.
func parseStop(payload []byte) (thread.RunID, error) {
	f, err := parseFields(payload)
	if err != nil {
		return "", err
	}
	id, given, err := f.text("runId")
	if err != nil || given {
		return thread.RunID(id), err
	}
	id, _, err = f.text("run_id")
	return thread.RunID(id), err
}

// parseRun reads a request for a run.
func parseRun(id thread.ID, payload []byte) (thread.Request, error) {
	req := thread.Request{Thread: id}
	f, err := parseFields(payload)
	if err != nil {
		return req, err
	}
	agent, _, err := f.text("agentId")
	if err != nil {
		return req, err
	}
	run, given, err := f.text("runId")
	if err != nil {
		return req, err
	}
	if given {
		if err := thread.CheckID("runId", run); err != nil {
			return req, err
		}
	}
	if req.OnBusy, err = f.onBusy(); err != nil {
		return req, err
	}
	if _, ok := f["messages"]; !ok {
		return req, badInput("messages is missing")
	}
	req.Agent, req.RunID = agent, thread.RunID(run)
	req.Input = func(run thread.RunID) ([]byte, error) { return runInput(id, run, f) }
	return req, nil
}

// parseInput reads a RunAgentInput (AG-UI 1.0, section 6) as a request for a run of an agent. Its values are carried as
// they are, the messages as clean leaves them; members that it does not know are left out, as its sender should have done.
func parseInput(agent string, body []byte, clean func(messages []byte) []byte) (thread.Request, error) {
	req := thread.Request{Agent: agent}
	f, err := parseFields(body)
	if err != nil {
		return req, err
	}
	id, err := f.id("threadId")
	if err != nil {
		return req, err
	}
	run, err := f.id("runId")
	if err != nil {
		return req, err
	}
	if _, ok := f["messages"]; !ok {
		return req, badInput("messages is missing")
	}
	if clean != nil {
		f["messages"] = clean(f["messages"])
	}
	req.Thread, req.RunID = thread.ID(id), thread.RunID(run)
	req.Input = func(run thread.RunID) ([]byte, error) { return runInput(req.Thread, run, f) }
	return req, nil
}

// id returns a field that must be there and name something.
func (f fields) id(name string) (string, error) {
	id, _, err := f.text(name)
	if err != nil {
		return "", err
	}
	return id, thread.CheckID(name, id)
}

// onBusy reads what is to be done when a run is active.
func (f fields) onBusy() (thread.OnBusy, error) {
	text, _, err := f.text("onBusy")
	if err != nil {
		return "", err
	}
	return parseOnBusy(text)
}

func parseOnBusy(text string) (thread.OnBusy, error) {
	switch busy := thread.OnBusy(text); busy {
	case thread.Reject, thread.Enqueue, thread.Interrupt, thread.Replace:
		return busy, nil
	case "reject":
		return thread.Reject, nil
	}
	return "", badInput(`onBusy must be "reject", "enqueue", "interrupt" or "replace"`)
}

// parseDiscarded reads whether runs that were replaced are wanted.
func parseDiscarded(s string) (bool, error) {
	if s != "" && s != "include" {
		return false, badInput(`discarded must be "include" if it is given`)
	}
	return s != "", nil
}

// runInput makes a RunAgentInput of the request's fields, which it carries as they are (AG-UI 1.0, section 6).
func runInput(id thread.ID, run thread.RunID, f fields) ([]byte, error) {
	dst := append([]byte(nil), `{"threadId":`...)
	dst = wire.AppendString(dst, string(id))
	dst = append(dst, `,"runId":`...)
	dst = wire.AppendString(dst, string(run))
	for _, field := range []struct{ name, absent string }{
		{"parentRunId", ""}, {"protocolVersion", ""}, {"state", "{}"}, {"messages", ""}, {"tools", "[]"},
		{"context", "[]"}, {"forwardedProps", "{}"}, {"resume", ""},
	} {
		raw := f[field.name]
		if raw == nil || (string(raw) == "null" && field.name != "messages") {
			raw = json.RawMessage(field.absent)
		}
		if len(raw) == 0 {
			continue
		}
		dst = append(dst, `,"`...)
		dst = append(dst, field.name...)
		dst = append(dst, `":`...)
		dst = append(dst, raw...)
	}
	return append(dst, '}'), nil
}
