package runner_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

const (
	picks = `{"type":"TOOL_CALL_START","toolCallId":"k1","toolCallName":"pickDate"}`
	args  = `{"type":"TOOL_CALL_ARGS","toolCallId":"k1","delta":"{}"}`
	ready = `{"type":"TOOL_CALL_END","toolCallId":"k1"}`
	names = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"success","pendingToolCallIds":["k1"]}}`
	fails = `{"type":"RUN_ERROR","message":"no luck"}`
)

// resume asks for a run that answers interrupt i1.
func resume(run thread.RunID) thread.Request {
	return requestWith("t", run, `"messages":[],"resume":[{"interruptId":"i1","status":"resolved","payload":false}]`)
}

// result asks for a run that answers tool call k1.
func result(run thread.RunID, message, content string) thread.Request {
	return requestWith("t", run, fmt.Sprintf(
		`"messages":[{"id":"u-r1","role":"user","content":"hi"},{"id":%q,"role":"tool","toolCallId":"k1","content":%q}]`, message, content))
}

// refused wants the request to be refused because run has answered.
func (b *bench) refused(r *runner.Runner, req thread.Request, run thread.RunID) {
	b.Helper()
	_, err := r.Run(b.Context(), req)
	var answered *thread.AnsweredError
	if !errors.As(err, &answered) || answered.RunID != run {
		b.Fatalf("run %s: got %v, want that run %s has answered", req.RunID, err, run)
	}
}

// accepted wants the request to be accepted, and the run to end.
func (b *bench) accepted(r *runner.Runner, req thread.Request) {
	b.Helper()
	if _, err := r.Run(b.Context(), req); err != nil {
		b.Fatalf("run %s: %v", req.RunID, err)
	}
	synctest.Wait()
}

// status is how the thread stands.
func (b *bench) status(r *runner.Runner) thread.Status {
	b.Helper()
	st, err := r.Status(b.Context(), "t")
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func TestAnInterruptIsAnsweredOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(script(started, asks), held([]string{started}, []string{finished}), script(started, finished))
		r := b.node(agent)
		b.perform(r, "t", "r1")
		same(b, "waits", `[ {"id":"i1","reason":"sure?"} ]`, string(b.status(r).Pending))
		if _, err := r.Run(b.Context(), resume("r2")); err != nil {
			t.Fatal(err)
		}
		<-agent.Mark("here")
		if st := b.status(r); st.Pending != nil {
			t.Errorf("while it is being answered %s waits", st.Pending)
		}
		b.refused(r, resume("r3"), "r2")
		agent.Release("go")
		synctest.Wait()
		b.refused(r, resume("r4"), "r2")
		if st := b.status(r); st.Pending != nil || st.Running {
			t.Errorf("in the end %+v", st)
		}
		same(b, "invocations", 2, agent.Invocations())
	})
}

func TestAnAnswerThatCameToNothingMayBeGivenAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		r := b.node(agenttest.New(script(started, asks), script(started, fails), answer(1)))
		b.perform(r, "t", "r1")
		b.accepted(r, resume("r2"))
		if st := b.status(r); st.Pending == nil {
			t.Error("nothing waits after the failure")
		}
		b.accepted(r, resume("r3"))
		b.refused(r, resume("r4"), "r3")
	})
}

func TestAnExpiredInterruptCanOnlyBeCancelled(t *testing.T) {
	bubble(t, func(b *bench) {
		expires := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		asks := `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt",` +
			`"interrupts":[{"id":"i1","reason":"sure?","expiresAt":"` + expires + `"}]}}`
		r := b.node(agenttest.New(script(started, asks), answer(1)))
		b.perform(r, "t", "r1")
		b.pass(2 * time.Minute)
		if _, err := r.Run(b.Context(), resume("r2")); !errors.Is(err, thread.ErrBadInput) {
			t.Fatalf("got %v", err)
		}
		b.accepted(r, requestWith("t", "r3", `"messages":[],"resume":[{"interruptId":"i1","status":"cancelled"}]`))
	})
}

func TestAToolCallIsAnsweredOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(script(started, picks, args, ready, names), held([]string{started}, []string{finished}), answer(1))
		r := b.node(agent)
		b.perform(r, "t", "r1")
		same(b, "waits", `[{"toolCallId":"k1","toolCallName":"pickDate","runId":"r1"}]`, string(b.status(r).Calls))
		var tabs sync.WaitGroup
		outcomes := make([]error, 2)
		for i := range outcomes {
			tabs.Go(func() {
				run := thread.RunID(fmt.Sprint("tab", i))
				_, outcomes[i] = r.Run(b.Context(), result(run, fmt.Sprint("res", i), fmt.Sprint("day ", i)))
			})
		}
		tabs.Wait()
		won := 0
		if outcomes[0] != nil {
			won = 1
		}
		var late *thread.AnsweredError
		if outcomes[won] != nil || !errors.As(outcomes[1-won], &late) || late.RunID != thread.RunID(fmt.Sprint("tab", won)) {
			t.Fatalf("got %v", outcomes)
		}
		<-agent.Mark("here")
		agent.Release("go")
		synctest.Wait()
		b.refused(r, result("third", "res3", "day 3"), late.RunID)
		b.refused(r, result("fourth", fmt.Sprint("res", won), "another day"), late.RunID) // under the winner's id
		same(b, "invocations", 2, agent.Invocations())
		if st := b.status(r); st.Calls != nil {
			t.Errorf("%s waits in the end", st.Calls)
		}
		// The story so far, told again with a new message behind it, is no second answer.
		b.accepted(r, requestWith("t", "next", fmt.Sprintf(`"messages":[{"id":"res%d","role":"tool","toolCallId":"k1","content":"x"},`+
			`{"id":"u-next","role":"user","content":"and?"}]`, won)))
	})
}

