package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// opened joins a page, which must succeed.
func (s *site) opened(p *page) *page {
	s.Helper()
	s.must(p.join(within(s.T)))
	return p
}

// whole follows a page to its end.
func (s *site) whole(p *page) *page {
	s.Helper()
	s.opened(p)
	if err := p.finish(within(s.T)); err != nil {
		s.Fatalf("%v, at %s after %s", err, p.cursor, p.types())
	}
	return p
}

// seen follows a page until so many events have come.
func (s *site) seen(p *page, n int) {
	s.Helper()
	s.must(p.follow(within(s.T), func() bool { return len(p.events) >= n }))
}

// said1 are the types of a run of [said].
const said1 = "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT... TEXT_MESSAGE_END RUN_FINISHED"

func TestARunComesWholeFromItsFirstEvent(t *testing.T) {
	agent := agenttest.New(held(3), said(5, 0))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held") // so that events were there before the join
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 5)
	agent.Release("go")
	s.must(p.finish(within(t)))
	if p.types() != said1 || p.messages() != s.truth("t") {
		t.Errorf("got %s: %s", p.types(), p.messages())
	}
	for i, event := range p.events {
		if want := fmt.Sprintf(`"metadata":{"cpki_event_id":"1-%d","cpki_event_seq":%d}`, i+1, i+1); !strings.Contains(event, want) {
			t.Errorf("event %d lacks %s: %s", i+1, want, event)
		}
	}
	if last := p.events[len(p.events)-1]; !strings.Contains(last, `"threadId":"t","runId":"r1"`) {
		t.Errorf("the end names no run: %s", last)
	}
}

func TestARunMemberGetsNothingOfOtherRuns(t *testing.T) {
	s := open(t, plan{})
	for _, run := range []string{"r1", "r2", "r3"} {
		s.finish("t", run)
	}
	p := s.whole(s.runs("t", "r2")) // which fails for a foreign run
	if p.types() != strings.ReplaceAll(said1, "...", "") {
		t.Errorf("got %s", p.types())
	}
}

func TestARunThatIsNotKnownFails(t *testing.T) {
	s := open(t, plan{})
	p := s.whole(s.runs("t", "r1"))
	if p.types() != "RUN_ERROR" || !strings.Contains(p.failed, `"r1"`) {
		t.Errorf("got %s, %q", p.types(), p.failed)
	}
}

func TestARunThatWaitsForItsTurnComesWhenItBegins(t *testing.T) {
	agent := agenttest.New(held(3), said(5, 0))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	s.queue("t", "r2")
	p := s.opened(s.runs("t", "r2"))
	agent.Release("go")
	s.must(p.finish(within(t)))
	whole := strings.NewReplacer("...", "") // it may have come from the record, in fewer events
	if whole.Replace(p.types()) != whole.Replace(said1) {
		t.Errorf("got %s", p.types())
	}
}

// queue lets a run wait for its turn.
func (s *site) queue(id, run string) {
	s.Helper()
	response, body := s.request("POST", "/api/threads/"+id+"/runs", `{"runId":"`+run+`","messages":[],"onBusy":"enqueue"}`)
	if response.StatusCode != 202 || !strings.Contains(body, "queued") {
		s.Fatalf("%d %s", response.StatusCode, body)
	}
}

func TestConnectingTellsWhatThereIs(t *testing.T) {
	s := open(t, plan{})
	unknown := s.whole(s.connects("t", nil))
	if len(unknown.events) != 0 || unknown.cursor != "" {
		t.Errorf("of an unknown thread: %s, %q", unknown.types(), unknown.cursor)
	}
	s.finish("t", "r1")
	s.finish("t", "r2")
	compact := strings.ReplaceAll(said1, "...", "")
	first := s.whole(s.connects("t", nil))
	if first.types() != compact+" "+compact || first.messages() != s.truth("t") {
		t.Errorf("at first: %s: %s", first.types(), first.messages())
	}
	if again := s.whole(s.connects("t", first)); len(again.events) != len(first.events) || again.cursor != first.cursor {
		t.Errorf("again: %s", again.types())
	}
	s.finish("t", "r3")
	if later := s.whole(s.connects("t", first)); later.types() != compact+" "+compact+" "+compact {
		t.Errorf("later: %s", later.types())
	}
}

