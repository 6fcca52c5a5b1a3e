package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// Where there is one node, the viewers of all three are its own, and come back to it when it is up again.
func crashLosesNothingThatWasSeen(s *stage) {
	const lease = 2 * time.Second // as the case's flags have it
	viewers := []*viewer{s.watchAt(s.at(0), "t1", raw), s.watchAt(s.at(1), "t1", raw), s.watchAt(s.at(2), "t1", raw)}
	s.at(0).startRun("t1", runRequest{RunID: "r1"})
	for _, v := range viewers {
		s.must(v.until(has(300)))
	}
	killed := time.Now()
	s.crash()
	for i, v := range viewers {
		if i == 0 || len(s.others) == 0 {
			s.must(v.joinAt(s.at(1), nil))
		}
		s.must(v.until(webtest.Ended("r1")))
	}
	s.Logf("measured: %s: the terminal was there %s after the kill", s.Name(), time.Since(killed))
	s.perform(`[{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"},
		{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}]`)
	s.at(2).startRun("t1", runRequest{RunID: "r2"})
	if took := time.Since(killed); took > lease+5*time.Second && !underRace {
		s.Errorf("the thread took the next run %s after the kill", took)
	}
	s.next().ended("t1", "r2")
	kept := eventsOf(s.next().record("t1", "", "raw"), "r1")
	n := 0
	for i, v := range viewers {
		same(s, fmt.Sprintf("viewer %d", i), v.Run("r1").Events, kept)
		s.checkEnd(v, "r1", "RUN_ERROR", "lost")
		verify(s, "the run", v.Run("r1").Events)
		for _, data := range v.Run("r1").Events {
			if parse(s, data).Type == "TEXT_MESSAGE_CONTENT" {
				n++
			}
		}
		if got := text(s, v.Run("r1").Events, "m1"); got != numbers(n, " ") || n < 298 {
			s.Errorf("viewer %d has %d deltas, and the text %.200q", i, n, got)
		}
		n = 0
	}
	runs := s.next().thread("t1").Runs
	if len(runs) != 2 || runs[0].State != "lost" || runs[1].State != "finished" {
		s.Errorf("the runs are recorded as %+v", runs)
	}
	if got := text(s, eventsOf(s.next().record("t1", "", "compact"), "r1"), "m1"); got != text(s, kept, "m1") {
		s.Errorf("the history has the text %.200q", got)
	}
	if n := s.agent.Invocations(); n != 2 { // once for each run
		s.Errorf("the agent was called %d times", n)
	}
}

// Behind HTTP a panic of the agent is a connection that is cut. A panic in the process needs an agent in the process,
// which the binary cannot have: that part is played on the same runner without the binary around it.
func brokenAgentHarmsNobody(s *stage) {
	v := s.watch("t1", nil)
	s.run("t1", "r1")
	s.must(v.until(webtest.Ended("r1")))
	events := v.Run("r1").Events
	checkBroken(s, events)
	s.next().ended("t1", "r1")
	stored := allEvents(s.next().record("t1", "", "compact"))
	if got := text(s, stored, "m1"); got != "half" {
		s.Errorf("stored is the text %q", got)
	}
	s.run("t1", "r2")
	s.next().ended("t1", "r2")
	if slices.ContainsFunc(s.all(), (*node).gone) {
		s.Error("a node has ended")
	}
	s.panicInProcess()
}

// checkBroken checks how a run ends whose agent breaks down.
func checkBroken(s *stage, events []json.RawMessage) {
	s.Helper()
	verify(s, "the broken run", events)
	last := events[len(events)-1]
	e := parse(s, last)
	if e.Type != "RUN_ERROR" || e.Message == "" {
		s.Errorf("the run ends with %s", last)
	}
	for _, secret := range []string{"boom", "goroutine", ".go:", "127.0.0.1", "panic"} {
		if strings.Contains(e.Message, secret) {
			s.Errorf("the error says %q to everybody: %s", secret, last)
		}
	}
}

// panicInProcess plays the case with an agent that panics in the process of the runner.
func (s *stage) panicInProcess() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	file, err := sqlitefile.Open(ctx, filepath.Join(s.TempDir(), "panic.db"), sqlitefile.Options{})
	s.must(err)
	defer func() { _ = file.Close() }()
	past, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{Logger: quiet})
	s.must(err)
	live := memlog.New()
	defer func() { _ = live.Close() }()
	h := hub.New(live, past, hub.Config{Compact: runner.Compact})
	defer h.Close()
	agent := agenttest.New(s.script.Runs...)
	r := runner.New(runner.Stores{Log: live, Heads: live, Leaser: live, Owners: live, History: past, Records: past, Backlog: past, Line: past, Story: past},
		map[string]runner.Agent{"panics": agent}, "panics", runner.Config{Logger: quiet})
	for _, run := range []thread.RunID{"r1", "r2"} {
		_, err := r.Run(ctx, thread.Request{Thread: "t1", RunID: run, Input: func(id thread.RunID) ([]byte, error) {
			return fmt.Appendf(nil, `{"threadId":"t1","runId":%q,"state":{},"messages":[],"tools":[],"context":[],"forwardedProps":{}}`, id), nil
		}})
		s.must(err)
		eventually(s, patience, "the run has ended", func() bool {
			found, err := past.FindRun(ctx, "t1", run)
			return err == nil && !found.Ended.IsZero()
		})
	}
	if n := agent.Invocations(); n != 2 {
		s.Errorf("the agent was called %d times", n)
	}
	first, err := past.NextRun(ctx, "t1", 0)
	s.must(err)
	var events []json.RawMessage
	for _, e := range first.Events {
		events = append(events, e.Data)
	}
	checkBroken(s, events)
	if got := text(s, events, "m1"); got != "half" {
		s.Errorf("stored is the text %q", got)
	}
}