func TestCallsOfOfferedToolsWait(t *testing.T) {
	for _, c := range []struct{ name, tools, want string }{
		{"of the application", `[{"name":"pickDate","description":"d"}]`, `[{"toolCallId":"k1","toolCallName":"pickDate","runId":"r1"}]`},
		{"of the agent", `[]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(script(started, picks, args, ready, finished)))
				b.accepted(r, requestWith("t", "r1", `"messages":[],"tools":`+c.tools))
				same(b, "waits", c.want, string(b.status(r).Calls))
			})
		})
	}
}

func TestStopWhileWaitingCancelsWhatWaits(t *testing.T) {
	for name, end := range map[string]string{"an interrupt": asks, "a tool call": names} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(script(started, picks, args, ready, end), answer(1))
				r := b.node(agent)
				b.perform(r, "t", "r1")
				if st, err := r.Stop(b.Context(), "t", "another", "me"); err != nil || st.Stopped {
					t.Fatalf("of another run: %+v, %v", st, err)
				}
				st, err := r.Stop(b.Context(), "t", "r1", "me")
				if err != nil || !st.Stopped || st.RunID != "r1" || st.Cursor != (thread.Cursor{Run: 2, Seq: 3}) {
					t.Fatalf("got %+v, %v", st, err)
				}
				synctest.Wait()
				if st := b.status(r); st.Pending != nil || st.Calls != nil || st.Latest.End.Outcome != thread.OutcomeStopped {
					t.Fatalf("stands at %+v", st)
				}
				same(b, "its events", "RUN_STARTED RUN_FINISHED", b.last("t").types())
				same(b, "invocations", 1, agent.Invocations())
				if end == asks {
					_, err := r.Run(b.Context(), resume("late"))
					if !errors.Is(err, thread.ErrAnswered) {
						t.Fatalf("a late answer: %v", err)
					}
				}
				if st, err := r.Stop(b.Context(), "t", "", "me"); err != nil || st.Stopped {
					t.Fatalf("a second stop: %+v, %v", st, err)
				}
				b.perform(r, "t", "r3")
			})
		})
	}
}

// Whatever becomes of the run that is in the way, an answer that was accepted counts, and no other does.
func TestAnAnswerIsReservedWhileItWaits(t *testing.T) {
	for _, busy := range []thread.OnBusy{thread.Enqueue, thread.Interrupt, thread.Replace} {
		t.Run(string(busy), func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(script(started, asks), held([]string{started}, []string{finished}), answer(1))
				r := b.node(agent)
				b.perform(r, "t", "r1")
				b.begin(r, "t", "between")
				<-agent.Mark("here")
				same(b, "waits", `[ {"id":"i1","reason":"sure?"} ]`, string(b.status(r).Pending))
				first := resume("first")
				first.OnBusy = busy
				if _, err := r.Run(b.Context(), first); err != nil {
					t.Fatal(err)
				}
				if st := b.status(r); st.Pending != nil {
					t.Errorf("%s waits although it has its answer", st.Pending)
				}
				second := resume("second")
				if second.OnBusy = busy; busy == thread.Replace {
					second.OnBusy = thread.Interrupt // who replaces the run that answers may answer anew
				}
				b.refused(r, second, "first")
				agent.Release("go")
				b.pass(time.Second)
				b.refused(r, resume("third"), "first")
				if run, there := b.past.run("t", "first"); !there || run.End.Outcome != thread.OutcomeFinished {
					t.Errorf("the run that answers is %+v", run.End)
				}
			})
		})
	}
}

func TestAnAnswerThatIsTakenBackMayBeGivenAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(script(started, asks), held([]string{started}, []string{fails}), answer(1))
		r := b.node(agent)
		b.perform(r, "t", "r1")
		b.begin(r, "t", "between")
		<-agent.Mark("here")
		waits := resume("first")
		waits.OnBusy = thread.Enqueue
		if acc, err := r.Run(b.Context(), waits); err != nil || acc.Queued != 1 {
			t.Fatalf("got %+v, %v", acc, err)
		}
		if st, err := r.Stop(b.Context(), "t", "first", "me"); err != nil || !st.Stopped {
			t.Fatalf("got %+v, %v", st, err)
		}
		agent.Release("go")
		synctest.Wait()
		same(b, "waits", `[ {"id":"i1","reason":"sure?"} ]`, string(b.status(r).Pending))
		b.accepted(r, resume("second"))
	})
}

func TestWhatIsPastCannotBeAnswered(t *testing.T) {
	bubble(t, func(b *bench) {
		r := b.node(agenttest.New(script(started, asks), script(started, picks, args, ready, names), answer(1)))
		b.perform(r, "t", "r1")
		b.perform(r, "t", "r2") // without an answer, which its end makes up for
		b.refused(r, resume("late"), "r2")
		b.perform(r, "t", "r3")
		b.refused(r, result("late", "res", "a day"), "r3")
	})
}

func TestAReplacedRunGivesItsAnswerBack(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(script(started, asks), held([]string{started}, nil), answer(1))
		r := b.node(agent)
		b.perform(r, "t", "r1")
		if _, err := r.Run(b.Context(), resume("r2")); err != nil {
			t.Fatal(err)
		}
		<-agent.Mark("here")
		better := resume("r3")
		better.OnBusy = thread.Replace
		b.accepted(r, better)
		b.refused(r, resume("r4"), "r3")
		if old, _ := b.past.run("t", "r2"); !old.Discarded {
			t.Error("r2 was not discarded")
		}
	})
	bubble(t, func(b *bench) {
		agent := agenttest.New(script(started, asks), held([]string{started}, nil), script(started, fails))
		r := b.node(agent)
		b.perform(r, "t", "r1")
		if _, err := r.Run(b.Context(), resume("r2")); err != nil {
			t.Fatal(err)
		}
		<-agent.Mark("here")
		other := while("r3", thread.Replace)
		b.accepted(r, other)
		same(b, "waits again", `[ {"id":"i1","reason":"sure?"} ]`, string(b.status(r).Pending))
	})
}
