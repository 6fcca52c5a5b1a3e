package wire

import "strconv"

// Events is the payload of [EventEvents]: events of one run.
type Events struct {
	RunID  string
	From   string // the position that the events continue
	To     string // the position after them
	Replay bool
	Events [][]byte // JSON texts, carried as they are
}

// Append appends the payload.
func (e Events) Append(dst []byte) []byte {
	dst = append(dst, `{"runId":`...)
	dst = AppendString(dst, e.RunID)
	dst = append(dst, `,"from":`...)
	dst = AppendString(dst, e.From)
	dst = append(dst, `,"to":`...)
	dst = AppendString(dst, e.To)
	dst = append(dst, `,"replay":`...)
	dst = strconv.AppendBool(dst, e.Replay)
	dst = append(dst, `,"events":[`...)
	for i, event := range e.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, event...)
	}
	return append(dst, "]}"...)
}

// Size is about how many bytes [Events.Append] appends.
func (e Events) Size() int {
	n := 160 + len(e.RunID)
	for _, event := range e.Events {
		n += len(event) + 1
	}
	return n
}

// AppendReset appends the payload of [EventReset]. An empty run id means the whole thread.
func AppendReset(dst []byte, runID, from string) []byte {
	dst = append(dst, `{"runId":`...)
	dst = appendRef(dst, runID)
	dst = append(dst, `,"from":`...)
	dst = AppendString(dst, from)
	return append(dst, '}')
}

// AppendCaughtUp appends the payload of [EventCaughtUp].
func AppendCaughtUp(dst []byte, cursor string, running bool) []byte {
	dst = append(dst, `{"cursor":`...)
	dst = AppendString(dst, cursor)
	dst = append(dst, `,"running":`...)
	dst = strconv.AppendBool(dst, running)
	return append(dst, '}')
}
