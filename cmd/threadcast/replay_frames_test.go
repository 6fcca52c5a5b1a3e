package main_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/threadcast/threadcast/web/webtest"
)

// wireFrame is a frame of the server as it came.
type wireFrame struct {
	text               []byte
	JoinRef, Ref       string
	Topic, Event       string
	Payload            json.RawMessage
	batch              batch
	run                []string // types of its events
	validUTF8, decoded bool
}

func readFrame(text []byte) wireFrame {
	f := wireFrame{text: bytes.Clone(text), validUTF8: utf8.Valid(text)}
	var parts [5]json.RawMessage
	if json.Unmarshal(text, &parts) != nil {
		return f
	}
	f.decoded = true
	for i, to := range []any{&f.JoinRef, &f.Ref, &f.Topic, &f.Event} {
		f.decoded = f.decoded && json.Unmarshal(parts[i], to) == nil
	}
	f.Payload = bytes.Clone(parts[4])
	if f.Event == "ag_ui_events" {
		f.decoded = f.decoded && json.Unmarshal(f.Payload, &f.batch) == nil
	}
	for _, data := range f.batch.Events {
		var e event
		f.decoded = f.decoded && json.Unmarshal(data, &e) == nil
		f.run = append(f.run, e.Type)
	}
	return f
}

func (f wireFrame) replies(ref string) bool { return f.Event == "phx_reply" && f.Ref == ref }

func (f wireFrame) events() bool { return f.Event == "ag_ui_events" }

func (f wireFrame) terminal() bool {
	return slices.Contains(f.run, "RUN_FINISHED") || slices.Contains(f.run, "RUN_ERROR")
}

// to is the seq up to which the frame brings its membership.
func (f wireFrame) to() int {
	_, seq, _ := bytes.Cut([]byte(f.batch.To), []byte("-"))
	n := 0
	for _, c := range seq {
		n = 10*n + int(c-'0')
	}
	return n
}

// wireFrames are the frames that a socket received.
type wireFrames struct {
	mu   sync.Mutex
	list []wireFrame
	next int // from which await goes on
}

func (w *wireFrames) add(text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, readFrame(text))
}

func (w *wireFrames) all() []wireFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// await waits for a frame that is as wanted, among those that no earlier await has passed.
func (w *wireFrames) await(s *stage, what string, wanted func(wireFrame) bool) {
	s.Helper()
	eventually(s, patience, what, func() bool {
		for _, f := range w.all()[w.next:] {
			w.next++
			if wanted(f) {
				return true
			}
		}
		return false
	})
}

// lastCursor is the position up to which a membership has come.
func (w *wireFrames) lastCursor(joinRef string) string {
	cursor := ""
	for _, f := range w.all() {
		if f.events() && f.JoinRef == joinRef {
			cursor = f.batch.To
		}
	}
	return cursor
}

// dialRaw opens a socket and collects its frames.
func (s *stage) dialRaw() (*webtest.Client, *wireFrames) {
	s.Helper()
	frames := new(wireFrames)
	client, err := webtest.Dial(s.ctx, s.next().url, &webtest.Options{OnFrame: frames.add})
	s.must(err)
	s.Cleanup(client.Drop)
	return client, frames
}

// checkFrames checks that all frames are valid UTF-8 and can be read.
func (w *wireFrames) check(s *stage) {
	s.Helper()
	for _, f := range w.all() {
		if !f.validUTF8 || !f.decoded {
			s.Errorf("a frame is not valid UTF-8 or not JSON: %q", f.text)
		}
	}
}

// sameJSON compares two JSON texts by what they say.
func sameJSON(s *stage, a, b []byte) bool {
	s.Helper()
	return bytes.Equal(canonical(s, a), canonical(s, b))
}

// canonical writes JSON with its keys in order and its numbers as they are.
func canonical(s *stage, data []byte) []byte {
	s.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	s.must(dec.Decode(&value))
	return encode(s, value)
}

func encode(s *stage, value any) []byte {
	s.Helper()
	data, err := json.Marshal(value)
	s.must(err)
	return data
}
