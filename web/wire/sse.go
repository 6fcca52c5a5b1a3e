package wire

import "bytes"

// SSE is one server-sent event (WHATWG HTML, 9.2, in the form of AG-UI 1.0, section 15.2).
type SSE struct {
	ID    string // becomes the reader's Last-Event-ID; empty to leave that as it is
	Event string // its name; empty for an ordinary one
	Data  []byte // a JSON text
}

// KeepAlive is a comment, which readers pass over.
const KeepAlive = ": keep-alive\n\n"

// Append appends the frame. Its lines end with LF and nothing else, as AG-UI's reader wants it: a line feed within the
// data, which in JSON is but space between tokens, begins another line of data, and a carriage return becomes a space.
func (e SSE) Append(dst []byte) []byte {
	if e.ID != "" {
		dst = append(append(append(dst, "id: "...), e.ID...), '\n')
	}
	if e.Event != "" {
		dst = append(append(append(dst, "event: "...), e.Event...), '\n')
	}
	for rest, more := e.Data, true; more; {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte{'\n'})
		dst = append(dst, "data: "...)
		from := len(dst)
		dst = append(append(dst, line...), '\n')
		for at := bytes.IndexByte(dst[from:], '\r'); at >= 0; at = bytes.IndexByte(dst[from:], '\r') {
			from += at
			dst[from] = ' '
		}
	}
	return append(dst, '\n')
}
