package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestStop(t *testing.T) {
	t.Run("the agent is cancelled, the end is durable, and the answer says where it is", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started, open}, nil))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			<-agent.Mark("here")
			st, err := r.Stop(b.Context(), "t", "r1", "alice")
			if err != nil {
				b.Fatal(err)
			}
			same(b, "cause", true, strings.Contains((<-agent.Cancelled()).Error(), "stopped"))
			same(b, "waiting agents", 0, agent.Waiting("go"))
			same(b, "answer", thread.Stopped{Stopped: true, RunID: "r1", Cursor: thread.Cursor{Run: 1, Seq: 5}}, st)
			head, _ := b.memory.Head(b.Context(), "t")
			same(b, "head of the log", st.Cursor, head)
			synctest.Wait()
			c := b.last("t")
			same(b, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED", c.types())
			same(b, "end", &thread.End{Outcome: thread.OutcomeStopped, By: "alice"}, c.end)
			same(b, "cancelled", true, strings.Contains(c.events[3], `"outcome":{"type":"cancelled"}`))
		})
	})
	t.Run("an idle thread has nothing to stop", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			for _, id := range []thread.RunID{"", "r1"} {
				st, err := r.Stop(b.Context(), "t", id, "me")
				same(b, "error", nil, err)
				same(b, "answer", thread.Stopped{}, st)
			}
			b.perform(r, "t", "r1")
			st, err := r.Stop(b.Context(), "t", "r1", "me")
			same(b, "error", nil, err)
			same(b, "answer after the end", thread.Stopped{}, st)
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("another run's id stops nothing", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			for _, node := range []*runner.Runner{r, b.node(agent)} {
				st, err := node.Stop(b.Context(), "t", "r0", "me")
				same(b, "error", nil, err)
				same(b, "answer", thread.Stopped{}, st)
			}
			b.begin(r, "u", "r1")
			b.stop(r, "u", "r1")
			synctest.Wait()
			agent.Release("go")
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
}

func TestStopWhileTheLogIsAway(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, open}, nil))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		b.log.Down(thread.ErrUnavailable)
		asked := time.Now()
		_, err := r.Stop(b.Context(), "t", "r1", "alice")
		same(b, "unavailable", true, errors.Is(err, thread.ErrUnavailable))
		same(b, "within five seconds", true, time.Since(asked) < 5*time.Second)
		same(b, "cause", true, strings.Contains((<-agent.Cancelled()).Error(), "stopped"))
		b.log.Up()
		b.pass(2 * time.Second)
		same(b, "end", &thread.End{Outcome: thread.OutcomeStopped, By: "alice"}, b.last("t").end)
	})
}

func TestStopIsWaitedFor(t *testing.T) {
	t.Run("two stops at once are one stop, and both are told", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, nil))
			agent.IgnoreCancel = grace / 2 // so that all have asked before it is over
			r, other := b.node(agent), b.node(agent)
			b.begin(r, "t", "r1")
			<-agent.Mark("here")
			var both sync.WaitGroup
			for i := range 6 {
				both.Go(func() {
					st, err := []*runner.Runner{r, other}[i%2].Stop(b.Context(), "t", "", fmt.Sprint("caller ", i))
					if err != nil || !st.Stopped || st.RunID != "r1" || st.Cursor != (thread.Cursor{Run: 1, Seq: 3}) {
						b.Errorf("caller %d: %+v, %v", i, st, err)
					}
				})
			}
			both.Wait()
			synctest.Wait()
			same(b, "events", "RUN_STARTED RUN_FINISHED", b.last("t").types())
		})
	})
	t.Run("who no longer waits for the answer gets the reason, and the run is stopped", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Hang("go")})
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			left := errors.New("left")
			ctx, cancel := context.WithTimeoutCause(b.Context(), grace/2, left)
			defer cancel()
			_, err := r.Stop(ctx, "t", "", "me")
			same(b, "error", left, err)
			b.pass(grace)
			same(b, "outcome", "stopped", b.last("t").outcome())
			agent.Release("go")
		})
	})
}

