package agent

import (
	"encoding/json"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// What is kept of calls that have no events yet is bounded: the limits of the run see events only.
const (
	maxHeld  = 1 << 20 // bytes of arguments
	maxCalls = 1000
)

var errTooManyCalls = errors.New("too many tool calls, or too much of one before its name")

// call is a tool call of an answer.
type call struct {
	id    string // of its events; empty before the first of them
	given string // what the server calls it, if it does
	name  string
	early []json.RawMessage // arguments that came before the name
	args  []byte            // all arguments, kept while only they tell whether the next name begins another call
}

// addCall takes a delta of a tool call. Deltas of several calls may take turns.
func (r *reply) addCall(d openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	c := r.callOf(d)
	if c.given == "" {
		c.given = d.ID
	}
	if c.name == "" {
		c.name = d.Function.Name
	}
	if args := arguments(d.Function.JSON.Arguments); args != nil {
		if r.held += len(args); r.held > maxHeld || len(r.calls) > maxCalls {
			return notAnEvent(nil, errTooManyCalls)
		}
		c.early = append(c.early, args)
		if c.given == "" {
			c.args = append(c.args, d.Function.Arguments...)
		}
	}
	if c.name == "" {
		return nil
	}
	if err := r.open(c); err != nil {
		return err
	}
	for _, args := range c.early {
		if err := r.send(event{Type: "TOOL_CALL_ARGS", ToolCallID: c.id, Delta: args}); err != nil {
			return err
		}
	}
	c.early = c.early[:0]
	if c.given != "" {
		r.held = 0
	}
	return nil
}

// callOf returns the call that a delta belongs to. The index tells; where it is missing the id, and where that is missing
// too it is the last call. Servers that give every call the same index begin each with another id or, if they give
// none, with a name after complete arguments.
func (r *reply) callOf(d openai.ChatCompletionChunkChoiceDeltaToolCall) *call {
	var c *call
	switch {
	case d.JSON.Index.Valid():
		c = r.indexed[d.Index]
	case d.ID != "":
		for _, other := range r.calls {
			if other.given == d.ID {
				c = other
			}
		}
	case len(r.calls) > 0:
		c = r.calls[len(r.calls)-1]
	}
	if c == nil || c.isNotOf(d) {
		c = &call{}
		r.calls = append(r.calls, c)
		if d.JSON.Index.Valid() {
			r.indexed[d.Index] = c
		}
	}
	return c
}

func (c *call) isNotOf(d openai.ChatCompletionChunkChoiceDeltaToolCall) bool {
	switch name := d.Function.Name; {
	case c.given != "":
		return d.ID != "" && d.ID != c.given
	case c.name == "" || name == "":
		return false
	default:
		return name != c.name || json.Valid(c.args)
	}
}

// open begins a call, if it has not begun. An id that the thread knows already, or none, is replaced: used again it would
// continue the other call (AG-UI 1.0, section 11 V8).
func (r *reply) open(c *call) error {
	if c.id != "" {
		return nil
	}
	if err := r.turnTo(quiet); err != nil {
		return err
	}
	c.id = c.given
	if c.id == "" || r.taken[c.id] {
		c.id = newID("call")
	}
	r.taken[c.id] = true
	return r.send(event{Type: "TOOL_CALL_START", ToolCallID: c.id, ToolName: c.name, ParentID: r.message})
}

// arguments returns a piece of the arguments' text. Some servers send the arguments themselves in its place.
func arguments(field respjson.Field) json.RawMessage {
	raw := field.Raw()
	if raw == "" || raw[0] == '"' {
		return piece(field)
	}
	if raw[0] != '{' {
		return nil
	}
	quoted, err := encode(raw)
	if err != nil {
		return nil
	}
	return quoted
}
