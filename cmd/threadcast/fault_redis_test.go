package main_test

import (
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// losses are the ways in which a Redis goes away in mid run and comes back, and whether it has its data then.
var losses = []struct {
	name  string
	keeps bool
	short bool // is part of the short size
	down  func(*redistest.Server)
	up    func(*redistest.Server) error
}{
	{"restarted with its data", true, false, (*redistest.Server).Kill, (*redistest.Server).Start},
	{"restarted empty", false, true, (*redistest.Server).Kill, func(s *redistest.Server) error {
		if err := s.Wipe(); err != nil {
			return err
		}
		return s.Start()
	}},
	{"flushed", false, false, func(*redistest.Server) {}, (*redistest.Server).FlushAll},
}

// TestRunsOutliveTheirRedis takes Redis away from runs in mid sentence. Each viewer, on whatever node, gets every event
// once and in order; runs that begin later reach those who waited for them; and the history has what the agents said.
func TestRunsOutliveTheirRedis(t *testing.T) {
	for _, loss := range losses {
		if sized(1, 0) == 0 && !loss.short {
			continue
		}
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			o := newOrdeal(t, "--lease", "4s", "--retention", "1m")
			one, two := o.add(), o.add()
			past := o.run("past", one)
			o.finish("past")
			o.stored(thread.OutcomeFinished, "past")
			o.run("a", one, two)
			o.run("b", two, one)
			idle := []*watcher{o.watch("later", one), o.watch("later", two)}
			live := o.watchers[1:5]
			ready := o.askReady()

			loss.down(o.redis)
			down := time.Now()
			if loss.name != "flushed" {
				ready.awaitRed(one, two)
			}
			outage := time.Since(down)
			if err := loss.up(o.redis); err != nil {
				t.Fatal(err)
			}
			up := time.Now()
			var resumed []time.Duration
			for _, w := range live {
				resumed = append(resumed, w.after(up))
			}
			accepted := o.start("later", two)
			if accepted > 5*time.Second {
				t.Errorf("a new run was accepted after %s", accepted)
			}
			for _, w := range idle {
				w.await("a run that begins later is seen", func() bool { return len(w.events) > 5 })
			}
			o.finish("a", "b", "later")
			for _, w := range o.watchers {
				w.check()
			}
			o.stored(thread.OutcomeFinished, "past", "a", "b", "later")
			back := past[0].returns(thread.Cursor{Run: 1, Seq: 4})
			back.check()
			if reset := back.resets > 0; reset == loss.keeps {
				t.Errorf("who returns into a finished run is told to begin anew: %t", reset)
			}
			measured(t, "away for %s; events went on after p50 %s, longest %s, a new run was accepted after %s; %d memberships ended, %d resets",
				outage.Round(time.Millisecond), percentile(resumed, 0.5).Round(time.Millisecond),
				percentile(resumed, 1).Round(time.Millisecond), accepted.Round(time.Millisecond), o.sentAway(), o.allResets())
		})
	}
}

// A run whose agent is silent when Redis loses everything is written again without waiting for the agent's next word: who
// comes anew, on whatever node, gets what there was, and who comes back goes on where it was.
func TestASilentRunOutlivesAnEmptiedRedis(t *testing.T) {
	t.Parallel()
	o := newOrdeal(t, "--lease", "4s")
	talk := agenttest.Repeat(20, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"#{i};"}`, 0)
	o.agents.Handle("steady", append(emits(begins, opens), talk, agenttest.WaitFor("over a"), talk,
		agenttest.Emit(closes), agenttest.Emit(ends)))
	one, two := o.add(), o.add()
	ws := o.run("a", one, two)
	for _, w := range ws {
		w.await("all is seen that there is", func() bool { return len(w.events) == 22 })
	}
	if err := o.redis.FlushAll(); err != nil {
		t.Fatal(err)
	}
	flushed := time.Now()
	for _, w := range ws {
		w.returns(thread.Cursor{Run: 1, Seq: 22})
		w.returns(thread.Cursor{Run: 1, Seq: 7})
		anew := w.returns(thread.Cursor{})
		anew.await("all is seen that there was", func() bool { return len(anew.events) == 22 })
	}
	took := time.Since(flushed)
	o.finish("a")
	for _, w := range o.watchers {
		w.check()
	}
	o.stored(thread.OutcomeFinished, "a")
	measured(t, "who came anew had all of it %s after the flush; %d resets", took.Round(time.Millisecond), o.allResets())
}
