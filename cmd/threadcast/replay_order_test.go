package main_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// The fourth run ends by killing the node. Its lease is one second, so that it is reclaimed soon.
func badRunDoesNotHideTheThread(s *stage) {
	for _, run := range []string{"r1", "r2", "r3"} {
		s.run("t1", run)
		s.node.ended("t1", run)
	}
	v := s.watch("t1", raw)
	s.run("t1", "r4")
	await(s, s.agent.Mark("crashNode"), patience, "the fourth run is where the node is killed")
	s.must(v.until(func(v *webtest.Viewer) bool { r := v.Run("r4"); return r != nil && len(r.Events) == 3 }))
	s.crash()
	s.node.ended("t1", "r4")
	s.run("t1", "r5")
	s.node.ended("t1", "r5")

	fresh := s.watch("t1", nil)
	s.must(fresh.until(webtest.CaughtUp))
	verify(s, "the whole thread", fresh.Events())
	var runs []string
	for _, r := range fresh.Runs {
		runs = append(runs, r.ID)
	}
	if !slices.Equal(runs, []string{"r1", "r2", "r3", "r4", "r5"}) {
		s.Fatalf("a fresh viewer sees the runs %v", runs)
	}
	for i, want := range []string{"one", "tw", "three", "fo", "five"} {
		if got := text(s, fresh.Events(), "abcde"[i:i+1]); got != want {
			s.Errorf("text %d is %q, not %q", i+1, got, want)
		}
	}
	s.checkEnd(fresh, "r2", "RUN_ERROR", "upstream")
	s.checkEnd(fresh, "r4", "RUN_ERROR", "lost")
	for i, want := range []string{"finished", "failed", "finished", "lost", "finished"} {
		if got := s.node.thread("t1").Runs[i].State; got != want {
			s.Errorf("run %d is recorded as %s, not %s", i+1, got, want)
		}
	}
}

// checkEnd checks how a run ends for a viewer.
func (s *stage) checkEnd(v *viewer, run, typ, code string) {
	s.Helper()
	events := v.Run(run).Events
	if e := parse(s, events[len(events)-1]); e.Type != typ || e.Code != code {
		s.Errorf("run %s ends with %s", run, events[len(events)-1])
	}
}

// The message list is what the reducer of AG-UI 1.0 makes of the events. By its rule R3 results follow the message that
// made the calls, in the order in which they came. (A list of messages of threadcast's own, which could put them in the
// order of the calls as the case wishes, is for a later issue.)
func parallelToolsKeepTheirOrder(s *stage) {
	live, stream, sql := s.views()
	var list []json.RawMessage
	s.must(json.Unmarshal([]byte(s.events), &list))
	want := types(s, list)
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream, "SQL": sql} {
		if got := types(s, events); !slices.Equal(got, want) {
			s.Errorf("%s: the order is %v", name, got)
		}
		for i := 1; i < min(len(events), len(list)); i++ {
			if !sameJSON(s, events[i], list[i]) {
				s.Errorf("%s: event %d is %s, not %s", name, i, events[i], list[i])
			}
		}
		messages, _ := reduce(s, events)
		if got := ids(messages); !slices.Equal(got, []string{"m1", "rc", "ra", "rb", "m2"}) {
			s.Fatalf("%s: the messages are %v", name, got)
		}
		calls := messages[0].ToolCalls
		if len(calls) != 3 || calls[0].ID != "ca" || calls[1].ID != "cb" || calls[2].ID != "cc" {
			s.Errorf("%s: the calls of m1 are %+v", name, calls)
		}
	}
}

func eventsKeepTheirRunID(s *stage) {
	for _, run := range []string{"r1", "r2", "r3"} {
		s.run("t1", run)
		s.node.ended("t1", run)
	}
	for _, options := range []map[string]any{nil, raw} {
		v := s.watch("t1", options)
		s.must(v.until(webtest.CaughtUp))
		if len(v.Runs) != 3 {
			s.Fatalf("there are %d runs", len(v.Runs))
		}
		for i, r := range v.Runs {
			if want := []string{"r1", "r2", "r3"}[i]; r.ID != want {
				s.Errorf("run %d is called %s", i+1, r.ID)
			}
			for _, data := range r.Events {
				e := parse(s, data)
				if e.RunID != "" && e.RunID != r.ID || e.ThreadID != "" && e.ThreadID != "t1" {
					s.Errorf("among the events of %s is %s", r.ID, data)
				}
				if e.MessageID != "" && e.MessageID != "abc"[i:i+1] {
					s.Errorf("message %s is attributed to %s", e.MessageID, r.ID)
				}
			}
		}
	}
}

