package thread

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Cursor is a position in a thread: the run's number and the number of the entry within that run.
// The zero Cursor, "0-0", is before everything; {Run: 3} is before the first entry of run 3.
type Cursor struct {
	Run uint64
	Seq uint64
}

// ParseCursor reads the text form "<run>-<seq>": two decimal numbers without sign, space or leading zero.
// Anything else is [ErrBadCursor]; so is a seq in run 0, which does not exist.
func ParseCursor(s string) (Cursor, error) {
	run, seq, ok := strings.Cut(s, "-")
	if !ok {
		return Cursor{}, badCursor(s)
	}
	r, okRun := parseNumber(run)
	q, okSeq := parseNumber(seq)
	if !okRun || !okSeq || (r == 0 && q != 0) {
		return Cursor{}, badCursor(s)
	}
	return Cursor{Run: r, Seq: q}, nil
}

// badCursor quotes no more of s than a reader needs: a client may send a megabyte.
func badCursor(s string) error {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return fmt.Errorf("%w: %q is not of the form <run>-<seq>", ErrBadCursor, s)
}

func parseNumber(s string) (uint64, bool) {
	if s == "" || (s[0] == '0' && len(s) > 1) || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return n, err == nil
}

// String is the text form of c, the one that [ParseCursor] reads.
func (c Cursor) String() string { return string(c.Append(nil)) }

// Append appends the text form of c to dst.
func (c Cursor) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, c.Run, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, c.Seq, 10)
}

// Compare orders positions within one thread: negative if c is before d, 0 if they are the same.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Run, d.Run), cmp.Compare(c.Seq, d.Seq))
}

// Before tells whether c is a position before d.
func (c Cursor) Before(d Cursor) bool { return c.Compare(d) < 0 }
