package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestAStopIsAnsweredAfterTheLastEvents(t *testing.T) {
	for _, mode := range []string{"run", "run without a name", "connect", "connect without a name"} {
		t.Run(mode, func(t *testing.T) {
			agent := agenttest.New(held(3))
			s := open(t, plan{agent: agent})
			s.start("t", "r1")
			<-agent.Mark("held")
			p := s.runs("t", "r1")
			if strings.HasPrefix(mode, "connect") {
				p = s.connects("t", nil)
				p.renew("r1")
			}
			tape := newTape()
			c, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: p.path(), Dial: s.dial, OnFrame: tape.record})
			s.must(err)
			t.Cleanup(c.Close)
			p.client = c
			s.must(p.rejoin(within(t)))
			s.seen(p, 5)
			payload := `{"run_id":"r1"}`
			if strings.HasSuffix(mode, "without a name") {
				payload = `{}`
			}
			answer, err := p.channel.Push(within(t), "stop_run", payload)
			s.must(err)
			if string(answer) != `{"stopped":true,"runId":"r1"}` {
				t.Errorf("answered %s", answer)
			}
			finished := false
			for _, frame := range tape.all() {
				finished = finished || strings.Contains(frame, "RUN_FINISHED")
				if strings.Contains(frame, `"stopped":true`) && !finished {
					t.Error("the answer came before the end")
				}
			}
			s.must(p.finish(within(t)))
			if p.types() != said1 || !strings.Contains(p.events[len(p.events)-1], `"outcome":{"type":"cancelled"}`) {
				t.Errorf("got %s", p.types())
			}
		})
	}
}

func TestAStopIsCarriedOutThoughItsSocketCloses(t *testing.T) {
	for i := range 8 {
		agent := agenttest.New(held(3))
		s := open(t, plan{agent: agent})
		s.start("t", "r1")
		<-agent.Mark("held")
		p := s.runs("t", "r1")
		c := s.client(webtest.Options{Path: p.path()})
		if i%2 == 0 {
			p.client = c
			s.must(p.rejoin(within(t)))
			send(t, c, fmt.Sprintf(`[%q,"9","thread:t","stop_run",{"run_id":"r1"}]`, p.channel.JoinRef()))
		} else { // before the join was answered
			send(t, c, `["8","8","thread:t","phx_join",{"stream_mode":"run","run_id":"r1"}]`,
				`["8","9","thread:t","stop_run",{"run_id":"r1"}]`)
		}
		c.Close()
		s.saved("t", "r1")
		run, err := s.past.FindRun(t.Context(), "t", "r1")
		if err != nil || run.End.Outcome != thread.OutcomeStopped {
			t.Fatalf("it ended as %s, %v", run.End.Outcome, err)
		}
		s.start("t", "r2") // the thread is free
		agent.Release("go")
	}
}

func TestAStopOfAnotherRunStopsNothing(t *testing.T) {
	agent := agenttest.New(said(1, 0), held(3))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.start("t", "r2")
	<-agent.Mark("held")
	for name, p := range map[string]*page{"run": s.runs("t", "r2"), "old run": s.runs("t", "r1"), "connect": s.connects("t", nil)} {
		s.opened(p)
		for _, run := range []string{"r1", "other", "r2"} {
			if run == "r2" && name != "old run" { // whose ticket is for r1 alone
				continue
			}
			answer, err := p.channel.Push(within(t), "stop_run", `{"run_id":"`+run+`"}`)
			if err != nil || string(answer) != `{"stopped":false}` && string(answer) != `{"stopped":false,"runId":"`+run+`"}` {
				t.Errorf("%s, %s: %s, %v", name, run, answer, err)
			}
		}
	}
	if n := s.runner.Active(); n != 1 {
		t.Errorf("%d runs are active", n)
	}
	agent.Release("go")
}

func TestAStopThatTakesLongIsAnsweredAllTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		agent := agenttest.New(held(3))
		agent.IgnoreCancel = time.Hour
		s := open(t, plan{pipe: true, agent: agent})
		s.start("t", "r1")
		<-agent.Mark("held")
		p := s.opened(s.runs("t", "r1"))
		s.seen(p, 5)
		began := time.Now()
		if _, err := p.channel.Push(within(t), "stop_run", `{"run_id":"r1"}`); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		s.must(p.finish(within(t)))
		if p.types() != said1 {
			t.Errorf("got %s", p.types())
		}
		agent.Release("go")
	})
}
