package copilotkit

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// Event is an event on its way to a client. Its text is carried: what the client's form asks for is written between the bytes
// that came, and nothing else is touched. The zero Event may be used again and again, by one goroutine.
type Event struct {
	data    []byte
	members []agui.Member
	inner   []agui.Member // of its metadata
	room    []byte        // for the metadata that is sent
}

// Read makes e the event of that text, and tells whether it is a JSON object. The text must not change as long as e is it.
func (e *Event) Read(data []byte) bool {
	var ok bool
	e.data = data
	e.members, ok = agui.AppendMembers(e.members[:0], data)
	return ok
}

// value returns the JSON text of a member, of several with that name the last; nil if there is none.
func (e *Event) value(name string) []byte {
	for _, m := range slices.Backward(e.members) {
		if string(m.Name) == name {
			return e.data[m.From:m.To]
		}
	}
	return nil
}

// Is tells whether the event is of a type.
func (e *Event) Is(typ string) bool { return string(e.text("type")) == typ }

// text returns the text of a member that is a string; else nil.
func (e *Event) text(name string) []byte { return agui.Text(e.value(name)) }

// Stopped tells whether the event is the RUN_ERROR with which the server ends a run that somebody stopped, if it is told to
// end such runs as clients from before AG-UI 1.0 know it. To a client of CopilotKit a stop is a RUN_FINISHED.
func (e *Event) Stopped() bool {
	return e.Is("RUN_ERROR") && string(e.text("code")) == "stopped" && string(e.text("message")) == "The run was stopped."
}

// Terminal tells whether the event ends its run.
func (e *Event) Terminal() bool {
	return e.Is("RUN_FINISHED") || e.Is("RUN_ERROR")
}

// Stamp says what a client learns of an event beside what the agent sent.
type Stamp struct {
	Position Position // after the event: its cpki_event_id
	ThreadID thread.ID
	RunID    thread.RunID // both for a RUN_STARTED or RUN_FINISHED that lacks them
	Old      bool         // of a RUN_ERROR that is no news: its code becomes "abort", which raises no alarm
}

// Append appends the event with its stamp. metadata that the agent sent is kept, but for the ids that such a stamp has.
func (e *Event) Append(dst []byte, s Stamp) []byte {
	edits := [4]edit{{name: "metadata", value: e.metadata(s.Position)}}
	n := 1
	switch {
	case e.Is("RUN_STARTED") || e.Is("RUN_FINISHED"):
		if e.text("threadId") == nil {
			edits[n] = edit{"threadId", quote(string(s.ThreadID))}
			n++
		}
		if e.text("runId") == nil {
			edits[n] = edit{"runId", quote(string(s.RunID))}
			n++
		}
	case s.Old && e.Is("RUN_ERROR"):
		edits[n] = edit{"code", []byte(`"abort"`)}
		n++
	}
	return appendEdited(dst, e.data, e.members, edits[:n])
}

// metadata is the event's metadata with a position.
func (e *Event) metadata(at Position) []byte {
	own := e.value("metadata")
	var ok bool
	e.inner, ok = agui.AppendMembers(e.inner[:0], own)
	dst := e.room[:0]
	dst = append(dst, '{')
	if ok {
		for _, m := range e.inner {
			if name := string(m.Name); name != idName && name != seqName {
				dst = append(append(dst, own[m.At:m.To]...), ',')
			}
		}
	}
	dst = append(dst, `"`+idName+`":"`...)
	dst = append(at.Append(dst), `","`+seqName+`":`...)
	e.room = append(strconv.AppendUint(dst, at.Seq+uint64(at.Plus), 10), '}')
	return e.room
}

// quote writes a JSON string.
func quote(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return text
}

// The members of metadata in which a client finds its position.
const (
	idName  = "cpki_event_id"
	seqName = "cpki_event_seq"
)

// edit is a member that gets a value.
type edit struct {
	name  string
	value []byte // JSON
}

// appendEdited appends an object with the edits: a value takes the place of each that the name has, or comes last.
func appendEdited(dst, object []byte, members []agui.Member, edits []edit) []byte {
	from := 0
	found := 0 // a bit for each edit
	for _, m := range members {
		for i, ed := range edits {
			if string(m.Name) == ed.name {
				dst = append(append(dst, object[from:m.From]...), ed.value...)
				from, found = m.To, found|1<<i
			}
		}
	}
	end := len(object) - 1
	for object[end] != '}' {
		end--
	}
	dst = append(dst, object[from:end]...)
	comma := len(members) > 0
	for i, ed := range edits {
		if found&(1<<i) != 0 {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), ed.name...), `":`...)
		dst, comma = append(dst, ed.value...), true
	}
	return append(dst, object[end:]...)
}
