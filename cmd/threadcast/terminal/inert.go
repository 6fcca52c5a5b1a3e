package terminal

import (
	"fmt"
	"strings"
	"unicode"
)

// Inert makes text fit for a terminal: what would move the cursor, change colours, set titles, reorder what is written or
// hide in it is shown as a symbol, such as ␛, or by its number, such as <U+202E>. Line breaks and tabs stay; a carriage
// return before a line break is dropped.
func Inert(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, harmful) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, r := range s {
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case !harmful(r):
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('␀' + r)
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// line is inert text on one line: white space, line breaks too, becomes single spaces.
func line(s string) string { return Inert(strings.Join(strings.Fields(s), " ")) }

// harmful tells whether a character does something to a terminal, or to the order or the look of what is around it. The
// joiners stay, which scripts and emoji need.
func harmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= ' ' && r < 0x7f:
		return false
	case r == '\u200c', r == '\u200d':
		return false
	case r == '\u2028', r == '\u2029':
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // signs that are seen, though Unicode counts them as format
		return false
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// inertJSON is JSON text of the same meaning that is fit for a terminal: outside of ASCII, harmful characters become
// escapes.
func inertJSON(text []byte) []byte {
	if !strings.ContainsFunc(string(text), harmful) {
		return text
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case !harmful(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}
