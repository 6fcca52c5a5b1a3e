package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/threadcast/threadcast/web/webtest"
)

// The default limit of an event is 8 MiB, so the giant is kept apart: in its place comes a document that says where it is.
// An event of 5 MiB arrives whole.
func hugeEventHarmsNoNeighbour(s *stage) {
	const mib = 1 << 20
	before := s.usage()
	viewers := []*viewer{s.watch("t1", nil), s.watch("t1", raw)}
	s.run("t1", "r1")
	for _, v := range viewers {
		s.must(v.until(webtest.Ended("r1")))
		events := v.Run("r1").Events
		if text(s, events, "m1") != "before" || text(s, events, "m2") != "after" {
			s.Errorf("beside the giant come %v", types(s, events))
		}
		verify(s, "a viewer", events)
		i := slices.Index(v.Run("r1").Types, "TOOL_CALL_RESULT")
		if i < 0 {
			s.Fatalf("nothing stands in the place of the giant: %v", types(s, events))
		}
		s.checkKeptApart(events[i], 41943040)
		if err := v.client.Heartbeat(s.ctx); err != nil {
			s.Errorf("the viewer was cut: %v", err)
		}
	}
	if end := s.next().ended("t1", "r1"); end.State != "finished" {
		s.Errorf("the run is recorded as %+v", end)
	}

	s.anyIDs()
	s.perform(strings.NewReplacer("41943040", strconv.Itoa(5*mib), `"t1"`, `"{thread}"`, `"r1"`, `"{run}"`).Replace(s.events))
	large := []*viewer{s.watch("t2", nil), s.watch("t2", raw)}
	s.run("t2", "r1")
	for _, v := range large {
		s.must(v.until(webtest.Ended("r1")))
		events := v.Run("r1").Events
		if text(s, events, "m1") != "before" || text(s, events, "m2") != "after" {
			s.Errorf("beside the large event come %v", types(s, events))
		}
		if i := slices.Index(v.Run("r1").Types, "TOOL_CALL_RESULT"); i < 0 || len(events[i]) < 5*mib {
			s.Error("the large event did not arrive whole")
		}
	}
	for i, after := range s.usage() {
		s.Logf("measured: %s: RSS of node %d: %d MiB before, %d after, %d at most",
			s.Name(), i+1, before[i].rss/mib, after.rss/mib, after.peak/mib)
		if !underRace && after.peak-before[i].rss > 400*mib {
			s.Errorf("the memory of node %d grew by %d MiB", i+1, (after.peak-before[i].rss)/mib)
		}
	}
}

// checkKeptApart follows the reference of a marker, which is no larger than it has to be.
func (s *stage) checkKeptApart(event json.RawMessage, size int) {
	s.Helper()
	var marker struct {
		MessageID, ToolCallID string
		Content               []struct {
			Type     string
			Source   struct{ Type, Value, MimeType string }
			Metadata struct {
				Threadcast struct {
					Type  string
					Bytes int
				}
			}
		}
	}
	s.must(json.Unmarshal(event, &marker))
	if len(event) > 1024 || marker.MessageID != "big" || marker.ToolCallID != "k1" || len(marker.Content) != 2 {
		s.Fatalf("the marker is %.300s", event)
	}
	doc := marker.Content[1]
	if kept := doc.Metadata.Threadcast; kept.Type != "kept_apart" || kept.Bytes != size+2 { // with its quotes
		s.Errorf("the marker says %+v", kept)
	}
	var content string
	if code := s.next().do(http.MethodGet, doc.Source.Value, nil, &content); code != http.StatusOK || len(content) != size {
		s.Errorf("%s is answered with %d and %d bytes", doc.Source.Value, code, len(content))
	}
}

// emitted are the events that the agent of a case with a plain list emits, byte for byte.
func (s *stage) emitted() []json.RawMessage {
	s.Helper()
	var list []json.RawMessage
	if json.Unmarshal([]byte(s.events), &list) != nil {
		var form struct{ RawAgentLines []string }
		s.must(json.Unmarshal([]byte(s.events), &form))
		for _, line := range form.RawAgentLines {
			list = append(list, json.RawMessage(line))
		}
		return list
	}
	for i, data := range list {
		var b bytes.Buffer
		s.must(json.Compact(&b, data))
		list[i] = b.Bytes()
	}
	return list
}

// checkStarted checks that a RUN_STARTED is the agent's, completed by the run's input and nothing else.
func (s *stage) checkStarted(what string, got, emitted json.RawMessage) {
	s.Helper()
	begin := bytes.TrimSuffix(emitted, []byte("}"))
	if !bytes.HasPrefix(got, begin) || !bytes.HasPrefix(got[len(begin):], []byte(`,"input":{`)) {
		s.Errorf("%s: the run begins with %s, and the agent sent %s", what, got, emitted)
	}
}