func TestStopInEachPhase(t *testing.T) {
	const args = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`
	for _, c := range []struct {
		phase  string
		before []string
		want   string
	}{
		{"before the first event", nil, "RUN_STARTED RUN_FINISHED"},
		{"after the start", []string{started}, "RUN_STARTED RUN_FINISHED"},
		{"in a text", []string{started, open, word}, "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"},
		{"in arguments", []string{started, args, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\""}`},
			"RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END RUN_FINISHED"},
		{"in a step", []string{started, `{"type":"STEP_STARTED","stepName":"s"}`},
			"RUN_STARTED STEP_STARTED STEP_FINISHED RUN_FINISHED"},
		{"in reasoning", []string{started, `{"type":"REASONING_START","messageId":"q"}`,
			`{"type":"REASONING_MESSAGE_START","messageId":"q","role":"reasoning"}`},
			"RUN_STARTED REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_END REASONING_END RUN_FINISHED"},
		{"in chunks", []string{started, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"a"}`},
			"RUN_STARTED TEXT_MESSAGE_CHUNK RUN_FINISHED"},
		{"in a subagent", []string{started, `{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"n"}`},
			"RUN_STARTED SUBAGENT_STARTED SUBAGENT_ERROR RUN_FINISHED"},
	} {
		t.Run(c.phase, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held(c.before, nil))
				r := b.node(agent)
				b.begin(r, "t", "r1")
				synctest.Wait()
				b.stop(r, "t", "r1")
				synctest.Wait()
				same(b, "events", c.want, b.last("t").types())
				same(b, "outcome", "stopped", b.last("t").outcome())
			})
		})
	}
	t.Run("while it is being accepted", func(t *testing.T) {
		for _, elsewhere := range []bool{false, true} {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held([]string{started}, []string{finished}))
				r := b.node(agent)
				from := r
				if elsewhere {
					from = b.node(agent)
				}
				gate := make(chan struct{})
				b.past.inject("StartRun", 1, fault{wait: gate})
				b.ask(r, "t", "r1")
				synctest.Wait()
				time.AfterFunc(time.Second, func() { close(gate) })
				b.stop(from, "t", "r1")
				synctest.Wait()
				same(b, "outcome", "stopped", b.last("t").outcome())
			})
		}
	})
	t.Run("while it is being accepted, which then fails", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			gate := make(chan struct{})
			b.past.inject("StartRun", 1, fault{wait: gate, err: thread.ErrUnavailable})
			go func() { _, _ = r.Run(b.Context(), request("t", "r1")) }()
			synctest.Wait()
			time.AfterFunc(time.Second, func() { close(gate) })
			st, err := r.Stop(b.Context(), "t", "r1", "me")
			same(b, "error", nil, err)
			same(b, "answer", thread.Stopped{}, st)
		})
	})
}

func TestStopThenRun(t *testing.T) {
	// Case c17 of the field: a stop, and a run within the millisecond after its answer.
	old := append(script(started, open), agenttest.Repeat(500, word, 10*time.Millisecond))
	delays := func(yield func(time.Duration) bool) {
		for i := range 1000 {
			if !yield(time.Duration(i%51)*time.Millisecond + time.Duration(i/500)*200*time.Millisecond) {
				return
			}
		}
	}
	t.Run("the thread takes the next run at once, a thousand times", func(t *testing.T) {
		bubble(t, func(b *bench) {
			var scripts [][]agenttest.Step
			for range 1000 {
				scripts = append(scripts, old, answer(1))
			}
			r := b.node(agenttest.New(scripts...))
			i := 0
			for d := range delays {
				id := thread.ID(fmt.Sprint("t", i))
				b.begin(r, id, "r1")
				if d > 0 {
					b.pass(d)
				}
				b.stop(r, id, "r1")
				b.begin(r, id, "r2")
				synctest.Wait()
				runs := b.ended(id)
				same(b, "first", "stopped", runs[0].outcome())
				same(b, "second", "finished", runs[1].outcome())
				same(b, "runs", 2, len(runs))
				i++
			}
			same(b, "abandoned", 0, r.Abandoned())
		})
	})
	t.Run("an agent that ignores it is abandoned, and nothing of it follows its end", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(old, answer(1))
			agent.IgnoreCancel = 5 * time.Second
			r := b.node(agent)
			b.begin(r, "t", "r1")
			b.pass(25 * time.Millisecond)
			asked := time.Now()
			b.stop(r, "t", "r1")
			same(b, "stopped after", grace, time.Since(asked))
			same(b, "abandoned", 1, r.Abandoned())
			b.begin(r, "t", "r2")
			synctest.Wait()
			before := b.ended("t")
			same(b, "runs", 2, len(before))
			b.pass(5*time.Second - 2*grace)
			same(b, "abandoned", 1, r.Abandoned())
			b.pass(2 * grace)
			same(b, "abandoned in the end", 0, r.Abandoned())
			same(b, "events", before[0].events, b.ended("t")[0].events)
			same(b, "second", "finished", b.ended("t")[1].outcome())
		})
	})
	t.Run("the thread takes the next run at once from another node", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(old, answer(1))
			r, other := b.node(agent), b.node(agent)
			b.begin(r, "t", "r1")
			b.pass(25 * time.Millisecond)
			gate := make(chan struct{})
			b.log.Inject(logtest.Release, 1, logtest.Fault{Wait: gate})
			b.stop(other, "t", "r1")
			time.AfterFunc(time.Second, func() { close(gate) })
			b.begin(other, "t", "r2")
			synctest.Wait()
			same(b, "second", "finished", b.last("t").outcome())
		})
	})
}

func TestStopFromAnotherNode(t *testing.T) {
	t.Run("it does not wait for the next renewal", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started, open}, nil))
			r, other := b.node(agent), b.node(agent)
			b.begin(r, "t", "r1")
			<-agent.Mark("here")
			asked := time.Now()
			st := b.stop(other, "t", "r1")
			if took := time.Since(asked); took > 100*time.Millisecond {
				b.Errorf("it took %v", took)
			}
			same(b, "cursor", thread.Cursor{Run: 1, Seq: 5}, st.Cursor)
			same(b, "end", &thread.End{Outcome: thread.OutcomeStopped, By: "operator"}, b.last("t").end)
		})
	})
	t.Run("the next renewal brings it where the wake-up was lost", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started, open}, nil))
			b.begin(b.nodeOn(deaf{b.log}, agent, b.config()), "t", "r1")
			<-agent.Mark("here")
			asked := time.Now()
			b.stop(b.node(agent), "t", "r1")
			if took := time.Since(asked); took > lease/2 {
				b.Errorf("it took %v", took)
			}
		})
	})
	t.Run("a store that is away is an error", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, nil))
			b.begin(b.node(agent), "t", "r1")
			other := b.node(agent)
			b.log.Inject(logtest.AskStop, 1, logtest.Fault{Err: thread.ErrUnavailable})
			_, err := other.Stop(b.Context(), "t", "", "me")
			same(b, "unavailable", true, errors.Is(err, thread.ErrUnavailable))
			b.log.Inject(logtest.Head, 1, logtest.Fault{Err: thread.ErrUnavailable})
			_, err = other.Stop(b.Context(), "t", "", "me")
			same(b, "unavailable", true, errors.Is(err, thread.ErrUnavailable))
			b.stop(other, "t", "r1")
		})
	})
	t.Run("a history that is away is none: what is durable in the log has ended", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, nil), answer(1))
			other := b.node(agent)
			b.begin(b.node(agent), "t", "r1")
			<-agent.Mark("here")
			b.past.fail(thread.ErrUnavailable)
			b.stop(other, "t", "r1")
			b.past.fail(nil)
			b.begin(other, "t", "r2") // it waits until the first is saved
			synctest.Wait()
			same(b, "next run", "finished", b.last("t").outcome())
		})
	})
}

// clinging is a log whose replies to releases are held back, though the lease is given up.
type clinging struct {
	live
	gate chan struct{}
}

func (l clinging) Release(ctx context.Context, held thread.Lease) error {
	err := l.live.Release(ctx, held)
	<-l.gate
	return err
}

func TestStopOnTheNodeThatHadTheRunBefore(t *testing.T) {
	for name, run := range map[string]thread.RunID{"by its id": "r2", "whatever it is": ""} {
		t.Run("a run that another node has meanwhile is stopped, "+name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				before := clinging{b.log, make(chan struct{})}
				first := b.nodeOn(before, agenttest.New(answer(1)), b.config())
				b.begin(first, "t", "r1")
				synctest.Wait() // it has ended and is saved, and its node does not know yet that its lease is given up
				agent := agenttest.New(held([]string{started}, nil))
				b.begin(b.node(agent), "t", "r2")
				<-agent.Mark("here")
				if st, err := first.Status(b.Context(), "t"); err != nil || !st.Running || st.RunID != "r2" {
					b.Errorf("the thread stands at %+v, %v", st, err)
				}
				st, err := first.Stop(b.Context(), "t", run, "me")
				if err != nil || !st.Stopped || st.RunID != "r2" {
					b.Errorf("the answer is %+v, %v", st, err)
				}
				close(before.gate)
				synctest.Wait()
				same(b, "outcome", "stopped", b.last("t").outcome())
			})
		})
	}
}

// A wish that the log has lost is told again.
func TestStopWhoseWishIsLost(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, open}, nil))
		b.begin(b.node(agent), "t", "r1")
		<-agent.Mark("here")
		asked := time.Now()
		b.stop(b.nodeOn(&forgetful{live: b.log}, agent, b.config()), "t", "r1")
		if took := time.Since(asked); took > 2*time.Second {
			b.Errorf("it took %v", took)
		}
	})
}

// forgetful is a log that loses the first wish to stop.
type forgetful struct {
	live
	once sync.Once
}

func (f *forgetful) AskStop(ctx context.Context, id thread.ID, req thread.StopRequest) (lease thread.Lease, err error) {
	lost := false
	f.once.Do(func() { lost = true })
	if lost {
		return f.Holder(ctx, id)
	}
	return f.live.AskStop(ctx, id, req)
}

// deaf is a log whose leases never wake their holders.
type deaf struct{ live }

func (d deaf) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	lease, err := d.live.Acquire(ctx, claim, ttl)
	lease.Asked = nil
	return lease, err
}

func (d deaf) Renew(ctx context.Context, held thread.Lease, ttl time.Duration) (thread.Lease, error) {
	lease, err := d.live.Renew(ctx, held, ttl)
	lease.Asked = nil
	return lease, err
}

func TestStopRacingTheEnd(t *testing.T) {
	bubble(t, func(b *bench) {
		outcomes := map[string]int{}
		for i := range 500 {
			id := thread.RunID(fmt.Sprint("r", i))
			agent := agenttest.New(held([]string{started, open, shut}, []string{finished}))
			r := b.node(agent)
			b.begin(r, "t", id)
			<-agent.Mark("here")
			var st thread.Stopped
			var both sync.WaitGroup
			both.Go(func() { agent.Release("go") })
			both.Go(func() {
				var err error
				if st, err = r.Stop(b.Context(), "t", id, "me"); err != nil {
					b.Error(err)
				}
			})
			both.Wait()
			synctest.Wait()
			c := b.captures("t")[i]
			outcomes[c.outcome()]++
			if (c.outcome() == "stopped") != st.Stopped {
				b.Fatalf("run %s is %s, and the answer was %+v", id, c.outcome(), st)
			}
		}
		same(b, "runs", 500, len(b.ended("t")))
		same(b, "outcomes", 500, outcomes["stopped"]+outcomes["finished"])
	})
}
