package main_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/threadcast/threadcast/web/webtest"
)

// The fourth run ends by killing its node. Its lease is short, so that it is reclaimed soon.
func badRunDoesNotHideTheThread(s *stage) {
	for _, run := range []string{"r1", "r2", "r3"} {
		s.run("t1", run)
		s.next().ended("t1", run)
	}
	v := s.watchAt(s.at(1), "t1", raw)
	s.at(0).startRun("t1", runRequest{RunID: "r4"})
	await(s, s.agent.Mark("crashNode"), patience, "the fourth run is where the node is killed")
	s.must(v.until(func(v *webtest.Viewer) bool { r := v.Run("r4"); return r != nil && len(r.Events) == 3 }))
	s.crash()
	s.next().ended("t1", "r4")
	s.run("t1", "r5")
	s.next().ended("t1", "r5")

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
		if got := s.next().thread("t1").Runs[i].State; got != want {
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
		s.next().ended("t1", run)
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
	end := s.next().thread("t1").Runs[0]
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
	s.next().ended("t1", "r1")
	s.must(v.push("run", runRequest{RunID: "r1", Messages: says("u2", "something else")}, &again))
	if again != first {
		s.Errorf("the first answer was %+v, and the second %+v", first, again)
	}
	if http := s.next().startRun("t1", runRequest{RunID: "r1", Messages: says("u3", "and again")}); http != first {
		s.Errorf("over HTTP the answer was %+v", http)
	}
	if n := s.agent.Invocations(); n != 1 {
		s.Errorf("the agent was called %d times", n)
	}
	if info := s.next().thread("t1"); len(info.Runs) != 1 {
		s.Errorf("the thread has the runs %+v", info.Runs)
	}
	other := s.watch("t2", nil)
	s.must(other.push("run", runRequest{RunID: "r1", Messages: says("u1", "one")}, nil))
	s.must(other.until(webtest.Ended("r1")))
	if end := s.next().ended("t2", "r1"); end.State != "finished" || s.agent.Invocations() != 2 {
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
		s.next().startRun("t1", runRequest{RunID: run.id, Messages: json.RawMessage(run.messages)})
		if end := s.next().ended("t1", run.id); end.State != "finished" {
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
