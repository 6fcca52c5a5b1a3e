package main_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// The first node is paused for longer than its lease, with its run in the middle. When it goes on, the second node has
// ended that run and played r2, and r3 runs on the third.
func staleOwnerIsFenced(s *stage) {
	const lease = 3 * time.Second // as the case's flags have it
	s.agent.Handle("second", []agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"t1","runId":"r3"}`),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"m3","role":"assistant"}`),
		agenttest.Repeat(100_000, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m3","delta":"C"}`, 20*time.Millisecond),
	})
	one, two, three := s.at(0), s.at(1), s.at(2)
	viewers := []*viewer{s.watchAt(one, "t1", raw), s.watchAt(two, "t1", raw), s.watchAt(three, "t1", raw)}
	one.startRun("t1", runRequest{RunID: "r1"})
	for _, v := range viewers {
		s.must(v.until(has(50)))
	}
	paused := time.Now()
	s.must(one.cmd.Process.Signal(syscall.SIGSTOP))
	s.startWhenFree(two, "t1", "r2")
	taken := time.Since(paused)
	s.Logf("measured: %s: another node took the thread %s after its owner was paused", s.Name(), taken)
	if taken > lease+5*time.Second && !underRace {
		s.Errorf("another node took the thread %s after its owner was paused", taken)
	}
	s.must(viewers[1].until(webtest.Ended("r2")))
	if end := two.ended("t1", "r2"); end.State != "finished" {
		s.Errorf("r2 is %+v", end)
	}
	three.startRun("t1", runRequest{AgentID: "second", RunID: "r3"})
	s.must(viewers[2].until(goesOn("r3", 10)))
	log := s.openLog()
	rows, entries, held := s.storedRows("t1", "r1", "r2"), s.entries(log, "t1", 2), s.holder(log, "t1")

	s.must(one.cmd.Process.Signal(syscall.SIGCONT))
	hungUp(s, s.agent, "r1", patience)
	eventually(s, patience, "the paused node gives its run up", func() bool {
		return strings.Contains(one.stderr.String(), "run given up")
	})
	for _, v := range viewers {
		s.must(v.until(goesOn("r3", 100)))
	}
	s.checkHeldBy(log, held)
	for run, before := range rows {
		if after := s.storedRows("t1", run)[run]; after != before {
			s.Errorf("the row of %s was\n%s\nand is\n%s", run, before, after)
		}
	}
	if after := s.entries(log, "t1", 2); !slices.Equal(after, entries) {
		s.Errorf("the log of r1 and r2 had %d entries, and has %d", len(entries), len(after))
	}
	s.checkFreed(one, viewers)
}

// goesOn is a condition of until: the viewer has n events of a run.
func goesOn(run string, n int) func(*webtest.Viewer) bool {
	return func(v *webtest.Viewer) bool { r := v.Run(run); return r != nil && len(r.Events) >= n }
}

// startWhenFree starts a run as soon as the thread takes it. Until then the answer has to be that it is busy.
func (s *stage) startWhenFree(n *node, thread, run string) {
	s.Helper()
	eventually(s, patience, "the thread takes run "+run, func() bool {
		code, answer, err := n.request(http.MethodPost, threadPath(thread)+"/runs", runRequest{RunID: run, Messages: json.RawMessage("[]")})
		if err != nil || code != http.StatusAccepted && !strings.Contains(string(answer), `"thread_busy"`) {
			s.Fatalf("run %s is answered %d %s: %v", run, code, answer, err)
		}
		return code == http.StatusAccepted
	})
}

// openLog opens the stage's live log beside its nodes.
func (s *stage) openLog() *redislog.Log {
	s.Helper()
	dial, err := redislog.ParseURL(s.shared.redis.URL())
	s.must(err)
	log, err := redislog.New(s.ctx, dial, redislog.Options{Prefix: s.prefix, Logger: slog.New(slog.DiscardHandler)})
	s.must(err)
	s.Cleanup(func() { _ = log.Close() })
	return log
}

