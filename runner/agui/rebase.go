package agui

import (
	"bytes"
	"context"
)

// Past is what happened on a thread after the author of an input wrote it: the events of the runs that came since, in
// order, and what the first of them began with.
type Past struct {
	State  []byte   // the state that the first run started from; nil for none
	Events [][]byte // of the runs, one after the other
}

// Rebase returns the input as its author would have written it had he seen the past: what the past made of the
// messages that the thread knows, then those of the input that it does not know, and the state that the
// past left, if it says anything of it. Messages of activity are left out. An agent needs the whole conversation (AG-UI 1.0, section 6). Everything else of the input is
// as it was, byte for byte. The error is a [*MalformedError] if raw is not what [ParseInput] accepts, or the past does
// not fit into a [Reducer]; or that of ctx.
func Rebase(ctx context.Context, raw []byte, known func(id string) bool, past Past) ([]byte, error) {
	in, err := ParseInput(raw)
	if err != nil {
		return nil, err
	}
	made, err := messageIDs(ctx, past)
	if err != nil {
		return nil, err
	}
	var before, after [][]byte
	i := 0
	for w := walk(member(raw, "messages")); w.next(); i++ {
		switch id := in.MessageIDs[i]; {
		case made[id]: // as the past has it
		case known(id):
			before = append(before, w.value)
		default:
			after = append(after, w.value)
		}
	}
	r, err := reduced(ctx, list(before), past)
	if err != nil {
		return nil, err
	}
	var messages [][]byte
	for w := walk(r.Messages()); w.next(); {
		if text(member(w.value, "role")) != "activity" { // which are for people (section 6)
			messages = append(messages, w.value)
		}
	}
	values := map[string][]byte{"messages": list(append(messages, after...))}
	if past.touchesState() {
		values["state"] = r.State()
	}
	return replaced(raw, values)
}

// touchesState tells whether the past says anything of the state.
func (p Past) touchesState() bool {
	for _, data := range p.Events {
		if e, err := scanned(data); err == nil && (e.typ == stateSnapshot || e.typ == stateDelta) {
			return true
		}
	}
	return false
}

// messageIDs are the ids of the messages that the past brought.
func messageIDs(ctx context.Context, past Past) (map[string]bool, error) {
	r, err := reduced(ctx, nil, past)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for w := walk(r.Messages()); w.next(); {
		ids[text(member(w.value, "id"))] = true
	}
	return ids, nil
}

// reduced is what the past makes of messages.
func reduced(ctx context.Context, messages []byte, past Past) (*Reducer, error) {
	r, err := NewReducer(messages, past.State)
	if err != nil {
		return nil, err
	}
	for _, event := range past.Events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.Apply(event); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// list is a JSON array.
func list(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

// replaced returns an object with other values for some of its members; the last of two of a name counts, and those
// that it lacks are added.
func replaced(raw []byte, values map[string][]byte) ([]byte, error) {
	type place struct {
		from, to int
		value    []byte
	}
	places := map[string]place{}
	w := walkObject(raw)
	for w.next() {
		if value, ok := values[text(w.key)]; ok {
			places[text(w.key)] = place{w.from, w.from + len(w.value), value}
		}
	}
	if !w.ok {
		return nil, badInput("", "it is not one JSON object")
	}
	out, at := []byte(nil), 0
	for len(places) > 0 {
		first := ""
		for name, p := range places {
			if first == "" || p.from < places[first].from {
				first = name
			}
		}
		p := places[first]
		out = append(append(out, raw[at:p.from]...), p.value...)
		at = p.to
		delete(places, first)
		delete(values, first)
	}
	end := bytes.LastIndexByte(raw, '}')
	out = append(out, raw[at:end]...)
	for name, value := range values { // threadId is there, so a comma is due
		out = append(append(appendQuoted(append(out, ','), name), ':'), value...)
	}
	return append(out, raw[end:]...), nil
}

// InputState is the state that a run with this input starts from, as JSON; nil if the input has none.
func InputState(input []byte) []byte {
	if state := member(input, "state"); state != nil && !isNull(state) {
		return state
	}
	return nil
}

// Dismissal writes the RunAgentInput of a run that cancels interrupts and says nothing else. interrupts is a JSON array
// of them.
func Dismissal(threadID, runID string, interrupts []byte) []byte {
	var resume [][]byte
	for w := walk(interrupts); w.next(); {
		if id := member(w.value, "id"); isString(id) {
			resume = append(resume, append(append([]byte(`{"interruptId":`), id...), `,"status":"cancelled"}`...))
		}
	}
	b := append(appendQuoted([]byte(`{"threadId":`), threadID), `,"runId":`...)
	b = append(appendQuoted(b, runID), `,"messages":[],"tools":[],"context":[],"resume":`...)
	return append(append(b, list(resume)...), '}')
}
