package agent

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Any stream of bytes, made of the pieces that a reader of server-sent events may stumble over.

var ssePieces = []string{
	"data:", "data: ", "data", "dat", "event: x", "id: 1", ": comment", "\ufeff", "Data: x", " ", "x",
	"\n", "\n", "\n\n", "\n\n", "\r", "\r\n", "\r\r", "\r\n\r\n", "\n\r",
	`{"type":"RAW","event":1}`, `{"type":"TEXT_MESSAGE_CONTENT",`, "\n" + `data: "messageId":"m","delta":"`, `"}`, "[DONE]", "null",
	`{"type":"a","type":1}`, `{"Type":"RAW"}`, "\xf0\x9f\x98\x80", "\xf0\x9f", "\xff", "\x00", "\u2028", "\u0085", "0123456789012345678901234567890123456789",
}

func anySSE(t *rapid.T) []byte {
	var stream []byte
	for range rapid.IntRange(0, 40).Draw(t, "pieces") {
		stream = append(stream, rapid.SampledFrom(ssePieces).Draw(t, "piece")...)
	}
	return append(stream, rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "rest")...)
}

// cut divides a stream at random places, with empty reads among the pieces.
func cut(t *rapid.T, stream []byte) io.Reader {
	var parts [][]byte
	for len(stream) > 0 {
		n := rapid.IntRange(0, min(len(stream), 9)).Draw(t, "piece of")
		parts, stream = append(parts, stream[:n]), stream[n:]
	}
	return pieces(parts...)
}

// read is what comes of a stream in the end: its events, and what ended it.
type read struct {
	Events []string
	End    string
}

// readStream reads a stream as the agent does, and checks that the reader never holds more than its limit allows.
func readStream(t *rapid.T, src io.Reader, limit int) (r read) {
	f := newFrames(src, limit)
	for {
		frame, err := f.next()
		if held := cap(f.line) + cap(f.data); held > 4*limit+keepSize {
			t.Fatalf("the reader holds %d bytes with a limit of %d", held, limit)
		}
		if err != nil && !errors.Is(err, errUnterminated) {
			r.End = err.Error()
			return r
		}
		event, bad := readEvent(frame)
		if bad != nil {
			r.End = bad.Error()
			return r
		}
		r.Events = append(r.Events, string(event))
	}
}

func TestAnyStreamIsReadTheSameHoweverItIsCut(t *testing.T) { rapid.Check(t, readsAnyStream) }

// FuzzAnyStream runs the same property on streams that the fuzzer steers.
func FuzzAnyStream(f *testing.F) { f.Fuzz(rapid.MakeFuzz(readsAnyStream)) }

func readsAnyStream(t *rapid.T) {
	stream := anySSE(t)
	limit := rapid.SampledFrom([]int{1, 24, 64, 4096}).Draw(t, "limit")
	wantFrames, want := readAll(bytes.NewReader(stream), limit), readStream(t, bytes.NewReader(stream), limit)
	same := func(how string, src func() io.Reader) {
		if diff := cmp.Diff(wantFrames, readAll(src(), limit)); diff != "" {
			t.Fatalf("frames %s (-at once +cut):\n%s\n%q", how, diff, stream)
		}
		if diff := cmp.Diff(want, readStream(t, src(), limit)); diff != "" {
			t.Fatalf("events %s (-at once +cut):\n%s\n%q", how, diff, stream)
		}
	}
	same("byte by byte", func() io.Reader { return iotest.OneByteReader(bytes.NewReader(stream)) })
	same("with the end", func() io.Reader { return iotest.DataErrReader(bytes.NewReader(stream)) })
	random := cut(t, stream)
	if diff := cmp.Diff(want, readStream(t, random, limit)); diff != "" {
		t.Fatalf("events in pieces (-at once +cut):\n%s\n%q", diff, stream)
	}
	if len(stream) <= 100 {
		for i := range stream {
			same("in two", func() io.Reader { return pieces(stream[:i], stream[i:]) })
		}
	}
}

// A stream without end costs no more than the limit, whatever it consists of.
func TestEndlessStreamsAreBounded(t *testing.T) {
	const limit, total = 1 << 16, 16 << 20
	for name, unit := range map[string]string{
		"a line that does not count": "x", "a line of data": "data: 0123456789abcdef", "blank lines": "\n", "lines of data": "data: x\n",
		"empty lines of data": "data:\n", "CRs": "\r", "half a field's name": "dat\n", "comments": ": x\n\n", "byte order marks": "\ufeff",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFrames(io.LimitReader(&endless{text: unit}, total), limit)
			most := 0
			var err error
			for err == nil {
				_, err = f.next()
				most = max(most, cap(f.line)+cap(f.data)+cap(f.buf))
			}
			if most > 4*limit+keepSize+readSize {
				t.Errorf("the reader held %d bytes", most)
			}
			if err != io.EOF && err != errFrameSize {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}
