package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// Each delay has a thread of its own, and each run an agent of its own, since the first may be stopped before it is called.
// An agent behind HTTP that ignores that its request was closed cannot show: nobody reads what it says. (That an agent
// in the process may ignore it is tested with the runner.)
func stopFreesTheThread(s *stage) {
	s.anyIDs()
	s.agent.Handle("scripted", s.script.Runs[0])
	s.agent.Handle("second", s.script.Runs[1])
	delays := append(rangeMs(0, 50), 200*time.Millisecond)
	if !s.large() {
		delays = []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
			20 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}
	}
	for i, d := range delays {
		s.stopAfter(fmt.Sprintf("stop-%d", i), d)
	}
}

func rangeMs(from, to int) (list []time.Duration) {
	for ms := from; ms <= to; ms++ {
		list = append(list, time.Duration(ms)*time.Millisecond)
	}
	return list
}

// stopAfter starts r1, stops it after a while, and starts r2 at once.
func (s *stage) stopAfter(thread string, d time.Duration) {
	s.Helper()
	v := s.watch(thread, raw)
	defer v.drop()
	s.must(v.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, nil))
	<-time.After(d) // the case asks for this moment
	var stopped struct {
		Stopped bool
		RunID   string
	}
	s.must(v.push("stop", map[string]any{}, &stopped))
	if !stopped.Stopped || stopped.RunID != "r1" {
		s.Errorf("%s: stop was answered %+v", thread, stopped)
	}
	if err := v.push("run", runRequest{AgentID: "second", RunID: "r2", Messages: json.RawMessage("[]")}, nil); err != nil {
		s.Fatalf("%s: after the stop: %v", thread, err)
	}
	s.must(v.until(webtest.Ended("r2"))) // the viewer refuses events of r1 after its terminal
	s.next().ended(thread, "r2")
	verify(s, thread, v.Events())
	for run, want := range map[string]string{"r1": "old ", "r2": "new"} {
		for _, data := range v.Run(run).Events {
			if e := parse(s, data); e.Type == "TEXT_MESSAGE_CONTENT" && string(e.Delta) != fmt.Sprintf("%q", want) {
				s.Errorf("%s: %s says %s", thread, run, e.Delta)
			}
		}
	}
	info := s.next().thread(thread)
	if info.Runs[0].State != "stopped" || info.Runs[1].State != "finished" {
		s.Errorf("%s: the runs are recorded as %+v", thread, info.Runs)
	}
}

// The wait after A has left is one of a hundred further events (2 s), in the short form of twenty.
func stopWorksFromAnywhere(s *stage) {
	a, b, c := s.watchAt(s.at(0), "t1", nil), s.watchAt(s.at(1), "t1", nil), s.watchAt(s.at(2), "t1", raw)
	s.must(a.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, nil))
	s.must(b.until(has(5)))
	a.drop()
	more := 100
	if !s.large() {
		more = 20
	}
	s.must(b.until(has(count(b.Viewer) + more)))
	if st := b.status(); !st.Running {
		s.Fatalf("after its starter left the run stands at %+v", st)
	}
	d := s.watchAt(s.at(2), "t1", map[string]any{"from": "now"})
	var stopped struct {
		Stopped bool
		Cursor  string
	}
	began := time.Now()
	s.must(d.push("stop", map[string]any{}, &stopped))
	hungUp(s, s.agent, "r1", time.Second)
	if !stopped.Stopped {
		s.Errorf("stop was answered %+v", stopped)
	}
	s.Logf("measured: %s: the agent's request was closed %s after stop was sent", s.Name(), time.Since(began))
	for _, v := range []*viewer{b, c} {
		s.must(v.until(webtest.Ended("r1")))
		events := v.Events()
		if e := parse(s, events[len(events)-1]); e.Type != "RUN_FINISHED" || e.Outcome.Type != "cancelled" {
			s.Errorf("the viewer's last event is %s", events[len(events)-1])
		}
		verify(s, "a viewer", events)
	}
	if end := s.next().ended("t1", "r1"); end.State != "stopped" || end.StoppedBy != "127.0.0.1" || end.End != stopped.Cursor {
		s.Errorf("the run is recorded as %+v", end)
	}
	// What is running shows in the log when a node shuts down. Deleting waits until nothing of the thread is left.
	if code := s.next().do(http.MethodDelete, threadPath("t1"), nil, nil); code != http.StatusNoContent {
		s.Errorf("deleting was answered with %d", code)
	}
	for i, log := range s.shutDown() {
		if !nothingRan.MatchString(log) {
			s.Errorf("node %d said %s", i+1, log)
		}
	}
}

