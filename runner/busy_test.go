package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

const ticks = `{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}`

// while asks for a run, and says what to do when another is active.
func while(run thread.RunID, busy thread.OnBusy) thread.Request {
	req := request("t", run)
	req.OnBusy, req.By = busy, "me"
	return req
}

// conversation is the ids and contents of what an agent got, and the state.
func conversation(b *bench, agent *agenttest.Agent, nth int) string {
	b.Helper()
	var in struct {
		Messages []struct {
			ID      string
			Content any
		}
		State any
	}
	inputs := agent.Inputs()
	if len(inputs) <= nth {
		b.Fatalf("the agent was asked %d times", len(inputs))
	}
	if err := json.Unmarshal(inputs[nth].JSON, &in); err != nil {
		b.Fatal(err)
	}
	var said []string
	for _, m := range in.Messages {
		said = append(said, fmt.Sprint(m.ID, ":", m.Content))
	}
	return strings.Join(said, " ") + fmt.Sprint(" ", in.State)
}

func TestInterruptStopsAndKeepsWhatWasSaid(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, ticks, open, strings.Replace(word, "{i}", "half", 1)}, nil), answer(1))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		acc, err := r.Run(b.Context(), while("r2", thread.Interrupt))
		if err != nil || acc.Cursor.Run != 2 || acc.Queued != 0 {
			t.Fatalf("got %+v, %v", acc, err)
		}
		synctest.Wait()
		runs := b.ended("t")
		same(b, "first", "stopped", runs[0].outcome())
		same(b, "stopped by", "me", runs[0].end.By)
		same(b, "second", "finished", runs[1].outcome())
		same(b, "what its agent got", "u-r1:hi m:half  u-r2:hi map[n:1]", conversation(b, agent, 1))
		if strings.Contains(runs[1].events[0], "half") {
			t.Error("the record of the second run repeats what the thread has: " + runs[1].events[0])
		}
	})
}

func TestReplaceDiscardsTheActiveRun(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, ticks, open, word}, nil), answer(1))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		req := requestWith("t", "r2", `"messages":[{"id":"u-r1","role":"user","content":"better"}]`)
		req.OnBusy = thread.Replace
		if _, err := r.Run(b.Context(), req); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		old, _ := b.past.run("t", "r1")
		if !old.Discarded || old.End.Outcome != thread.OutcomeStopped {
			t.Errorf("the first run is %+v", old)
		}
		runs := b.captures("t")
		if len(runs) != 1 || runs[0].id != "r2" || !strings.Contains(runs[0].events[0], "better") {
			t.Errorf("the log has %+v", runs)
		}
		same(b, "what its agent got", "u-r1:better <nil>", conversation(b, agent, 1))
	})
}

func TestEnqueuedRunsTakeTheirTurn(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, ticks, open, word}, []string{shut, finished}), answer(1))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		for i, run := range []thread.RunID{"r2", "r3", "r4"} {
			for range 2 { // the second time changes nothing
				acc, err := r.Run(b.Context(), while(run, thread.Enqueue))
				if err != nil || acc.Queued != i+1 || acc.RunID != run {
					t.Fatalf("%s: %+v, %v", run, acc, err)
				}
			}
		}
		st := b.status(r)
		if len(st.Queue) != 3 || st.Queue[0].RunID != "r2" || st.Queue[2].RunID != "r4" || st.Queue[0].By != "me" {
			t.Fatalf("the queue is %+v", st.Queue)
		}
		if st, err := r.Stop(b.Context(), "t", "r3", "me"); err != nil || !st.Stopped || st.RunID != "r3" {
			t.Fatalf("to take r3 out: %+v, %v", st, err)
		}
		agent.Release("go")
		synctest.Wait()
		var order []string
		for _, c := range b.ended("t") {
			order = append(order, string(c.id)+" "+c.outcome())
		}
		same(b, "order", []string{"r1 finished", "r2 finished", "r4 finished"}, order)
		same(b, "what r2's agent got", "u-r1:hi m:{i}  u-r2:hi map[n:1]", conversation(b, agent, 1))
		same(b, "what is left", 0, len(b.status(r).Queue))
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := b.config()
		cfg.MaxQueue = 2
		agent := agenttest.New(held([]string{started}, []string{finished}), answer(1))
		r := b.nodeWith(agent, cfg)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		for _, run := range []thread.RunID{"r2", "r3"} {
			if _, err := r.Run(b.Context(), while(run, thread.Enqueue)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Run(b.Context(), while("r4", thread.Enqueue)); !errors.Is(err, thread.ErrQueueFull) {
			t.Fatalf("got %v", err)
		}
		agent.Release("go")
		synctest.Wait()
		same(b, "runs", 3, len(b.ended("t")))
	})
}