func falsyValuesSurvive(s *stage) {
	live, stream, sql := s.views()
	want := s.emitted()
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream} {
		s.checkStarted(name, events[0], want[0])
		same(s, name, events[1:], want[1:])
	}
	s.checkStarted("SQL", sql[0], want[0])
	isDelta := func(data json.RawMessage) bool { return parse(s, data).Type == "TEXT_MESSAGE_CONTENT" }
	same(s, "SQL", slices.DeleteFunc(slices.Clone(sql[1:]), isDelta), slices.DeleteFunc(slices.Clone(want[1:]), isDelta))
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream, "SQL": sql} {
		if got := text(s, events, "m1"); got != " \n0false" {
			s.Errorf("%s: the text is %q", name, got)
		}
		if _, state := reduce(s, events); !sameJSON(s, state, []byte(`{"n":0,"f":false,"s":"","z":null,"a":[],"o":{}}`)) {
			s.Errorf("%s: the state is %s", name, state)
		}
	}
}

func splitEmojiSurvives(s *stage) {
	client, frames := s.dialRaw()
	_, err := client.Join(s.ctx, "thread:t1", raw)
	s.must(err)
	live, stream, sql := s.views()
	late, err := client.Join(s.ctx, "thread:t1", nil)
	s.must(err)
	back := webtest.NewViewer("t1", nil)
	for back.CaughtUp == 0 {
		p, err := late.Next(s.ctx)
		s.must(err)
		s.must(back.Apply(p))
	}
	frames.check(s)
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream, "SQL": sql, "again": back.Events()} {
		if got := text(s, events, "m1"); got != "hi \U0001F600 ok" {
			s.Errorf("%s: the text is %q", name, got)
		}
	}
}

func allShapesOfSSEAreRead(s *stage) {
	s.anyIDs()
	variants := len(s.script.Runs)
	step := 1
	if !s.large() {
		step = 5
	}
	var runs []int
	for i := 0; i < variants; i += step {
		runs = append(runs, i)
	}
	if step > 1 && runs[1] != 1 {
		runs = append(runs, 1) // one byte at a time
	}
	scripts := s.script.Runs[:0:0]
	for _, i := range runs {
		scripts = append(scripts, s.script.Runs[i])
	}
	s.agent.Handle("scripted", scripts...)
	forEach(len(runs), 8, func(i int) {
		name := fmt.Sprintf("sse-%d", i)
		v := s.viewer(name, raw)
		if err := v.join(); err != nil {
			s.Error(err)
			return
		}
		defer v.drop()
		if err := v.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, nil); err != nil {
			s.Error(err)
			return
		}
		if err := v.until(webtest.Ended("r1")); err != nil {
			s.Error(err)
			return
		}
		run := v.Run("r1")
		want := []string{"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"}
		if !slices.Equal(run.Types, want) {
			s.Errorf("%s: the events are %v", name, run.Types)
			return
		}
		var delta string
		if err := json.Unmarshal(parse(s, run.Events[2]).Delta, &delta); err != nil || delta != "\u4f60\u597d \U0001F600 \u2028x\u0085y" {
			s.Errorf("%s: the delta is %q: %v", name, delta, err)
		}
		if string(run.Events[4]) != `{"type":"RUN_FINISHED","threadId":"`+name+`","runId":"r1"}` {
			s.Errorf("%s: the run ends with %s", name, run.Events[4])
		}
	})
	s.Logf("measured: %s: %d of %d ways to cut the stream", s.Name(), len(runs), variants)
}

func strangeTextSurvives(s *stage) {
	live, stream, sql := s.views()
	want := s.emitted()
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream} {
		s.checkStarted(name, events[0], want[0])
		same(s, name, events[1:], want[1:])
	}
	for _, log := range s.shutDown() {
		if strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			s.Errorf("the log tells of trouble:\n%s", log)
		}
	}
	s.revive()
	v := s.watch("t1", nil)
	s.must(v.until(webtest.CaughtUp))
	for name, events := range map[string][]json.RawMessage{"SQL": sql, "after a restart": v.Events()} {
		verify(s, name, events)
		text := units(s, joinedDelta(s, events, "m1"))
		if !slices.Equal(text, units(s, joinedDelta(s, want, "m1"))) {
			s.Errorf("%s: the text is %v", name, text)
		}
		args := slices.IndexFunc(events, func(data json.RawMessage) bool { return parse(s, data).Type == "TOOL_CALL_ARGS" })
		if args < 0 || !slices.Equal(units(s, parse(s, events[args]).Delta), units(s, parse(s, want[6]).Delta)) {
			s.Errorf("%s: the arguments are not as sent: %v", name, types(s, events))
		}
		if len(events) != len(want)-1 { // the two deltas of m1 are one
			s.Errorf("%s: there are %d events", name, len(events))
		}
	}
}

// units decodes a JSON string to UTF-16, as JavaScript does: a lone surrogate stays one.
func units(s *stage, literal []byte) []uint16 {
	s.Helper()
	escapes := map[byte]uint16{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}
	var list []uint16
	for rest := literal[1 : len(literal)-1]; len(rest) > 0; {
		switch {
		case rest[0] != '\\':
			r, n := utf8.DecodeRune(rest)
			list = utf16.AppendRune(list, r)
			rest = rest[n:]
		case rest[1] == 'u':
			unit, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
			s.must(err)
			list = append(list, uint16(unit))
			rest = rest[6:]
		default:
			list = append(list, escapes[rest[1]])
			rest = rest[2:]
		}
	}
	return list
}

func bytesAreCarried(s *stage) {
	live, stream, sql := s.views()
	want := s.emitted()
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream, "SQL": sql} {
		s.checkStarted(name, events[0], want[0])
		same(s, name, events[1:], want[1:])
	}
}
