package agent

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// stream is what a reader made of some bytes.
type stream struct {
	Frames []string
	Rest   string // of an unterminated end
	End    string // "" is an end between two frames
}

func readAll(src io.Reader, limit int) stream {
	var s stream
	for f := newFrames(src, limit); ; {
		frame, err := f.next()
		switch err {
		case nil:
			s.Frames = append(s.Frames, string(frame))
			continue
		case io.EOF:
		case errUnterminated:
			s.Rest = string(frame)
			s.End = err.Error()
		default:
			s.End = err.Error()
		}
		return s
	}
}

func TestFrames(t *testing.T) {
	unterminated := errUnterminated.Error()
	tests := map[string]struct {
		in   string
		want stream
	}{
		"nothing":                      {"", stream{}},
		"LF":                           {"data: a\n\ndata: b\n\n", stream{Frames: []string{"a", "b"}}},
		"CRLF":                         {"data: a\r\n\r\ndata: b\r\n\r\n", stream{Frames: []string{"a", "b"}}},
		"CR":                           {"data: a\r\rdata: b\r\r", stream{Frames: []string{"a", "b"}}},
		"CR, then LF":                  {"data: a\r\r\n\ndata: b\r\n\n", stream{Frames: []string{"a", "b"}}},
		"no space after the colon":     {"data:a\n\n", stream{Frames: []string{"a"}}},
		"one space is dropped":         {"data:   a\n\n", stream{Frames: []string{"  a"}}},
		"several lines":                {"data: a\ndata:\ndata: b\n\n", stream{Frames: []string{"a\n\nb"}}},
		"empty data is a frame":        {"data:\n\n", stream{Frames: []string{""}}},
		"no data is no frame":          {"id: 1\n\n:\n\n\n\n", stream{}},
		"other fields":                 {"event: x\nid: 1\ndata: a\nretry: 5\nfoo: bar\n\n", stream{Frames: []string{"a"}}},
		"names count exactly":          {"Data: x\n data: x\ndata : x\ndatax: x\ndata\ndata: a\n\n", stream{Frames: []string{"a"}}},
		"byte order mark":              {"\ufeffdata: a\n\n", stream{Frames: []string{"a"}}},
		"byte order mark and comment":  {"\ufeff: hello\n\ndata: a\n\n", stream{Frames: []string{"a"}}},
		"byte order mark only at once": {"data: a\n\n\ufeffdata: b\n\n", stream{Frames: []string{"a"}}},
		"other line ends of Unicode":   {"data: a\u2028b\u2029c\u0085d\ve\ff\n\n", stream{Frames: []string{"a\u2028b\u2029c\u0085d\ve\ff"}}},
		"end after a line":             {"data: a\n\ndata: b\n", stream{Frames: []string{"a"}, Rest: "b", End: unterminated}},
		"end within a line":            {"data: a\n\ndata: b", stream{Frames: []string{"a"}, Rest: "b", End: unterminated}},
		"end within another field":     {"data: a\n\nid: 4", stream{Frames: []string{"a"}}},
		"end within the field's name":  {"data: a\ndat", stream{Rest: "a", End: unterminated}},
		"long lines that do not count": {":" + strings.Repeat("x", 300) + "\nid: " + strings.Repeat("data:", 99) + "\ndata: a\n\n", stream{Frames: []string{"a"}}},
		"as large as allowed":          {"data: " + strings.Repeat("x", 100) + "\n\n", stream{Frames: []string{strings.Repeat("x", 100)}}},
		"as large, with all before it": {"\ufeffdata: " + strings.Repeat("x", 100) + "\n\n", stream{Frames: []string{strings.Repeat("x", 100)}}},
		"too large in one line":        {"data: a\n\ndata: " + strings.Repeat("x", 101) + "\n\n", stream{Frames: []string{"a"}, End: errFrameSize.Error()}},
		"too large in many lines":      {strings.Repeat("data: xxxx\n", 30) + "\n", stream{End: errFrameSize.Error()}},
		"large in total only":          {strings.Repeat("data: "+strings.Repeat("x", 80)+"\n\n", 3), stream{Frames: []string{strings.Repeat("x", 80), strings.Repeat("x", 80), strings.Repeat("x", 80)}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for how, src := range map[string]io.Reader{
				"at once":      strings.NewReader(test.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
				"end with it":  iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				if diff := cmp.Diff(test.want, readAll(src, 100)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

// pieces reads the given pieces one at a time.
func pieces(cut ...[]byte) io.Reader {
	readers := make([]io.Reader, len(cut))
	for i, p := range cut {
		readers[i] = bytes.NewReader(p)
	}
	return io.MultiReader(readers...)
}

func TestFramesSplitAnywhere(t *testing.T) {
	in := []byte("\ufeff: hi\r\n\r\ndata: {\"a\":\r\ndata: \"你好😀\"}\r\n\r\ndata: 你好😀\r\rdata:好\n\n")
	want := stream{Frames: []string{"{\"a\":\n\"你好😀\"}", "你好😀", "好"}}
	for i := range in {
		if diff := cmp.Diff(want, readAll(pieces(in[:i], in[i:]), 100)); diff != "" {
			t.Errorf("split before byte %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestFramesDeliverAtTheBlankLine(t *testing.T) {
	for name, end := range map[string]string{"LF": "\n\n", "CR": "\r\r", "CRLF": "\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			defer func() { _ = r.Close() }()
			go func() { _, _ = io.WriteString(w, "data: a"+end) }() // and then nothing
			frame, err := newFrames(r, 100).next()
			if string(frame) != "a" || err != nil {
				t.Errorf("got %q, %v; want a at once", frame, err)
			}
		})
	}
}

func TestFramesPassReadErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	f := newFrames(io.MultiReader(strings.NewReader("data: a\n\ndata: {}\n"), iotest.ErrReader(broken)), 100)
	if frame, err := f.next(); string(frame) != "a" || err != nil {
		t.Errorf("got %q, %v; want the frame before the error", frame, err)
	}
	if frame, err := f.next(); frame != nil || err != broken {
		t.Errorf("got %q, %v; want the error and no part of a frame", frame, err)
	}
}

func TestFramesBelongToTheCaller(t *testing.T) {
	f := newFrames(strings.NewReader("data: aaaa\n\ndata: bbbb\n\n"), 100)
	first, _ := f.next()
	second, _ := f.next()
	if string(first) != "aaaa" || string(second) != "bbbb" {
		t.Errorf("got %q and %q", first, second)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\ufeffdata: a\r\n\r\n:x\ndata: b\rdata:c\r\r\ndata: d"), uint8(3))
	f.Add([]byte("data: \xf0\x9f\x98\x80\n\ndata\n\n data:\n"), uint8(1))
	f.Add([]byte("data: 0123456789012345678901234567890123456789\n\n"), uint8(7))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		const limit = 32
		want := readAll(bytes.NewReader(in), limit)
		if diff := cmp.Diff(want, readAll(iotest.OneByteReader(bytes.NewReader(in)), limit)); diff != "" {
			t.Errorf("byte by byte (-at once +byte by byte):\n%s", diff)
		}
		var cut [][]byte
		for rest := in; len(rest) > 0; {
			n := min(len(rest), 1+(int(step)+len(cut)*7)%11)
			cut, rest = append(cut, rest[:n]), rest[n:]
		}
		if diff := cmp.Diff(want, readAll(pieces(cut...), limit)); diff != "" {
			t.Errorf("in pieces (-at once +in pieces):\n%s", diff)
		}
		for _, frame := range want.Frames {
			if len(frame) > limit+bytes.Count([]byte(frame), []byte("\n")) || strings.Contains(frame, "\r") {
				t.Errorf("frame %q is not one", frame)
			}
		}
	})
}

func BenchmarkFrames(b *testing.B) {
	one := "data: " + string(loadEvent(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"#`, strings.Repeat("x", 200), 1, 150)) + "\n\n"
	body := []byte(strings.Repeat(one, 1000))
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	var f *frames
	for b.Loop() {
		if f == nil || len(f.rest) == 0 && f.err != nil {
			f = newFrames(bytes.NewReader(body), 10<<20)
		}
		frame, err := f.next()
		if err == io.EOF {
			f = nil
			continue
		}
		if _, err := readEvent(frame); err != nil {
			b.Fatal(err)
		}
	}
}
