package terminal

import (
	"bytes"
	"encoding/json"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
)

// lines writes events as JSON, one object a line.
type lines struct{ *screen }

// batch writes the events of a batch, each with the position after it.
func (l lines) batch(s client.Step) {
	positions := positionsIn(s)
	for i, event := range s.Events {
		l.line(member{"runId", quoted(string(s.RunID))}, member{"cursor", positions[i]}, member{"event", event})
	}
}

// reset writes that a run, or the thread if there is no run, has to be forgotten.
func (l lines) reset(s client.Step) {
	run := json.RawMessage("null")
	if s.RunID != "" {
		run = quoted(string(s.RunID))
	}
	l.line(member{"runId", run}, member{"cursor", quoted(s.To.String())}, member{"reset", json.RawMessage("true")})
}

// positionsIn returns the position after each event of a batch, or null where it is not known: a compacted event stands for
// several, and of these only the last one's position is told.
func positionsIn(s client.Step) []json.RawMessage {
	n := uint64(len(s.Events))
	dense := s.To.Seq-s.From.Seq == n || s.To.Seq-s.From.Seq == n+1 && ended(s) // the end has a place of its own
	all := make([]json.RawMessage, n)
	for i := range all {
		all[i] = json.RawMessage("null")
		if dense {
			all[i] = quoted(thread.Cursor{Run: s.From.Run, Seq: s.From.Seq + uint64(i) + 1}.String())
		}
	}
	if n > 0 {
		all[n-1] = quoted(s.To.String())
	}
	return all
}

// ended tells whether the last event of a batch ends its run.
func ended(s client.Step) bool {
	if len(s.Events) == 0 {
		return false
	}
	kind := fieldsOf(s.Events[len(s.Events)-1]).text("type")
	return kind == "RUN_FINISHED" || kind == "RUN_ERROR"
}

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

func (l lines) line(members ...member) {
	text := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, quoted(m.name)...)
		text = append(text, ':')
		text = append(text, m.value...)
	}
	l.raw(append(text, '}'))
}

// raw writes an object as it came.
func (l lines) raw(text []byte) {
	text = oneLine(text)
	if l.OutTerminal {
		text = inertJSON(text)
	}
	l.write(l.out, plain, string(text)+"\n")
}

// oneLine is JSON text as it came, with spaces for line breaks: there are none but between its parts.
func oneLine(text []byte) json.RawMessage {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}
