package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// drained is what a drain came to.
type drained struct {
	ended int
	err   error
	took  time.Duration
}

// drain drains a node, with this much time for runs to end and as much again for them to be ended.
func (b *bench) drain(r *runner.Runner, grace time.Duration) <-chan drained {
	result := make(chan drained, 1)
	go func() {
		began := time.Now()
		soft, cancelSoft := context.WithTimeout(context.Background(), grace)
		defer cancelSoft()
		hard, cancelHard := context.WithTimeout(context.Background(), 2*grace)
		defer cancelHard()
		n, err := r.Drain(soft, hard)
		result <- drained{n, err, time.Since(began)}
	}()
	return result
}

func TestDrain(t *testing.T) {
	t.Run("an idle node is done at once", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			same(b, "fresh", true, drained{} == <-b.drain(r, time.Minute))
			r = b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			same(b, "after a run", true, drained{} == <-b.drain(r, time.Minute))
		})
	})
	t.Run("runs that finish in time are let finish", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(slow(1000)))
			for i := range 10 {
				b.begin(r, thread.ID(fmt.Sprint("t", i)), "r1")
			}
			got := <-b.drain(r, time.Minute)
			same(b, "ended", 0, got.ended)
			same(b, "error", nil, got.err)
			same(b, "took", 10*time.Second-10*time.Millisecond, got.took)
			for i := range 10 {
				same(b, "outcome", "finished", b.last(thread.ID(fmt.Sprint("t", i))).outcome())
			}
		})
	})
	t.Run("a hundred runs that do not are ended, each once, and saved", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(append(script(started, open), agenttest.Repeat(1<<30, word, time.Second)))
			r := b.node(agent)
			for i := range 100 {
				b.begin(r, thread.ID(fmt.Sprint("t", i)), "r1")
			}
			got := <-b.drain(r, time.Minute)
			same(b, "ended", 100, got.ended)
			same(b, "error", nil, got.err)
			same(b, "took", time.Minute, got.took)
			for i := range 100 {
				id := thread.ID(fmt.Sprint("t", i))
				same(b, "runs", 1, len(b.ended(id)))
				same(b, "outcome", "shut_down shut_down", b.last(id).outcome())
			}
			same(b, "records", 100, b.past.saved())
			same(b, "abandoned", 0, r.Abandoned())
		})
	})
	t.Run("an agent that ignores it does not hold it up", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Hang("go")})
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			got := <-b.drain(r, time.Minute)
			same(b, "ended", 1, got.ended)
			same(b, "took", time.Minute+grace, got.took)
			same(b, "outcome", "shut_down shut_down", b.last("t").outcome())
			same(b, "abandoned", 1, r.Abandoned())
			agent.Release("go")
		})
	})
	t.Run("runs that cannot be saved are said to be left", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, nil))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			b.past.fail(thread.ErrUnavailable)
			got := <-b.drain(r, time.Minute)
			same(b, "ended", 1, got.ended)
			same(b, "error", true, got.err != nil)
			same(b, "took", 2*time.Minute, got.took)
		})
	})
}

func TestDrainRefuses(t *testing.T) {
	t.Run("new runs, but answers for the old ones", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			first := b.begin(r, "t", "r1")
			result := b.drain(r, time.Minute)
			synctest.Wait()
			for _, id := range []thread.ID{"t", "u"} {
				_, err := r.Run(b.Context(), request(id, "r2"))
				same(b, "draining", true, errors.Is(err, thread.ErrDraining))
			}
			same(b, "answer", first, b.begin(r, "t", "r1"))
			other := request("t", "r1")
			other.Agent = "other"
			_, err := r.Run(b.Context(), other)
			same(b, "used", true, errors.Is(err, thread.ErrRunIDUsed))
			same(b, "rows", 1, b.past.count("StartRun"))
			agent.Release("go")
			same(b, "ended", 0, (<-result).ended)
			same(b, "answer after the drain", first, b.begin(r, "t", "r1"))
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	for _, c := range []struct {
		name     string
		accepted time.Duration // after the drain began
		outcome  string
		ended    int
	}{
		{"not a run that is being accepted when it begins", time.Second, "finished", 0},
		{"not a run that is being accepted when its time is up, and ends it", 5*time.Second + 1, "shut_down shut_down", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(slow(2)))
				gate := make(chan struct{})
				b.past.inject("StartRun", 1, fault{wait: gate})
				answered := b.ask(r, "t", "r1")
				synctest.Wait()
				result := b.drain(r, 5*time.Second)
				time.AfterFunc(c.accepted, func() { close(gate) })
				same(b, "answer", thread.RunID("r1"), (<-answered).RunID)
				got := <-result
				same(b, "ended", c.ended, got.ended)
				same(b, "error", nil, got.err)
				same(b, "outcome", c.outcome, b.last("t").outcome())
			})
		})
	}
}
