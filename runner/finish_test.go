package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestFinish(t *testing.T) {
	t.Run("the run is saved compacted, with the ids of its messages, and leaves the log after the retention", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(100)))
			b.perform(r, "t", "r1")
			run, _ := b.past.run("t", "r1")
			same(b, "saved events", 5, len(run.Events))
			same(b, "seqs of the text", thread.Event{First: 3, Last: 102, Data: run.Events[2].Data}, run.Events[2])
			same(b, "messages", []string{"m"}, run.Messages)
			same(b, "last seq", uint64(105), run.LastSeq)
			known, err := b.past.Known(b.Context(), "t", []string{"m", "u-r1", "x"})
			same(b, "error", nil, err)
			same(b, "known", map[string]bool{"m": true, "u-r1": true}, known)
			b.pass(24*time.Hour - time.Second)
			same(b, "entries before the retention is over", 105, len(b.entries("t")))
			b.pass(time.Second)
			same(b, "entries after it", 0, len(b.entries("t")))
		})
	})
	t.Run("a run is over when its end is in the log, not when it is saved", func(t *testing.T) {
		bubble(t, func(b *bench) {
			gate := make(chan struct{})
			b.past.inject("SaveRun", 1, fault{wait: gate})
			const usage = `[ {"model":"m","inputTokens":1.0} ]`
			r := b.node(agenttest.New(script(started, strings.Replace(asks, `"outcome"`, `"usage":`+usage+`,"outcome"`, 1))))
			b.begin(r, "t", "r1")
			synctest.Wait()
			st, err := r.Status(b.Context(), "t")
			same(b, "error", nil, err)
			same(b, "running", false, st.Running)
			same(b, "cursor", thread.Cursor{Run: 1, Seq: 3}, st.Cursor)
			same(b, "outcome", thread.OutcomeWaiting, st.Latest.End.Outcome)
			same(b, "pending", `[ {"id":"i1","reason":"sure?"} ]`, string(st.Pending))
			same(b, "pending of the run", string(st.Pending), string(st.Latest.Pending))
			same(b, "usage", usage, string(st.Latest.Usage))
			close(gate)
			synctest.Wait()
			run, _ := b.past.run("t", "r1")
			same(b, "usage when saved", usage, string(run.Usage))
			saved, err := r.Status(b.Context(), "t")
			same(b, "error", nil, err)
			same(b, "pending when saved", string(st.Pending), string(saved.Pending))
			same(b, "cursor when saved", st.Cursor, saved.Cursor)
		})
	})
}

// belated is a history that something happens to after it was asked for a thread, before the answer is there.
type belated struct {
	runner.Records
	meanwhile func()
}

func (s belated) Thread(ctx context.Context, id thread.ID) (thread.Thread, error) {
	th, err := s.Records.Thread(ctx, id)
	s.meanwhile()
	return th, err
}

func TestStatusOfARunThatIsSavedMeanwhile(t *testing.T) {
	bubble(t, func(b *bench) {
		gate := make(chan struct{})
		b.past.inject("SaveRun", 1, fault{wait: gate})
		r := b.node(agenttest.New(script(started, asks)))
		b.begin(r, "t", "r1")
		synctest.Wait()
		r.Records = belated{b.past, func() {
			close(gate)
			synctest.Wait() // it is saved, and nothing of it is left on this node
		}}
		st, err := r.Status(b.Context(), "t")
		same(b, "error", nil, err)
		if st.Running || st.Latest == nil || st.Latest.End.Outcome != thread.OutcomeWaiting || len(st.Pending) == 0 {
			b.Errorf("the status is %+v", st)
		}
	})
}