func repeatedToolStartMakesNoSecondCall(s *stage) {
	live, stream, sql := s.views()
	end := s.node.thread("t1").Runs[0]
	for name, events := range map[string][]json.RawMessage{"live": live, "stream": stream, "SQL": sql} {
		verify(s, name, events)
		messages, _ := reduce(s, events)
		var calls, results int
		arguments := ""
		for _, m := range messages {
			for _, c := range m.ToolCalls {
				calls++
				arguments += c.Function.Arguments
			}
			if m.Role == "tool" {
				results++
			}
		}
		whole := end.State == "finished" && calls == 1 && results == 1 && arguments == `{"q":"x"}`
		refused := end.State == "failed" && end.Code == "bad_event" && calls <= 1
		if !whole && !refused {
			s.Errorf("%s: the run is %s (%s), with %d calls, %d results, arguments %q",
				name, end.State, end.Code, calls, results, arguments)
		}
	}
}

func runIDExecutesOnce(s *stage) {
	s.anyIDs()
	v := s.watch("t1", nil)
	var first, again accepted
	s.must(v.push("run", runRequest{RunID: "r1", Messages: says("u1", "one")}, &first))
	s.must(v.until(webtest.Ended("r1")))
	s.node.ended("t1", "r1")
	s.must(v.push("run", runRequest{RunID: "r1", Messages: says("u2", "something else")}, &again))
	if again != first {
		s.Errorf("the first answer was %+v, and the second %+v", first, again)
	}
	if http := s.node.startRun("t1", runRequest{RunID: "r1", Messages: says("u3", "and again")}); http != first {
		s.Errorf("over HTTP the answer was %+v", http)
	}
	if n := s.agent.Invocations(); n != 1 {
		s.Errorf("the agent was called %d times", n)
	}
	if info := s.node.thread("t1"); len(info.Runs) != 1 {
		s.Errorf("the thread has the runs %+v", info.Runs)
	}
	other := s.watch("t2", nil)
	s.must(other.push("run", runRequest{RunID: "r1", Messages: says("u1", "one")}, nil))
	s.must(other.until(webtest.Ended("r1")))
	if end := s.node.ended("t2", "r1"); end.State != "finished" || s.agent.Invocations() != 2 {
		s.Errorf("on another thread the run is %+v, and the agent was called %d times", end, s.agent.Invocations())
	}
}

// The third run is not in the file: the agent plays the second again, under the id that it is given.
func staleListsOverwriteNothing(s *stage) {
	s.anyIDs()
	for _, run := range []struct{ id, messages string }{
		{"r1", `[{"id":"u1","role":"user","content":"hi"}]`},
		{"r2", `[{"id":"u2","role":"user","content":"again"}]`},
		{"r2b", `[{"id":"u1b","role":"user","content":"hi"},{"id":"u2","role":"user","content":"again"},` +
			`{"id":"u3","role":"user","content":"more"}]`},
	} {
		s.node.startRun("t1", runRequest{RunID: run.id, Messages: json.RawMessage(run.messages)})
		if end := s.node.ended("t1", run.id); end.State != "finished" {
			s.Errorf("run %s is %+v", run.id, end)
		}
	}
	v := s.watch("t1", nil)
	s.must(v.until(webtest.CaughtUp))
	messages, _ := reduce(s, v.Events())
	got := ids(messages)
	if len(got) < 4 || !slices.Equal(got[:4], []string{"u1", "a1", "u2", "a2"}) || !slices.Contains(got, "u3") {
		s.Errorf("the messages are %v", got)
	}
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		s.Errorf("some messages are there twice: %v", got)
	}
	for i, m := range messages[:4] {
		if want := []string{"hi", "first answer", "again", "second answer"}[i]; !strings.HasPrefix(m.Content, want) {
			s.Errorf("message %s is %q, not %q", m.ID, m.Content, want)
		}
	}
	verify(s, "the thread", v.Events())
}