func TestAConnectedPageFollowsUntilNothingRuns(t *testing.T) {
	agent := agenttest.New(held(3), held(3), said(5, 0))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	s.queue("t", "r2")
	p := s.opened(s.connects("t", nil))
	s.must(p.follow(within(t), func() bool { return p.replayed }))
	if p.idle || !strings.HasSuffix(p.types(), "TEXT_MESSAGE_CONTENT...") {
		t.Errorf("when the history has come: %s, idle %t", p.types(), p.idle)
	}
	agent.Release("go")
	<-agent.Mark("held")
	s.must(p.follow(within(t), func() bool { return strings.Count(p.types(), "RUN_STARTED") == 2 }))
	if p.idle {
		t.Error("it is told that nothing runs although another run was waiting")
	}
	agent.Release("go")
	s.must(p.finish(within(t)))
	if p.types() != said1+" "+said1 || p.messages() != s.truth("t") {
		t.Errorf("got %s", p.types())
	}
}

// failing is a run whose agent fails in the middle of a text.
func failing(n int) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, 0),
		agenttest.Mark("said"), agenttest.WaitFor("fail"),
		agenttest.Fail(&runner.AgentError{Code: "agent_ill", Message: "The agent is ill."})}
}

func TestFailuresOfLongAgoRaiseNoAlarm(t *testing.T) {
	agent := agenttest.New(failing(3))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("said")
	middle := s.opened(s.connects("t", nil))
	s.seen(middle, 4)
	mine := s.runs("t", "r1")
	agent.Release("fail")
	s.saved("t", "r1")
	s.must(middle.finish(within(t)))
	if middle.failed != "The agent is ill." {
		t.Errorf("who saw it happen has the alarm %q", middle.failed)
	}
	if s.whole(mine); mine.failed != "The agent is ill." {
		t.Errorf("who began the run has the alarm %q", mine.failed)
	}
	late := s.whole(s.connects("t", nil))
	if late.failed != "" || !strings.HasSuffix(late.types(), "RUN_ERROR") || late.messages() != s.truth("t") {
		t.Errorf("who comes later has the alarm %q after %s", late.failed, late.types())
	}
	if last := late.events[len(late.events)-1]; !strings.Contains(last, `"code":"abort"`) || !strings.Contains(last, "is ill") {
		t.Errorf("the old failure is told as %s", last)
	}
	if body := s.stored("t"); !strings.Contains(body, `"code":"agent_ill"`) {
		t.Errorf("the record was changed: %s", body)
	}
}

// behind is a directory that does not know yet that a thread's latest run has ended.
type behind struct{ web.Directory }

func (d behind) Thread(ctx context.Context, id thread.ID) (thread.Thread, error) {
	t, err := d.Directory.Thread(ctx, id)
	if t.Latest != nil {
		latest := *t.Latest
		latest.Ended, t.Latest = time.Time{}, &latest
	}
	return t, err
}

func TestAFailureOfAMomentAgoRaisesNoAlarm(t *testing.T) {
	agent := agenttest.New(failing(3))
	s := open(t, plan{agent: agent, parts: func(p *web.Parts) { p.Directory = behind{p.Directory} }})
	s.start("t", "r1")
	agent.Release("fail")
	for st := (thread.Status{}); st.Latest == nil; {
		var err error
		st, err = s.runner.Status(within(t), "t")
		s.must(err)
	}
	if late := s.whole(s.connects("t", nil)); late.failed != "" || !strings.HasSuffix(late.types(), "RUN_ERROR") {
		t.Errorf("who comes later has the alarm %q after %s", late.failed, late.types())
	}
}

// stored is the record of a thread.
func (s *site) stored(id string) string {
	_, body := s.request("GET", "/api/threads/"+id+"/events", "")
	return body
}

func TestAFailureIsNewsToWhoWasInTheMiddleOfItsRun(t *testing.T) {
	agent := agenttest.New(failing(3))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("said")
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 4)
	s.must(p.cut(within(t)))
	agent.Release("fail")
	s.saved("t", "r1")
	p.renew("")
	s.must(p.join(within(t)))
	s.must(p.finish(within(t)))
	if p.failed != "The agent is ill." || p.messages() != s.truth("t") {
		t.Errorf("the alarm is %q after %s", p.failed, p.types())
	}
}

