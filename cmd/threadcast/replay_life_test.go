package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

func interruptIsResolved(s *stage) {
	s.run("t1", "r1")
	if end := s.next().ended("t1", "r1"); end.State != "waiting" {
		s.Errorf("the run is %+v", end)
	}
	device := s.watch("t1", nil)
	s.must(device.until(webtest.CaughtUp))
	var joined status
	s.must(json.Unmarshal(device.Channel().Joined(), &joined))
	for _, st := range []status{joined, device.status(), s.next().thread("t1").Status} {
		if st.Running || st.Outcome != "waiting" || !sameJSON(s, st.Pending, []byte(`[{"id":"i1","reason":"approve"}]`)) {
			s.Errorf("after the interrupt the device is told %+v, pending %s", st, st.Pending)
		}
	}
	resume := json.RawMessage(`[{"interruptId":"i1","status":"resolved","payload":false}]`)
	s.must(device.push("run", runRequest{RunID: "r2", Messages: json.RawMessage("[]"), Resume: resume}, nil))
	s.must(device.until(webtest.Ended("r2")))
	s.next().ended("t1", "r2")
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

// The silence is 20 s instead of 3 minutes, and the lease 2 s instead of 10 s: still ten leases long, in the short form
// four.
func silenceIsNotDeath(s *stage) {
	silence := 20 * time.Second
	if !s.large() {
		silence = 8 * time.Second
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
		if st := s.next().thread("t1").Status; !st.Running {
			s.Fatalf("in the silence the API says %+v", st)
		}
		if st := viewers[0].status(); !st.Running || st.RunID != "r1" {
			s.Fatalf("in the silence the viewer is told %+v", st)
		}
		if i%6 == 0 {
			var p problem
			code := s.next().do(http.MethodPost, threadPath("t1")+"/runs", runRequest{RunID: "second", Messages: json.RawMessage("[]")}, &p)
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
	if code := s.next().do(http.MethodPost, threadPath("t1")+"/runs", second, &onHTTP); code != http.StatusConflict {
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
	if end := s.next().ended("t1", "r1"); end.State != "finished" || s.agent.Invocations() != 1 {
		s.Errorf("the first run is %+v, and the agent was called %d times", end, s.agent.Invocations())
	}
}