// nothingRan is what a node logs that ends while it runs nothing.
var nothingRan = regexp.MustCompile(`msg="shutting down"( node=\S+)? runs=0 `)

// The agent cannot go on after the stop: its request is closed.
func nothingFollowsTheTerminal(s *stage) {
	v := s.watch("t1", nil)
	for i, before := range []int{3, 3, 2, 4} {
		run := fmt.Sprintf("r%d", i+1)
		n := count(v.Viewer)
		s.must(v.push("run", runRequest{RunID: run, Messages: json.RawMessage("[]")}, nil))
		s.must(v.until(has(n + before)))
		var stopped struct{ Stopped bool }
		s.must(v.push("stop", map[string]any{"runId": run}, &stopped))
		if !stopped.Stopped {
			s.Errorf("%s was not stopped", run)
		}
		s.must(v.until(webtest.Ended(run)))
		hungUp(s, s.agent, run, patience)
		s.next().ended("t1", run)
	}
	s.must(v.push("sync", map[string]any{}, nil))
	s.must(v.until(func(v *webtest.Viewer) bool { return v.CaughtUp == 2 })) // nothing came after the last terminal
	for name, events := range map[string][]json.RawMessage{
		"live": v.Events(), "stream": allEvents(s.next().record("t1", "", "raw")), "SQL": allEvents(s.next().record("t1", "", "compact")),
	} {
		verify(s, name, events)
		for _, data := range events {
			if e := parse(s, data); e.Type == "RUN_FINISHED" && e.Outcome.Type != "cancelled" || e.Type == "RUN_ERROR" {
				s.Errorf("%s: a stopped run ends with %s", name, data)
			}
		}
	}
	for _, r := range s.next().thread("t1").Runs {
		if r.State != "stopped" || r.Code != "" {
			s.Errorf("run %s is recorded as %+v", r.RunID, r)
		}
	}
}

func deletionEndsTheRun(s *stage) {
	viewers := []*viewer{s.watch("t1", nil), s.watch("t1", raw)}
	s.run("t1", "r1")
	for _, v := range viewers {
		s.must(v.until(has(20)))
	}
	old := viewers[0].Cursor
	if code := s.next().do(http.MethodDelete, threadPath("t1"), nil, nil); code != http.StatusNoContent {
		s.Fatalf("deleting was answered with %d", code)
	}
	hungUp(s, s.agent, "r1", time.Second)
	for _, v := range viewers {
		s.must(v.until(deleted))
		if err := v.until(webtest.CaughtUp); v.CaughtUp == 0 && !errors.Is(err, webtest.ErrEnded) {
			s.Errorf("after the deletion: %v", err)
		}
	}
	var p problem
	if code := s.next().do(http.MethodGet, threadPath("t1"), nil, &p); code != http.StatusNotFound {
		s.Errorf("the deleted thread is answered with %d", code)
	}
	if code := s.next().do(http.MethodGet, threadPath("t1")+"/events", nil, &p); code != http.StatusNotFound || p.Code != "not_found" {
		s.Errorf("its events are answered with %d %+v", code, p)
	}
	s.checkOnlyATombstone("t1")

	s.perform(`[{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"},
		{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}]`)
	fresh := s.watch("t1", nil)
	s.must(fresh.until(webtest.CaughtUp))
	if count(fresh.Viewer) != 0 {
		s.Errorf("the new thread has %d events", count(fresh.Viewer))
	}
	s.must(fresh.push("run", runRequest{RunID: "r1", Messages: json.RawMessage("[]")}, nil))
	s.must(fresh.until(webtest.Ended("r1")))
	s.next().ended("t1", "r1")
	if got := types(s, fresh.Events()); !slices.Equal(got, []string{"RUN_STARTED", "RUN_FINISHED"}) || fresh.Runs[0].Number < 2 {
		s.Errorf("the new thread has %v as run %d", got, fresh.Runs[0].Number)
	}
	// Who comes back with a position of the old thread is told to forget it.
	back := s.viewer("t1", nil)
	back.Cursor = old
	s.must(back.join())
	s.must(back.until(webtest.CaughtUp))
	if back.Resets != 1 || count(back.Viewer) != 2 {
		s.Errorf("with an old position come %d resets and %d events", back.Resets, count(back.Viewer))
	}
}