func TestAFailureWaitsUntilTheClientHasDealtWithWhatCameBefore(t *testing.T) {
	for n, want := range map[int]time.Duration{2: 50 * time.Millisecond, 400: 250 * time.Millisecond, 5000: time.Second} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				agent := agenttest.New(failing(n))
				s := open(t, plan{pipe: true, agent: agent})
				s.start("t", "r1")
				<-agent.Mark("said")
				agent.Release("fail")
				s.saved("t", "r1")
				p := s.opened(s.connects("t", nil))
				p.cursor = "1-1" // in the middle of the run
				p.renew("")
				s.opened(p)
				s.seen(p, 1)
				began := time.Now()
				s.must(p.finish(within(t)))
				if took := time.Since(began); took < want || took > want+50*time.Millisecond {
					t.Errorf("it came after %v", took)
				}
				if p.failed == "" {
					t.Error("it did not come")
				}
			})
		})
	}
}

// On a slow line the error could catch up with what went before.
func TestAFailureWaitsUntilWhatCameBeforeHasArrived(t *testing.T) {
	bubble(t, func(t *testing.T) {
		agent := agenttest.New(failing(2))
		s := open(t, plan{pipe: true, agent: agent})
		s.start("t", "r1")
		<-agent.Mark("said")
		p := s.runs("t", "r1")
		c, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: p.path(), Dial: s.dial, Mute: true})
		s.must(err)
		p.client = c
		s.must(p.rejoin(within(t)))
		s.seen(p, 4)
		began := time.Now()
		agent.Release("fail")
		s.must(p.finish(within(t)))
		if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("it came after %v, though nothing says that what came before has arrived", took)
		}
	})
}

func TestAStopIsNoFailure(t *testing.T) {
	agent := agenttest.New(held(3))
	s := open(t, plan{agent: agent, runner: runner.Config{StopTerminal: runner.StopError}})
	s.start("t", "r1")
	<-agent.Mark("held")
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 5)
	_, err := s.runner.Stop(t.Context(), "t", "r1", "somebody")
	s.must(err)
	s.must(p.finish(within(t)))
	if p.types() != said1 || p.failed != "" {
		t.Errorf("got %s, %q", p.types(), p.failed)
	}
	if later := s.whole(s.connects("t", nil)); !strings.HasSuffix(later.types(), "RUN_FINISHED") {
		t.Errorf("later: %s", later.types())
	}
}

func TestADeletedThreadEndsItsPages(t *testing.T) {
	agent := agenttest.New(said(3, 0), held(3), said(3, 0))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.start("t", "r2")
	<-agent.Mark("held")
	run, viewer := s.opened(s.runs("t", "r2")), s.opened(s.connects("t", nil))
	s.seen(run, 5)
	s.must(viewer.follow(within(t), func() bool { return viewer.replayed }))
	s.must(s.runner.Delete(t.Context(), "t", "somebody"))
	s.must(run.finish(within(t)))
	s.must(viewer.finish(within(t)))
	for name, p := range map[string]*page{"run": run, "viewer": viewer} {
		if !p.done {
			t.Errorf("%s: %s", name, p.types())
		}
	}
	s.finish("t", "r3")
	again := s.whole(s.connects("t", viewer)) // its position is in a thread that is no more
	if again.messages() != s.truth("t") {
		t.Errorf("the new thread: %s", again.messages())
	}
}

// slowStatus is a runner whose first answers about a thread are those of another moment.
type slowStatus struct {
	web.Runs
	answers chan thread.Status
}

func (r slowStatus) Status(ctx context.Context, id thread.ID) (thread.Status, error) {
	select {
	case st := <-r.answers:
		return st, nil
	default:
		return r.Runs.Status(ctx, id)
	}
}

func TestAPageIsToldThatNothingRunsThoughNoEventTells(t *testing.T) {
	for name, st := range map[string]thread.Status{
		"its end is not known yet":        {Running: true, RunID: "r1", Cursor: thread.Cursor{Run: 1, Seq: 9}},
		"its owner is gone":               {RunID: "r1", Cursor: thread.Cursor{Run: 1}},
		"another is about to begin":       {Queue: []thread.Queued{{RunID: "r2"}}},
		"the log is ahead of what it has": {RunID: "r1", Cursor: thread.Cursor{Run: 1, Seq: 99}, Latest: &thread.Run{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				answers := make(chan thread.Status, 3)
				s := open(t, plan{pipe: true, parts: func(p *web.Parts) { p.Runs = slowStatus{p.Runs, answers} }})
				s.finish("t", "r1")
				p := s.connects("t", nil)
				for range 3 {
					answers <- st
				}
				began := time.Now()
				s.whole(p)
				if took := time.Since(began); took > 10*time.Second || len(answers) > 0 {
					t.Errorf("it took %v, and %d answers are left", took, len(answers))
				}
			})
		})
	}
}