// entries are those that the log has of the first runs of a thread.
func (s *stage) entries(log *redislog.Log, id thread.ID, runs uint64) (list []string) {
	s.Helper()
	for after := (thread.Cursor{}); ; {
		page, err := log.Read(s.ctx, id, after, 1000)
		s.must(err)
		for _, e := range page {
			if e.Run > runs {
				return list
			}
			list = append(list, fmt.Sprintf("%s %v %s", e.Cursor(), e.Kind, e.Data))
			after = e.Cursor()
		}
		if len(page) == 0 {
			return list
		}
	}
}

// holder is who holds a thread.
func (s *stage) holder(log *redislog.Log, id thread.ID) thread.Lease {
	s.Helper()
	lease, err := log.Holder(s.ctx, id)
	s.must(err)
	return lease
}

// storedRows are the rows of runs of a thread, as they are, by run.
func (s *stage) storedRows(thread string, runs ...string) map[string]string {
	s.Helper()
	db, rows := s.database(), map[string]string{}
	defer func() { _ = db.Close() }()
	for _, run := range runs {
		found := s.column(db, fmt.Sprintf(
			`SELECT row_to_json(r)::text FROM agent_runs AS r WHERE thread_id = '%s' AND run_id = '%s'`, thread, run))
		if len(found) != 1 {
			s.Fatalf("run %s has %d rows", run, len(found))
		}
		rows[run] = found[0]
	}
	return rows
}

// checkHeldBy checks that t1 is still held as it was, for r3, and that each node says so.
func (s *stage) checkHeldBy(log *redislog.Log, held thread.Lease) {
	s.Helper()
	if now := s.holder(log, "t1"); now.Token != held.Token || now.Owner != held.Owner || now.RunID != "r3" {
		s.Errorf("the thread was held by %+v, and is held by %+v", held, now)
	}
	for i, n := range s.all() {
		if st := n.thread("t1").Status; !st.Running || st.RunID != "r3" {
			s.Errorf("node %d says that the thread stands at %+v", i+1, st)
		}
		var p problem
		if code := n.do(http.MethodPost, threadPath("t1")+"/runs", runRequest{RunID: "r4", Messages: json.RawMessage("[]")}, &p); code != http.StatusConflict || p.RunID != "r3" {
			s.Errorf("node %d answers another run with %d %+v", i+1, code, p)
		}
	}
}

// checkFreed stops r3 from the node that was paused, has that play another run, and checks what all viewers have seen.
func (s *stage) checkFreed(one *node, viewers []*viewer) {
	s.Helper()
	var stopped struct {
		Stopped bool
		RunID   string
	}
	if code := one.do(http.MethodPost, threadPath("t1")+"/stop", nil, &stopped); code != http.StatusOK || !stopped.Stopped || stopped.RunID != "r3" {
		s.Errorf("stop is answered %d %+v", code, stopped)
	}
	s.perform(`[{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"},
		{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}]`)
	one.startRun("t1", runRequest{RunID: "r4"})
	one.ended("t1", "r4")
	record := s.next().record("t1", "", "raw")
	for i, v := range viewers {
		s.must(v.until(webtest.Ended("r4")))
		verify(s, "a viewer", v.Events())
		same(s, fmt.Sprintf("viewer %d and the log", i+1), v.Events(), allEvents(record))
		s.checkEnd(v, "r1", "RUN_ERROR", "lost")
	}
	ofR1 := eventsOf(record, "r1")
	if got := text(s, ofR1, "m1"); len(got) < 48 || strings.Trim(got, "A") != "" {
		s.Errorf("r1 says %q", got)
	}
	if got := text(s, eventsOf(record, "r2"), "m2"); got != "B" {
		s.Errorf("r2 says %q", got)
	}
	var states []string
	for _, r := range one.thread("t1").Runs {
		states = append(states, r.RunID+" "+r.State)
	}
	if !slices.Equal(states, []string{"r1 lost", "r2 finished", "r3 stopped", "r4 finished"}) {
		s.Errorf("the runs are recorded as %v", states)
	}
	if n := s.agent.Invocations(); n != 4 { // once for each run
		s.Errorf("the agent was called %d times", n)
	}
}
