package agent

import (
	"bytes"
	"errors"
	"io"
)

const (
	readSize = 32 << 10 // bytes asked of the body at a time
	keepSize = 64 << 10 // a line buffer above this is not kept for the next frame
)

var (
	errUnterminated = errors.New("the stream ended within a frame")
	errFrameSize    = errors.New("the frame exceeds the limit")
)

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	dataField     = []byte("data:")
)

// frames reads server-sent events from a stream of bytes: the grammar of the WHATWG, with two readings of
// AG-UI 1.0 (section 15.2): a frame with an empty data line counts as a frame (H6), and a line "data" without a
// colon is ignored (H4). Lines end with LF, CR or CRLF and nothing else; how the bytes are cut into reads
// makes no difference.
type frames struct {
	src   io.Reader
	limit int // bytes that a frame may hold

	buf  []byte // what was read last
	rest []byte // the part of buf that is still to be looked at
	err  error  // what the last read ended with

	line    []byte // the beginning of a line that is not complete yet
	data    []byte // the data of the frame so far
	hasData bool
	begun   bool // the first line of the stream is past
	afterCR bool // an LF that comes next belongs to the line end before it
}

func newFrames(src io.Reader, limit int) *frames {
	return &frames{src: src, limit: limit, buf: make([]byte, readSize)}
}

// next returns the data of the next frame; the caller owns it. It returns io.EOF at an end between frames,
// what is there and errUnterminated at an end within one, errFrameSize for a frame that is too large,
// and otherwise the error of the read.
func (f *frames) next() ([]byte, error) {
	for {
		if len(f.rest) == 0 {
			if f.err != nil {
				return f.end()
			}
			var n int
			n, f.err = f.src.Read(f.buf)
			f.rest = f.buf[:n]
			continue
		}
		done, err := f.scan()
		if err != nil {
			return nil, err
		}
		if done {
			return f.take(), nil
		}
	}
}

// scan takes one line, or the beginning of one, out of rest. It tells whether a frame is complete.
func (f *frames) scan() (bool, error) {
	if f.afterCR {
		f.afterCR = false
		if f.rest[0] == '\n' {
			f.rest = f.rest[1:]
			return false, nil
		}
	}
	end := bytes.IndexAny(f.rest, "\r\n")
	if end < 0 {
		part := f.rest
		f.rest = nil
		return false, f.hold(part)
	}
	part := f.rest[:end]
	f.afterCR = f.rest[end] == '\r'
	f.rest = f.rest[end+1:]
	if len(f.line) == 0 {
		return f.endLine(part)
	}
	if err := f.hold(part); err != nil {
		return false, err
	}
	return f.endLine(f.line)
}

// hold keeps part of a line until the rest of it has come. Of a line that does not matter it keeps no more
// than is needed to see that.
func (f *frames) hold(part []byte) error {
	const enough = len("\xef\xbb\xbfdata:")
	if need := enough - len(f.line); need > 0 {
		n := min(need, len(part))
		f.line, part = append(f.line, part[:n]...), part[n:]
	}
	if len(part) == 0 {
		return nil
	}
	if _, ok := f.value(f.line); !ok {
		return nil
	}
	if len(f.data)+len(f.line)+len(part) > f.limit+enough+len(" ") { // what endLine would find too large in any case
		return errFrameSize
	}
	f.line = append(f.line, part...)
	return nil
}

// value returns what a data line holds. The byte order mark before the first line does not count (H3).
func (f *frames) value(line []byte) ([]byte, bool) {
	if !f.begun {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	value, ok := bytes.CutPrefix(line, dataField)
	return bytes.TrimPrefix(value, []byte(" ")), ok
}

// endLine deals with a complete line. It tells whether the line, a blank one, ends a frame.
func (f *frames) endLine(line []byte) (bool, error) {
	value, ok := f.value(line)
	blank := len(line) == 0
	f.begun = true
	f.dropLine()
	if !ok {
		return blank && f.hasData, nil
	}
	if len(f.data)+len(value) > f.limit {
		return false, errFrameSize
	}
	if f.hasData {
		f.data = append(f.data, '\n')
	}
	f.data = append(f.data, value...)
	f.hasData = true
	return false, nil
}

// dropLine forgets the held line. Its bytes stay in place until the next hold.
func (f *frames) dropLine() {
	if cap(f.line) > keepSize {
		f.line = nil
	}
	f.line = f.line[:0]
}

// take hands the frame's data over.
func (f *frames) take() []byte {
	data := f.data
	f.data, f.hasData = nil, false
	return data
}

// end deals with the end of the stream: a rest without its blank line is handed over as what it is (H5).
func (f *frames) end() ([]byte, error) {
	if !errors.Is(f.err, io.EOF) {
		return nil, f.err
	}
	if len(f.line) > 0 {
		if _, err := f.endLine(f.line); err != nil {
			return nil, err
		}
	}
	if f.hasData {
		return f.take(), errUnterminated
	}
	return nil, io.EOF
}
