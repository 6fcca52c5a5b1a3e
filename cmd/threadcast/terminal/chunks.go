package terminal

import (
	"encoding/json"
	"slices"
	"strings"
)

// chunks turns chunk events into those that they stand for (AG-UI 1.0, section 12). They are what was opened by chunks, at
// most one in each lane; a lane is a subagent's, or the agent's own.
type chunks []opened

type opened struct {
	kind string // TEXT_MESSAGE, REASONING_MESSAGE or TOOL_CALL
	lane string
	id   json.RawMessage
}

// chunkKinds are the chunk events, what they are chunks of, and the names of its id and of what adds to it.
var chunkKinds = map[string]struct{ kind, id, more string }{
	"TEXT_MESSAGE_CHUNK":      {"TEXT_MESSAGE", "messageId", "CONTENT"},
	"REASONING_MESSAGE_CHUNK": {"REASONING_MESSAGE", "messageId", "CONTENT"},
	"TOOL_CALL_CHUNK":         {"TOOL_CALL", "toolCallId", "ARGS"},
}

// expand returns what an event stands for.
func (c *chunks) expand(f fields) []fields {
	k, chunk := chunkKinds[f.text("type")]
	if !chunk {
		return append(c.closedBy(f), f)
	}
	var all []fields
	lane, id := c.lane(f, k.kind, f[k.id]), f[k.id]
	at := slices.IndexFunc(*c, func(o opened) bool { return o.lane == lane })
	if at < 0 || (*c)[at].kind != k.kind || id != nil && string(id) != string((*c)[at].id) {
		all = c.close(func(o opened) bool { return o.lane == lane })
		if id == nil {
			return all // it adds to nothing
		}
		*c, at = append(*c, opened{k.kind, lane, id}), len(*c)
		all = append(all, f.as(k.kind+"_START"))
	}
	if f["delta"] != nil {
		more := f.as(k.kind + "_" + k.more)
		more[k.id] = (*c)[at].id
		all = append(all, more)
	}
	return all
}

// lane is that of a chunk (K2): where what it names is open, else that of its tag, else where its kind is open.
func (c *chunks) lane(f fields, kind string, id json.RawMessage) string {
	of := func(fits func(opened) bool) (string, bool) {
		i := slices.IndexFunc(*c, func(o opened) bool { return o.kind == kind && fits(o) })
		if i < 0 {
			return "", false
		}
		return (*c)[i].lane, true
	}
	if id != nil {
		if lane, ok := of(func(o opened) bool { return string(o.id) == string(id) }); ok {
			return lane
		}
		return f.text("subagentRunId")
	}
	if tag := f.text("subagentRunId"); tag != "" {
		return tag
	}
	if _, ok := of(func(o opened) bool { return o.lane == "" }); ok {
		return ""
	}
	lane, _ := of(func(opened) bool { return true })
	return lane
}

// closedBy returns the ends of what an event that is no chunk closes (K8).
func (c *chunks) closedBy(f fields) []fields {
	switch kind := f.text("type"); {
	case strings.HasPrefix(kind, "RUN_"), kind == "MESSAGES_SNAPSHOT":
		return c.close(func(opened) bool { return true })
	case kind == "REASONING_ENCRYPTED_VALUE", kind == "SUBAGENT_STARTED":
		return nil
	case hasPrefix(kind, "TEXT_", "TOOL_", "STATE_", "STEP_", "REASONING_", "SUBAGENT_"), kind == "CUSTOM":
		return c.close(func(o opened) bool { return o.lane == f.text("subagentRunId") })
	}
	return nil
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// close closes those that are meant, in the order in which they were opened.
func (c *chunks) close(meant func(opened) bool) (ends []fields) {
	var left chunks
	for _, o := range *c {
		if !meant(o) {
			left = append(left, o)
			continue
		}
		ends = append(ends, fields{"type": quoted(o.kind + "_END"), "messageId": o.id, "toolCallId": o.id})
	}
	*c = left
	return ends
}
