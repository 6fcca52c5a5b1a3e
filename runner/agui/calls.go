package agui

import "slices"

// Call is a tool call of a run.
type Call struct {
	ID   string
	Name string // of the tool
}

// calls are the tool calls of a run and whether they were answered.
type calls struct {
	list     []Call
	opened   map[string]bool
	answered map[string]bool
}

func (c *calls) open(id, name []byte) {
	if c.opened[string(id)] {
		return
	}
	if c.opened == nil {
		c.opened = map[string]bool{}
	}
	c.opened[string(id)] = true
	c.list = append(c.list, Call{ID: string(id), Name: string(name)})
}

func (c *calls) answer(id []byte) {
	if c.answered == nil {
		c.answered = map[string]bool{}
	}
	c.answered[string(id)] = true
}

// Unanswered returns the tool calls that the run made and that have no result yet, in the order of their coming. A
// result is a TOOL_CALL_RESULT, or a tool message in a MESSAGES_SNAPSHOT.
func (t *Tracker) Unanswered() []Call {
	return slices.DeleteFunc(slices.Clone(t.calls.list), func(c Call) bool { return t.calls.answered[c.ID] })
}

// PendingCalls tells which calls of a run that succeeded wait for the application (AG-UI 1.0, section 9): those
// that its RUN_FINISHED named, or else the unanswered ones of tools that the run's input offered.
func PendingCalls(unanswered []Call, step Step, tools []string) []Call {
	if step.Outcome != "success" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(unanswered), func(c Call) bool {
		if len(step.Pending) > 0 {
			return !slices.Contains(step.Pending, c.ID)
		}
		return !slices.Contains(tools, c.Name)
	})
}

// AppendCalls writes calls of a run as a JSON array of {"toolCallId","toolCallName","runId"}; nil if there are none.
func AppendCalls(list []Call, runID string) []byte {
	if len(list) == 0 {
		return nil
	}
	dst := []byte{'['}
	for i, c := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"toolCallId":`...), c.ID)
		dst = appendQuoted(append(dst, `,"toolCallName":`...), c.Name)
		dst = append(appendQuoted(append(dst, `,"runId":`...), runID), '}')
	}
	return append(dst, ']')
}

// texts is the strings of a JSON array; nil if it is none.
func texts(list []byte) []string {
	if !isArray(list) {
		return nil
	}
	var out []string
	for w := walk(list); w.next(); {
		if isString(w.value) {
			out = append(out, text(w.value))
		}
	}
	return out
}
