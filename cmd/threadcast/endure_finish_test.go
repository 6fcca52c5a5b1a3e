package main_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestRunsThatFinishTogetherAreAllPersisted lets 100 runs finish at the same moment while others page through the history:
// with one file and one writer nothing may fail because the database is busy (F121, F122), and each run gets its one
// terminal (F074). Then the process is killed, and all of it must still be there.
func TestRunsThatFinishTogetherAreAllPersisted(t *testing.T) {
	const runs = 100
	texts := sized(200, 50)
	agents := agenttest.NewServer(t)
	agents.Handle("burst", []agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`),
		agenttest.Repeat(texts, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"#{i};"}`, 0),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`),
		agenttest.WaitFor("finish"),
		agenttest.Emit(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`),
	})
	n := start(t, "--agent", "burst=agui:"+agents.URL("burst"), "--log-level", "warn")
	name := func(i int) string { return fmt.Sprintf("burst %d", i) }
	forEach(runs, 8, func(i int) {
		if err := n.tryRun(name(i), load("r", 0, 0, 0, false)); err != nil {
			t.Error(err)
		}
	})
	eventually(t, time.Minute, "all agents wait", func() bool { return agents.Waiting("finish") == runs })

	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() { n.browse(done, name(i)) })
	}
	agents.Release("finish")
	forEach(runs, 8, func(i int) { n.awaitEnding(name(i), "finished") })
	close(done)
	readers.Wait()

	var ends []time.Time
	for i := range runs {
		ends = append(ends, n.checkBurst(name(i), texts)...)
	}
	if len(ends) != runs {
		t.Fatalf("%d runs have ended, not %d", len(ends), runs)
	}
	n.kill()
	again := n.restart()
	for i := range runs {
		again.checkBurst(name(i), texts)
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	measured(t, "%d runs of %d events ended within %s, all persisted", runs, texts+4, last.Sub(first))
}

// browse pages through the history until done is closed.
func (n *node) browse(done <-chan struct{}, thread string) {
	for {
		select {
		case <-done:
			return
		default:
		}
		for _, path := range []string{"/api/threads", threadPath(thread), threadPath(thread) + "/events"} {
			if code, data, err := n.request(http.MethodGet, path, nil); err != nil || code != http.StatusOK {
				n.t.Errorf("%s was answered %d %.200s %v", path, code, data, err)
				return
			}
		}
	}
}

// awaitEnding waits until the thread's latest run has ended in this state and is in the history. It may be called from any goroutine.
func (n *node) awaitEnding(thread, state string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		runs, err := n.endings(thread)
		if err != nil {
			n.t.Error(err)
			return
		}
		if len(runs) > 0 && runs[len(runs)-1].State == state && runs[len(runs)-1].End != "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			n.t.Errorf("the runs of thread %s are %+v; the last is not %s", thread, runs, state)
			return
		}
	}
}

// checkBurst checks what is recorded of a thread's one run and returns when it ended.
func (n *node) checkBurst(thread string, texts int) []time.Time {
	n.t.Helper()
	runs, err := n.endings(thread)
	if err != nil || len(runs) != 1 || runs[0].State != "finished" || runs[0].End != fmt.Sprintf("1-%d", texts+5) {
		n.t.Errorf("thread %s has the runs %+v, %v", thread, runs, err)
		return nil
	}
	events, err := n.eventsOf(thread, 1, "compact")
	if err != nil || len(events) != 5 || len(terminals(events)) != 1 {
		n.t.Errorf("thread %s has the events %.500v, %v", thread, events, err)
	}
	return []time.Time{runs[0].EndedAt}
}
