package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/threadcast/threadcast/persistence/thread"
)

// eventsVersion is the form of [AgentRun.Events] that encodeEvents writes.
const eventsVersion = 1

// maxEvents is how long an events text may be, in bytes: SQLite takes 1,000,000,000 for a row, and Postgres 1 GiB for a
// statement.
const maxEvents = 990_000_000

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeEvents makes one JSON text of a run's events: an array with a line for each, [first,last,event], in
// which the event is the bytes as they came. An event that is not valid UTF-8 or not valid JSON is
// [thread.ErrBadInput]: no database would keep the one, and the other could not be found again. More than maxEvents is
// [thread.ErrTooLarge].
func encodeEvents(events []thread.Event) ([]byte, error) {
	size := 2
	for _, e := range events {
		size += len(e.Data) + 48
	}
	if size > maxEvents {
		return nil, fmt.Errorf("%w: the events are %d bytes; a database takes %d", thread.ErrTooLarge, size, maxEvents)
	}
	buf := make([]byte, 0, size)
	buf = append(buf, '[')
	for i, e := range events {
		if err := checkJSON(e.Data); err != nil {
			return nil, fmt.Errorf("%w: event %d of %d: %w", thread.ErrBadInput, i+1, len(events), err)
		}
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, '\n', '[')
		buf = strconv.AppendUint(buf, e.First, 10)
		buf = append(buf, ',')
		buf = strconv.AppendUint(buf, e.Last, 10)
		buf = append(buf, ',')
		buf = append(buf, e.Data...)
		buf = append(buf, ']')
	}
	buf = append(buf, ']')
	return buf, nil
}

func checkJSON(data []byte) error {
	switch {
	case !utf8.Valid(data):
		return errors.New("it is not valid UTF-8")
	case !json.Valid(data):
		return errors.New("it is not valid JSON")
	}
	return nil
}

// A run's events can be hundreds of megabytes: between their text as bytes and as the string that a database takes, nothing is
// copied. Neither is changed once it is made.
func textOf(text []byte) string  { return unsafe.String(unsafe.SliceData(text), len(text)) }
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// checksum is the CRC-32C of an events text.
func checksum(text []byte) int64 { return int64(crc32.Checksum(text, castagnoli)) }

// decodeEvents takes apart what encodeEvents made; count is how many events to expect, as a hint. The events
// share the memory of text. A text of another form is [thread.ErrCorrupt]; that the events themselves are still the
// JSON that they were is what the checksum tells.
func decodeEvents(text []byte, count int) ([]thread.Event, error) {
	s := scanner{text: text}
	events := make([]thread.Event, 0, min(max(count, 0), len(text)/8+1))
	if !s.skip("[") {
		return nil, s.damaged("the beginning")
	}
	for !s.skip("]") {
		if len(events) > 0 && !s.skip(",") {
			return nil, s.damaged("a comma")
		}
		e, err := s.event()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if s.pos != len(text) {
		return nil, s.damaged("the end")
	}
	return events, nil
}

// scanner walks through an events text.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) damaged(expected string) error {
	return fmt.Errorf("%w: %s is missing at byte %d of %d", thread.ErrCorrupt, expected, s.pos, len(s.text))
}

// skip passes over want and tells whether it was there.
func (s *scanner) skip(want string) bool {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(want)) {
		return false
	}
	s.pos += len(want)
	return true
}

func (s *scanner) event() (e thread.Event, err error) {
	if !s.skip("\n[") {
		return e, s.damaged("an event")
	}
	if e.First, err = s.number(); err != nil {
		return e, err
	}
	if e.Last, err = s.number(); err != nil {
		return e, err
	}
	start := s.pos
	if !s.value() || s.pos == start {
		return e, s.damaged("the end of an event")
	}
	e.Data = s.text[start:s.pos:s.pos]
	s.pos++
	return e, nil
}

// number reads a decimal number and the comma behind it.
func (s *scanner) number() (uint64, error) {
	n := bytes.IndexByte(s.text[s.pos:min(s.pos+21, len(s.text))], ',')
	if n < 0 {
		return 0, s.damaged("a number")
	}
	v, err := strconv.ParseUint(string(s.text[s.pos:s.pos+n]), 10, 64)
	if err != nil {
		return 0, s.damaged("a number")
	}
	s.pos += n + 1
	return v, nil
}

// value moves to the bracket that closes the array it stands in, past strings and nested values, and tells
// whether there is one.
func (s *scanner) value() bool {
	depth := 0
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '"':
			if !s.str() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.text[s.pos] == ']'
			}
			depth--
		}
		s.pos++
	}
	return false
}

// str moves past the string that begins here.
func (s *scanner) str() bool {
	start := s.pos + 1
	for from := start; ; {
		n := bytes.IndexByte(s.text[from:], '"')
		if n < 0 {
			s.pos = len(s.text)
			return false
		}
		quote := from + n
		back := quote
		for back > start && s.text[back-1] == '\\' {
			back--
		}
		if (quote-back)%2 == 0 {
			s.pos = quote + 1
			return true
		}
		from = quote + 1
	}
}
