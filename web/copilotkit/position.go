package copilotkit

import (
	"strconv"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Position is where a client stands in a thread: what cpki_event_id and last_seen_event_id say. It is text to clients.
//
// Most are a cursor and nothing else. A finished run is sent as history keeps it, where an event may stand for several and
// most have no cursor of their own: such a position counts the events behind the last cursor. Of a client that cannot go on
// from where it was, because that is gone, it counts what was sent to put it right.
type Position struct {
	thread.Cursor
	Plus int // events taken after the cursor, of those that history keeps
	Lost int // if not 0, the cursor cannot be gone on from, and Lost-1 events have been sent to close what was open there
}

// ParsePosition reads a position of one of the forms "3-120", "3-120+7" and "3-120~2". Anything else is
// [thread.ErrBadCursor].
func ParsePosition(s string) (Position, error) {
	at := strings.IndexAny(s, "+~")
	if at < 0 {
		c, err := thread.ParseCursor(s)
		return Position{Cursor: c}, err
	}
	c, err := thread.ParseCursor(s[:at])
	if err != nil {
		return Position{}, err
	}
	n, err := strconv.Atoi(s[at+1:])
	if err != nil || strconv.Itoa(n) != s[at+1:] || n < 0 || s[at] == '+' && n == 0 {
		return Position{}, badPosition(s)
	}
	if s[at] == '+' {
		return Position{Cursor: c, Plus: n}, nil
	}
	return Position{Cursor: c, Lost: n + 1}, nil
}

// badPosition is the error of what is no position. ParseCursor makes one, since none of them is a cursor.
func badPosition(s string) error {
	_, err := thread.ParseCursor(s)
	return err
}

// Append appends the text of p.
func (p Position) Append(dst []byte) []byte {
	dst = p.Cursor.Append(dst)
	switch {
	case p.Lost > 0:
		return strconv.AppendInt(append(dst, '~'), int64(p.Lost-1), 10)
	case p.Plus > 0:
		return strconv.AppendInt(append(dst, '+'), int64(p.Plus), 10)
	}
	return dst
}

// String is the text of p, the one that [ParsePosition] reads.
func (p Position) String() string { return string(p.Append(nil)) }