func TestAQueueOutlivesItsNode(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started}, nil), answer(1))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		if _, err := r.Run(b.Context(), while("r2", thread.Enqueue)); err != nil {
			t.Fatal(err)
		}
		now, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := r.Drain(now, b.Context()); err != nil {
			t.Fatal(err)
		}
		same(b, "runs of the first node", 1, len(b.ended("t")))
		next := b.node(agent)
		if _, err := next.Reclaim(b.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same(b, "outcome", "finished", b.last("t").outcome())
		same(b, "run", "r2", string(b.last("t").id))
	})
}

func TestAQueuedRunThatCannotStartFails(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started}, []string{finished}), answer(1))
		r := b.node(agent)
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		gone := while("r2", thread.Enqueue)
		gone.Agent = "other"
		for _, req := range []thread.Request{gone, while("r3", thread.Enqueue)} {
			if _, err := r.Run(b.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		b.past.rename("t", "r2", "nobody") // as if it had been configured no more after a restart
		agent.Release("go")
		synctest.Wait()
		runs := b.ended("t")
		same(b, "runs", 3, len(runs))
		same(b, "second", "failed not_started", runs[1].outcome())
		same(b, "third", "finished", runs[2].outcome())
	})
}

func TestManyWhoReplaceEachOther(t *testing.T) {
	bubble(t, func(b *bench) {
		r := b.node(agenttest.New(held([]string{started, open, word}, nil)))
		b.begin(r, "t", "r0")
		done := make(chan error)
		for i := range 10 {
			go func() {
				_, err := r.Run(b.Context(), while(thread.RunID(fmt.Sprint("r", i+1)), thread.Replace))
				done <- err
			}()
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		b.pass(time.Second)
		left := 0
		for i := range 11 {
			run, there := b.past.run("t", thread.RunID(fmt.Sprint("r", i)))
			if !there {
				t.Errorf("r%d is not there", i)
			}
			if !run.Discarded {
				left++
			}
		}
		same(b, "runs that are left", 1, left)
	})
}

// What waits keeps its place, whoever comes first: the stop of the active run starts nobody else.
func TestInterruptAndReplaceGoBeforeTheQueue(t *testing.T) {
	for _, c := range []struct {
		busy thread.OnBusy
		want []string
	}{
		{thread.Interrupt, []string{"r1 stopped", "now finished", "r2 finished", "r3 finished"}},
		{thread.Replace, []string{"now finished", "r2 finished", "r3 finished"}},
	} {
		t.Run(string(c.busy), func(t *testing.T) {
			for range 20 {
				bubble(t, func(b *bench) {
					agent := agenttest.New(held([]string{started, open, word}, nil), answer(1))
					r := b.node(agent)
					b.begin(r, "t", "r1")
					<-agent.Mark("here")
					for _, run := range []thread.RunID{"r2", "r3"} {
						if _, err := r.Run(b.Context(), while(run, thread.Enqueue)); err != nil {
							t.Fatal(err)
						}
					}
					if acc, err := r.Run(b.Context(), while("now", c.busy)); err != nil || acc.Cursor.Run != 2 {
						t.Fatalf("got %+v, %v", acc, err)
					}
					b.pass(time.Second)
					var order []string
					for _, c := range b.captures("t") {
						order = append(order, string(c.id)+" "+c.outcome())
					}
					same(b, "order", c.want, order)
				})
			}
		})
	}
}

// A request that is taken out of the queue while it waits for the run that it interrupts has not been accepted.
func TestInterruptThatIsTakenOutOfTheQueue(t *testing.T) {
	for name, take := range map[string]func(b *bench, r *runner.Runner) error{
		"by a stop": func(b *bench, r *runner.Runner) error {
			st, err := r.Stop(b.Context(), "t", "r2", "me")
			same(b, "stopped", true, st.Stopped)
			return err
		},
		"by a deletion": func(b *bench, r *runner.Runner) error { return r.Delete(b.Context(), "t", "me") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(answer(1))
				r, other := b.node(agent), b.node(agent)
				b.left("t", "r1", "", started) // which cannot be stopped until its lease expires
				req := request("t", "r2")
				req.OnBusy = thread.Interrupt
				answered := make(chan error, 1)
				go func() {
					_, err := r.Run(b.Context(), req)
					answered <- err
				}()
				b.pass(time.Second)
				taken := make(chan error, 1)
				go func() { taken <- take(b, other) }()
				b.pass(lease)
				_, err := other.Reclaim(b.Context())
				same(b, "reclaim", nil, err)
				same(b, "taken out", nil, <-taken)
				err = <-answered
				if name == "by a stop" {
					same(b, "ended", true, errors.Is(err, thread.ErrEnded))
					same(b, "invocations", 0, agent.Invocations())
					return
				}
				same(b, "accepted by the thread that is made anew", nil, err)
				synctest.Wait()
				same(b, "invocations", 1, agent.Invocations())
			})
		})
	}
}
