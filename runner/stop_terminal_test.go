package runner_test

import (
	"testing"
	"testing/synctest"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// stopError is the terminal event of stopped runs where that is to be an error, and as what they are recorded.
const stopError = `{"type":"RUN_ERROR","message":"The run was stopped.","code":"stopped"}`

var stoppedEnd = thread.End{Outcome: thread.OutcomeStopped, Code: "stopped", Message: "The run was stopped.", By: "operator"}

// erring returns a node that ends stopped runs with RUN_ERROR.
func (b *bench) erring(a runner.Agent) *runner.Runner {
	cfg := b.config()
	cfg.StopTerminal = runner.StopError
	return b.nodeWith(a, cfg)
}

func TestStopEndsWithAnError(t *testing.T) {
	for name, from := range map[string]func(b *bench, r *runner.Runner) *runner.Runner{
		"of this node":      func(_ *bench, r *runner.Runner) *runner.Runner { return r },
		"from another node": func(b *bench, _ *runner.Runner) *runner.Runner { return b.node(agenttest.New()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held([]string{started, open, `{"type":"STEP_STARTED","stepName":"s"}`}, nil))
				r := b.erring(agent)
				b.begin(r, "t", "r1")
				<-agent.Mark("here")
				st := b.stop(from(b, r), "t", "r1")
				same(b, "answer", thread.Stopped{Stopped: true, RunID: "r1", Cursor: thread.Cursor{Run: 1, Seq: 7}}, st)
				synctest.Wait()
				c := b.last("t")
				same(b, "events", "RUN_STARTED TEXT_MESSAGE_START STEP_STARTED TEXT_MESSAGE_END STEP_FINISHED RUN_ERROR", c.types())
				same(b, "terminal event", stopError, c.events[5])
				same(b, "end", &stoppedEnd, c.end)
			})
		})
	}
	t.Run("before the first event", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.erring(agenttest.New(held(nil, nil)))
			b.begin(r, "t", "r1")
			synctest.Wait()
			b.stop(r, "t", "r1")
			synctest.Wait()
			same(b, "events", "RUN_STARTED RUN_ERROR", b.last("t").types())
			same(b, "next run", "stopped stopped", func() string {
				b.begin(r, "t", "r2")
				synctest.Wait()
				b.stop(r, "t", "r2")
				synctest.Wait()
				return b.last("t").outcome()
			}())
		})
	})
	t.Run("unless the agent ended it itself", func(t *testing.T) {
		cancelled := `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"cancelled"}}`
		bubble(t, func(b *bench) {
			r := b.erring(agenttest.New(script(started, cancelled), script(started, stopError)))
			same(b, "cancelled", &thread.End{Outcome: thread.OutcomeStopped, By: "agent"}, b.perform(r, "t", "r1").end)
			same(b, "an error of the agent", "failed stopped", b.perform(r, "t", "r2").outcome())
		})
	})
}

// What waits for an answer is the same for who asks in the moment of the end, for who asks when it is saved, and in the
// history (AG-UI 1.0, section 9).
func TestStopAndWhatWaits(t *testing.T) {
	const waiting = `[ {"id":"i1","reason":"sure?"} ]`
	for form, want := range map[runner.StopTerminal]string{runner.StopFinished: "", runner.StopError: waiting, "": ""} {
		t.Run("form "+string(form), func(t *testing.T) {
			bubble(t, func(b *bench) {
				cfg := b.config()
				cfg.StopTerminal = form
				agent := agenttest.New(script(started, asks), held([]string{started}, nil))
				r := b.nodeWith(agent, cfg)
				b.perform(r, "t", "r1")
				b.begin(r, "t", "r2")
				<-agent.Mark("here")
				st, err := r.Status(b.Context(), "t")
				same(b, "error", nil, err)
				same(b, "pending while it runs", waiting, string(st.Pending))
				gate := make(chan struct{})
				b.past.inject("SaveRun", 1, fault{wait: gate})
				b.stop(r, "t", "r2")
				st, err = r.Status(b.Context(), "t")
				same(b, "error", nil, err)
				same(b, "pending before it is saved", want, string(st.Pending))
				close(gate)
				synctest.Wait()
				st, err = r.Status(b.Context(), "t")
				same(b, "error", nil, err)
				same(b, "pending when it is saved", want, string(st.Pending))
				same(b, "outcome", thread.OutcomeStopped, st.Latest.End.Outcome)
			})
		})
	}
}

// An owner that has to append a whole run again may go away between its terminal event and its end.
func TestReclaimOfAStoppedRun(t *testing.T) {
	for name, c := range map[string]struct {
		last string
		want thread.End
	}{
		"that ends with the error of threadcast": {
			stopError, thread.End{Outcome: thread.OutcomeStopped, Code: "stopped", Message: "The run was stopped."},
		},
		"that ends with such an error of the agent": {
			`{"type":"RUN_ERROR","message":"I was stopped","code":"stopped"}`,
			thread.End{Outcome: thread.OutcomeFailed, Code: "stopped", Message: "I was stopped"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.left("t", "r1", "", started, open, shut, c.last)
				b.pass(lease)
				b.reclaims(b.node(agenttest.New()), 1)
				same(b, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR", b.last("t").types())
				same(b, "end", &c.want, b.last("t").end)
			})
		})
	}
	t.Run("that was not ended when its owner went away, which makes it lost", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.left("t", "r1", "", started, open)
			if _, err := b.memory.AskStop(b.Context(), "t", thread.StopRequest{RunID: "r1", By: "operator"}); err != nil {
				b.Fatal(err)
			}
			b.pass(lease)
			b.reclaims(b.erring(agenttest.New()), 1)
			same(b, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR", b.last("t").types())
			same(b, "outcome", "lost lost", b.last("t").outcome())
		})
	})
}