func TestFinishWhenTheHistoryIsAway(t *testing.T) {
	t.Run("the run is saved when it is back, however late", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}), answer(1))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			b.past.fail(thread.ErrUnavailable)
			agent.Release("go")
			for range 100 {
				b.pass(lease)
				held, err := b.memory.Holder(b.Context(), "t")
				if err != nil || held.RunID != "r1" {
					b.Fatalf("the lease is %+v, %v", held, err)
				}
			}
			b.past.fail(nil)
			b.pass(2 * time.Second)
			same(b, "outcome", "finished", b.last("t").outcome())
			same(b, "next run", "finished", b.perform(r, "t", "r2").outcome())
		})
	})
	t.Run("a history that is slow does not cost the lease", func(t *testing.T) {
		bubble(t, func(b *bench) {
			gate := make(chan struct{})
			b.past.inject("SaveRun", 1, fault{wait: gate})
			b.past.inject("SaveRun", 2, fault{wait: gate})
			b.past.inject("SaveRun", 3, fault{wait: gate})
			r := b.node(agenttest.New(answer(1)))
			b.begin(r, "t", "r1")
			b.pass(2*lease + lease/2)
			_, err := b.memory.Holder(b.Context(), "t")
			same(b, "error", nil, err)
			same(b, "attempts", 2, b.past.count("SaveRun")) // each of 30 s, longer than the lease
			close(gate)
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("saving twice is harmless", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.past.inject("SaveRun", 1, fault{err: thread.ErrUnavailable, cut: true})
			b.log.Inject(logtest.Drop, 1, logtest.Fault{Cut: true})
			r := b.node(agenttest.New(answer(1)))
			b.begin(r, "t", "r1")
			b.pass(time.Second)
			same(b, "attempts", 2, b.past.count("SaveRun"))
			same(b, "records", 1, b.past.saved())
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
}

func TestFinishIsLeftToOthers(t *testing.T) {
	t.Run("what it refuses stays in the log, for a reclaim", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.past.inject("SaveRun", 1, fault{err: thread.ErrCorrupt})
			r := b.node(agenttest.New(answer(1)))
			b.begin(r, "t", "r1")
			b.pass(48 * time.Hour)
			same(b, "entries", 6, len(b.entries("t")))
			same(b, "said", true, b.said.contains("run not saved"))
			same(b, "active runs", 0, r.Active())
			n, err := r.Reclaim(b.Context())
			same(b, "error", nil, err)
			same(b, "reclaimed", 1, n)
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
	t.Run("a run whose row is gone leaves the log", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			if err := b.past.DeleteThread(b.Context(), historytest.Holding("t")); err != nil {
				b.Fatal(err)
			}
			agent.Release("go")
			b.pass(24 * time.Hour)
			same(b, "entries", 0, len(b.entries("t")))
			same(b, "active runs", 0, r.Active())
		})
	})
	t.Run("a lease that cannot be released is left to expire, and the next run waits for that", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.log.Inject(logtest.Release, 1, logtest.Fault{Err: thread.ErrUnavailable})
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			began := time.Now()
			same(b, "next run", "finished", b.perform(r, "t", "r2").outcome())
			if took := time.Since(began); took < lease-time.Second || took > lease+time.Second {
				b.Errorf("it took %v", took)
			}
		})
	})
}

func TestStatus(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started}, []string{finished}))
		r, other := b.node(agent), b.node(agent)
		look := func(node *runner.Runner) thread.Status {
			b.Helper()
			st, err := node.Status(b.Context(), "t")
			same(b, "error", nil, err)
			return st
		}
		same(b, "of a thread that never was", thread.Status{}, look(r))
		gate := make(chan struct{})
		b.past.inject("StartRun", 1, fault{wait: gate})
		b.ask(r, "t", "r1")
		synctest.Wait()
		same(b, "while it is accepted", thread.Status{}, look(r))
		close(gate)
		synctest.Wait()
		now := time.Now()
		b.pass(time.Minute)
		same(b, "while it runs", thread.Status{
			Running: true, RunID: "r1", Agent: "a", Cursor: thread.Cursor{Run: 1, Seq: 1}, Started: now, LastEvent: now,
		}, look(r))
		same(b, "while it runs elsewhere", thread.Status{
			Running: true, RunID: "r1", Agent: "a", Cursor: thread.Cursor{Run: 1, Seq: 1}, Started: now,
		}, look(other))
		agent.Release("go")
		synctest.Wait()
		for _, node := range []*runner.Runner{r, other} {
			st := look(node)
			same(b, "running", false, st.Running)
			same(b, "run", thread.RunID("r1"), st.RunID)
			same(b, "cursor", thread.Cursor{Run: 1, Seq: 3}, st.Cursor)
			same(b, "outcome", thread.OutcomeFinished, st.Latest.End.Outcome)
		}
		b.past.fail(thread.ErrUnavailable)
		_, err := r.Status(b.Context(), "t")
		same(b, "without a history", true, errors.Is(err, thread.ErrUnavailable))
		b.past.fail(nil)
		b.log.Down(thread.ErrUnavailable)
		_, err = r.Status(b.Context(), "t")
		same(b, "without a log", true, errors.Is(err, thread.ErrUnavailable))
	})
}
