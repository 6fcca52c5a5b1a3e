package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/threadcast/threadcast/web/webtest"
)

// In AG-UI 1.0 no result reaches a run that goes on: the run that calls a tool of the application ends, and the next
// one brings the result (section 9). So the case's one run is two here, cut where it waits.
func callIsAnsweredOnce(s *stage) {
	var list []json.RawMessage
	var form struct{ Runs [][]json.RawMessage }
	s.must(json.Unmarshal([]byte(s.events), &form))
	list = form.Runs[0]
	cut := 0
	for ; !strings.Contains(string(list[cut]), "$waitForToolResult"); cut++ {
	}
	asks := append(list[:cut:cut], json.RawMessage(
		`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success","pendingToolCallIds":["k1"]}}`))
	goes := append([]json.RawMessage{list[0], json.RawMessage(`{"$waitFor":"go"}`)}, list[cut+1:]...)
	second, err := json.Marshal(goes)
	s.must(err)
	first, err := json.Marshal(asks)
	s.must(err)
	s.perform(fmt.Sprintf(`{"runs":[%s,%s]}`, first, strings.ReplaceAll(string(second), `"r1"`, `"{run}"`)))

	tabs := []*viewer{s.watch("t1", nil), s.watch("t1", raw)}
	s.run("t1", "r1")
	s.next().ended("t1", "r1")
	for _, tab := range tabs {
		s.must(tab.until(webtest.Ended("r1")))
		if st := tab.status(); string(st.PendingToolCalls) != `[{"toolCallId":"k1","toolCallName":"pickDate","runId":"r1"}]` {
			s.Errorf("the tab is told that %s waits", st.PendingToolCalls)
		}
	}
	outcomes := make([]error, len(tabs))
	var both sync.WaitGroup
	for i, tab := range tabs {
		both.Go(func() { outcomes[i] = tab.push("run", answer(fmt.Sprint("tab", i)), nil) })
	}
	both.Wait()
	winner := "tab0"
	if outcomes[0] != nil {
		winner = "tab1"
		outcomes[0], outcomes[1] = outcomes[1], outcomes[0]
	}
	s.must(outcomes[0])
	s.late(outcomes[1], winner)
	s.agent.Release("go")
	s.next().ended("t1", winner)
	third := s.watch("t1", nil)
	s.must(third.until(webtest.CaughtUp))
	s.late(third.push("run", answer("third"), nil), winner)
	if n := len(s.agent.Inputs()); n != 2 {
		s.Errorf("the agent was asked %d times", n)
	}
	if got := string(s.agent.Inputs()[1]); !strings.Contains(got, "the day of "+winner) {
		s.Errorf("the agent got %s", got)
	}
	results := 0
	for _, b := range s.next().record("t1", "", "") {
		for _, event := range b.Events {
			results += strings.Count(string(event), "the day of")
		}
	}
	if results != 1 {
		s.Errorf("the history has %d results", results)
	}
	verify(s, "a viewer who comes late", third.Events())
}

// answer is a run that brings a result of k1.
func answer(run string) runRequest {
	return runRequest{RunID: run, Messages: json.RawMessage(fmt.Sprintf(
		`[{"id":"res-%[1]s","role":"tool","toolCallId":"k1","content":"the day of %[1]s"}]`, run))}
}

// late wants err to say that a run has answered.
func (s *stage) late(err error, run string) {
	s.Helper()
	var refused *webtest.Refused
	if !errors.As(err, &refused) || refused.Code != "already_answered" || refused.RunID != run {
		s.Errorf("got %v, want that run %s has answered", err, run)
	}
}