func interruptIsResolved(s *stage) {
	s.run("t1", "r1")
	if end := s.node.ended("t1", "r1"); end.State != "waiting" {
		s.Errorf("the run is %+v", end)
	}
	device := s.watch("t1", nil)
	s.must(device.until(webtest.CaughtUp))
	var joined status
	s.must(json.Unmarshal(device.Channel().Joined(), &joined))
	for _, st := range []status{joined, device.status(), s.node.thread("t1").Status} {
		if st.Running || st.Outcome != "waiting" || !sameJSON(s, st.Pending, []byte(`[{"id":"i1","reason":"approve"}]`)) {
			s.Errorf("after the interrupt the device is told %+v, pending %s", st, st.Pending)
		}
	}
	resume := json.RawMessage(`[{"interruptId":"i1","status":"resolved","payload":false}]`)
	s.must(device.push("run", runRequest{RunID: "r2", Messages: json.RawMessage("[]"), Resume: resume}, nil))
	s.must(device.until(webtest.Ended("r2")))
	s.node.ended("t1", "r2")
	var input struct{ Resume json.RawMessage }
	s.must(json.Unmarshal(s.agent.Inputs()[1], &input))
	if !sameJSON(s, input.Resume, resume) {
		s.Errorf("the agent got %s", input.Resume)
	}
	again := s.watch("t1", nil)
	s.must(again.until(webtest.CaughtUp))
	if st := again.status(); st.Running || st.Outcome != "finished" || string(st.Pending) != "[]" {
		s.Errorf("after the answer the device is told %+v, pending %s", st, st.Pending)
	}
	// The interrupt is past because its run is not the last one.
	if len(again.Runs) != 2 || again.Runs[0].ID != "r1" || again.Runs[1].ID != "r2" {
		s.Errorf("the replay has the runs %v", again.Runs)
	}
	s.checkEnd(again, "r2", "RUN_FINISHED", "")
}

// The silence is 10 s instead of 3 minutes, and the lease 1 s instead of 10 s: still ten leases long.
func silenceIsNotDeath(s *stage) {
	silence := 10 * time.Second
	if !full {
		silence = 4 * time.Second
	}
	s.perform(strings.Replace(s.events, "180000", encodeMs(silence), 1))
	viewers := []*viewer{s.watch("t1", nil), s.watch("t1", nil)}
	s.run("t1", "r1")
	for _, v := range viewers {
		s.must(v.until(has(4)))
	}
	asks := time.NewTicker(250 * time.Millisecond)
	defer asks.Stop()
	early := s.watch("t1", nil)
	s.must(early.until(has(4)))
	for i := range int(silence/(250*time.Millisecond)) - 2 {
		<-asks.C
		if st := s.node.thread("t1").Status; !st.Running {
			s.Fatalf("in the silence the API says %+v", st)
		}
		if st := viewers[0].status(); !st.Running || st.RunID != "r1" {
			s.Fatalf("in the silence the viewer is told %+v", st)
		}
		if i%6 == 0 {
			var p problem
			code := s.node.do(http.MethodPost, threadPath("t1")+"/runs", runRequest{RunID: "second", Messages: json.RawMessage("[]")}, &p)
			if code != http.StatusConflict || p.Code != "thread_busy" {
				s.Errorf("a second run is answered %d %+v", code, p)
			}
		}
	}
	for _, v := range append(viewers, early) {
		s.must(v.until(webtest.Ended("r1")))
		verify(s, "a viewer", v.Events())
	}
	if n := s.agent.Invocations(); n != 1 {
		s.Errorf("the agent was called %d times", n)
	}
}

func encodeMs(d time.Duration) string {
	data, _ := json.Marshal(d.Milliseconds())
	return string(data)
}

func busyIsTyped(s *stage) {
	a, b := s.watch("t1", nil), s.watch("t1", nil)
	s.must(a.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, nil))
	s.must(a.until(has(1)))
	second := runRequest{RunID: "r2", Messages: json.RawMessage("[]")}
	var onSocket, onHTTP problem
	s.must(json.Unmarshal(b.refused("run", second).Response, &onSocket))
	if code := s.node.do(http.MethodPost, threadPath("t1")+"/runs", second, &onHTTP); code != http.StatusConflict {
		s.Errorf("HTTP answers %d", code)
	}
	for _, p := range []problem{onSocket, onHTTP} {
		if p.Code != "thread_busy" || p.RunID != "r1" || p.AgeMs == nil || *p.AgeMs < 0 || *p.AgeMs > 60_000 || p.Message == "" {
			s.Errorf("the answer is %+v", p)
		}
	}
	if onSocket.Message != onHTTP.Message {
		s.Errorf("the socket says %q and HTTP %q", onSocket.Message, onHTTP.Message)
	}
	s.agent.Release("go")
	s.must(a.until(webtest.Ended("r1")))
	if end := s.node.ended("t1", "r1"); end.State != "finished" || s.agent.Invocations() != 1 {
		s.Errorf("the first run is %+v, and the agent was called %d times", end, s.agent.Invocations())
	}
}
