package terminal

import (
	"bytes"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Output is where a command writes, and what is known of it.
type Output struct {
	// Out gets what was asked for, Err what is said about it.
	Out, Err io.Writer
	// In is a person who can be asked; nil if there is none.
	In io.Reader
	// OutTerminal and ErrTerminal tell whether Out and Err are terminals on which lines can be cleared and written anew.
	OutTerminal, ErrTerminal bool
	// Color tells whether to use colours.
	Color bool
	// Width returns the width of the terminal that Out is, in columns. It may be nil.
	Width func() int
}

// style is how a text looks, as the number of the escape sequence that says so.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// narrow is how many columns a line has that is shortened for no terminal, and least how many it has at least.
const (
	narrow = 160
	least  = 20
)

// clear empties the line that the cursor is in.
const clear = "\r\x1b[K"

// pen writes to one of the writers of an output.
type pen struct {
	w   io.Writer
	mid *bool // the line that is being written has not ended; shared by pens that write to one terminal
}

// screen writes to an output: text that comes bit by bit, notes of a line or more, and on a terminal one line about what is
// going on, which is gone when something else is written. What it is given is inert already.
type screen struct {
	Output
	out, side pen // of Out and Err
	notes     pen // one of them

	waiting bytes.Buffer // for flush, to last
	last    io.Writer
	going   string // the line about what is going on, if it is shown
	err     error
}

// newScreen returns a screen whose notes go to Out, or to Err if they are aside.
func newScreen(o Output, aside bool) *screen {
	s := &screen{Output: o, out: pen{o.Out, new(bool)}, side: pen{o.Err, new(bool)}}
	if o.OutTerminal && o.ErrTerminal {
		s.side.mid = s.out.mid
	}
	s.notes = s.out
	if aside {
		s.notes = s.side
	}
	return s
}

// write writes a piece of text.
func (s *screen) write(p pen, st style, text string) {
	if text == "" {
		return
	}
	s.clear()
	s.put(p.w, s.paint(st, text))
	*p.mid = !strings.HasSuffix(text, "\n")
}

// endLine ends the line that is being written.
func (s *screen) endLine(p pen) {
	if *p.mid {
		s.write(p, plain, "\n")
	}
}

// note writes whole lines, without the line break at their end.
func (s *screen) note(text string) {
	s.endLine(s.notes)
	s.write(s.notes, plain, text+"\n")
}

// aside writes whole lines to Err.
func (s *screen) aside(text string) {
	s.endLine(s.side)
	s.write(s.side, plain, text+"\n")
}

// status shows on a terminal what is going on; "" ends that. Text that is being written is not disturbed.
func (s *screen) status(text string) {
	if !s.ErrTerminal || text == s.going || *s.side.mid {
		return
	}
	s.clear()
	if text != "" {
		s.put(s.Err, s.paint(dim, s.fit(text, 0)))
	}
	s.going = text
}

func (s *screen) clear() {
	if s.going != "" {
		s.put(s.Err, clear)
		s.going = ""
	}
}

func (s *screen) put(w io.Writer, text string) {
	if s.last != w {
		_ = s.flush()
		s.last = w
	}
	s.waiting.WriteString(text)
}

// flush writes what waits, and returns the first error that there was.
func (s *screen) flush() error {
	if s.waiting.Len() > 0 {
		_, err := s.last.Write(s.waiting.Bytes())
		s.waiting.Reset()
		if s.err == nil {
			s.err = err
		}
	}
	return s.err
}

func (s *screen) paint(st style, text string) string {
	if !s.Color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// widths are those of characters, whatever the language of the environment.
var widths = &runewidth.Condition{StrictEmojiNeutral: true}

// fit shortens a text to what fits on a line behind something else.
func (s *screen) fit(text string, taken int) string {
	room := narrow
	if s.OutTerminal && s.Width != nil && s.Width() > 0 {
		room = s.Width()
	}
	return shorten(text, max(room-taken-1, least))
}

func shorten(text string, room int) string { return widths.Truncate(text, room, "…") }

// pad fills a text up to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-widths.StringWidth(text)))
}
