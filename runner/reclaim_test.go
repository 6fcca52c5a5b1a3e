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

	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// left makes a run as an owner left it that went away: with these events in the log, and with an end if it has an
// outcome. It returns the lease, which is still held.
func (b *bench) left(id thread.ID, run thread.RunID, end thread.Outcome, events ...string) thread.Lease {
	b.Helper()
	lease, err := b.memory.Acquire(b.Context(), thread.Claim{Thread: id, RunID: run, Owner: "gone"}, lease)
	if err != nil {
		b.Fatal(err)
	}
	row, err := b.past.StartRun(b.Context(), thread.Run{
		Thread: id, ID: run, Agent: "a", Owner: "gone", Token: lease.Token, Accepted: time.Now(),
		Input: fmt.Appendf(nil, `{"threadId":%q,"runId":%q,"messages":[]}`, id, run),
	})
	if err != nil {
		b.Fatal(err)
	}
	var entries []thread.Entry
	for i, event := range events {
		event = strings.NewReplacer("{thread}", string(id), "{run}", string(run)).Replace(event)
		entries = append(entries, thread.Entry{
			Run: row.Number, RunID: run, Seq: uint64(i + 1), Kind: thread.KindEvent, Data: []byte(event),
		})
	}
	if end != "" {
		entries = append(entries, thread.Entry{
			Run: row.Number, RunID: run, Seq: uint64(len(events) + 1), Kind: thread.KindEnd,
			Data: fmt.Appendf(nil, `{"outcome":%q,"by":"x"}`, end),
		})
	}
	if err := b.memory.Append(b.Context(), lease, entries); err != nil {
		b.Fatal(err)
	}
	return lease
}

// reclaims lets a node reclaim, which must find this many runs.
func (b *bench) reclaims(r *runner.Runner, want int) {
	b.Helper()
	n, err := r.Reclaim(b.Context())
	if err != nil || n != want {
		b.Fatalf("reclaimed %d, want %d: %v", n, want, err)
	}
}

func TestReclaim(t *testing.T) {
	for _, c := range []struct {
		name    string
		events  []string
		end     thread.Outcome
		want    string
		outcome string
	}{
		{"a run without entries", nil, "", "RUN_STARTED RUN_ERROR", "lost lost"},
		{"a run in mid text", []string{started, open, word}, "",
			"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_ERROR", "lost lost"},
		{"a run in mid step", []string{started, `{"type":"STEP_STARTED","stepName":"s"}`}, "",
			"RUN_STARTED STEP_STARTED STEP_FINISHED RUN_ERROR", "lost lost"},
		{"a run that finished but has no end", []string{started, finished}, "", "RUN_STARTED RUN_FINISHED", "finished"},
		{"a run that asked but has no end", []string{started, asks}, "", "RUN_STARTED RUN_FINISHED", "waiting"},
		{"a run that failed but has no end", []string{started, open, `{"type":"RUN_ERROR","message":"no","code":"c","usage":[ 1e400 ]}`}, "",
			"RUN_STARTED TEXT_MESSAGE_START RUN_ERROR", "failed c"},
		{"a run that was only not saved", []string{started, finished}, thread.OutcomeStopped, "RUN_STARTED RUN_FINISHED", "stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(answer(1)))
				b.left("t", "r1", c.end, c.events...)
				b.reclaims(r, 0) // somebody holds it
				b.pass(lease)
				b.reclaims(r, 1)
				got := b.last("t")
				same(b, "events", c.want, got.types())
				same(b, "outcome", c.outcome, got.outcome())
				run, _ := b.past.run("t", "r1")
				same(b, "pending", strings.Contains(c.outcome, "waiting"), len(run.Pending) > 0)
				same(b, "usage", map[string]string{"failed c": "[ 1e400 ]"}[c.outcome], string(run.Usage))
				same(b, "owner", true, strings.HasPrefix(run.Owner, "node/"))
				b.reclaims(r, 0)
				_, err := b.memory.Holder(b.Context(), "t")
				same(b, "released", true, errors.Is(err, thread.ErrNotFound))
				same(b, "next run", "finished", b.perform(r, "t", "r2").outcome())
				b.pass(24 * time.Hour)
				same(b, "entries after the retention", 0, len(b.entries("t")))
			})
		})
	}
	t.Run("a run whose lease was given up", func(t *testing.T) {
		bubble(t, func(b *bench) {
			if err := b.memory.Release(b.Context(), b.left("t", "r1", "", started)); err != nil {
				b.Fatal(err)
			}
			b.reclaims(b.node(agenttest.New()), 1)
			same(b, "outcome", "lost lost", b.last("t").outcome())
		})
	})
}

func TestReclaimBesideOthers(t *testing.T) {
	t.Run("a run by two nodes at once, once", func(t *testing.T) {
		for range 100 {
			bubble(t, func(b *bench) {
				b.left("t", "r1", "", started, open)
				b.pass(lease)
				var both sync.WaitGroup
				counts := make([]int, 4)
				for i := range counts {
					r := b.node(agenttest.New())
					both.Go(func() {
						var err error
						if counts[i], err = r.Reclaim(b.Context()); err != nil {
							b.Error(err)
						}
					})
				}
				both.Wait()
				same(b, "reclaimed", 1, counts[0]+counts[1]+counts[2]+counts[3])
				same(b, "records", 1, b.past.saved())
				same(b, "outcome", "lost lost", b.last("t").outcome())
			})
		}
	})
	t.Run("a run on the way of the next one", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r := b.node(agent)
			b.left("t", "r1", "", started, `{"type":"TEXT_MESSAGE_START","messageId":"u-r2","role":"assistant"}`)
			_, err := r.Run(b.Context(), request("t", "r2"))
			same(b, "busy while it is held", true, errors.Is(err, thread.ErrRunning))
			b.pass(lease)
			acc := b.begin(r, "t", "r2")
			same(b, "cursor", thread.Cursor{Run: 2}, acc.Cursor)
			synctest.Wait()
			runs := b.ended("t")
			same(b, "first", "lost lost", runs[0].outcome())
			same(b, "second", "finished", runs[1].outcome())
			same(b, "messages that the lost run made are known", true,
				strings.Contains(runs[1].events[0], `"messages":[]`))
			same(b, "invocations", 1, agent.Invocations())
		})
	})
	t.Run("what another node is reclaiming is waited for, not refused", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(answer(1))
			r, other := b.node(agent), b.node(agent)
			b.left("t", "r1", "", started)
			b.pass(lease)
			gate := make(chan struct{})
			b.past.inject("SaveRun", 1, fault{wait: gate})
			reclaimed := make(chan int, 1)
			go func() {
				n, err := other.Reclaim(b.Context())
				same(b, "error", nil, err)
				reclaimed <- n
			}()
			synctest.Wait()
			time.AfterFunc(time.Second, func() { close(gate) })
			b.begin(r, "t", "r2")
			same(b, "reclaimed", 1, <-reclaimed)
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
}

func TestReclaimOfMany(t *testing.T) {
	t.Run("this node's own runs are no obstacle, however many", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			for i := range 250 {
				b.begin(r, thread.ID(fmt.Sprint("t", i)), "r1")
			}
			if err := b.memory.Release(b.Context(), b.left("u", "r1", "", started)); err != nil {
				b.Fatal(err)
			}
			b.reclaims(r, 1)
			synctest.Wait()
			agent.Release("go")
		})
	})
	t.Run("nor are the runs of others", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			other := b.node(agent)
			for i := range 250 {
				b.begin(other, thread.ID(fmt.Sprint("t", i)), "r1")
			}
			// With the records of its lease the log has lost all trace of this one.
			if err := b.memory.Release(b.Context(), b.left("u", "r1", "", started)); err != nil {
				b.Fatal(err)
			}
			r := b.node(agenttest.New())
			b.reclaims(r, 0)
			b.reclaims(r, 0)
			b.reclaims(r, 1)
			synctest.Wait()
			agent.Release("go")
		})
	})
	t.Run("watching nodes find them soon after their leases expire, each once", func(t *testing.T) {
		bubble(t, func(b *bench) {
			const runs = 300
			for i := range runs {
				b.left(thread.ID(fmt.Sprint("t", i)), "r1", "", started)
			}
			watch, end := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range 3 {
				r := b.node(agenttest.New())
				all.Go(func() { r.Watch(watch) })
			}
			b.pass(lease - time.Second)
			same(b, "while they are held", 0, b.past.saved())
			b.pass(6 * time.Second)
			same(b, "5 s after that", runs, b.past.saved())
			end()
			all.Wait()
			for i := range runs {
				same(b, "outcome", "lost lost", b.last(thread.ID(fmt.Sprint("t", i))).outcome())
			}
		})
	})
	t.Run("more than are looked for at a time", func(t *testing.T) {
		bubble(t, func(b *bench) {
			for i := range 250 {
				b.left(thread.ID(fmt.Sprint("t", i)), "r1", "", started)
			}
			b.pass(lease)
			r := b.node(agenttest.New())
			total, rounds := 0, 0
			for {
				n, err := r.Reclaim(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if n == 0 {
					break
				}
				total += n
				rounds++
			}
			same(b, "reclaimed", 250, total)
			same(b, "rounds", true, rounds <= 3)
		})
	})
}

func TestReclaimWhenStoresAreAway(t *testing.T) {
	t.Run("one that cannot be finished does not keep it from the others", func(t *testing.T) {
		bubble(t, func(b *bench) {
			for i := range 3 {
				b.left(thread.ID(fmt.Sprint("t", i)), "r1", "", started)
			}
			b.pass(lease)
			r := b.node(agenttest.New())
			b.log.Inject(logtest.Read, 2, logtest.Fault{Err: thread.ErrUnavailable})
			n, err := r.Reclaim(b.Context())
			same(b, "reclaimed", 2, n)
			same(b, "unavailable", true, errors.Is(err, thread.ErrUnavailable))
			b.reclaims(r, 1)
			for i := range 3 {
				same(b, "outcome", "lost lost", b.last(thread.ID(fmt.Sprint("t", i))).outcome())
			}
		})
	})
	for _, method := range []string{"Unfinished", "TakeRun", "SaveRun"} {
		t.Run("a failure of "+method+" is made up for", func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.left("t", "r1", "", started, open)
				b.pass(lease)
				r := b.node(agenttest.New())
				b.past.inject(method, 1, fault{err: thread.ErrUnavailable, cut: true})
				watch, stop := context.WithCancel(b.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					r.Watch(watch)
				}()
				b.pass(2 * lease)
				stop()
				<-done
				same(b, "outcome", "lost lost", b.last("t").outcome())
				same(b, "records", 1, b.past.saved())
			})
		})
	}
	t.Run("it ends when it is told to, also while the history is away", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.left("t", "r1", "", started)
			b.pass(lease)
			r := b.node(agenttest.New())
			for nth := range 1000 {
				b.past.inject("SaveRun", nth+1, fault{err: thread.ErrUnavailable})
			}
			ctx, cancel := context.WithTimeout(b.Context(), 10*lease)
			defer cancel()
			began := time.Now()
			n, err := r.Reclaim(ctx)
			same(b, "reclaimed", 0, n)
			same(b, "error", true, err != nil)
			same(b, "took", 10*lease, time.Since(began))
		})
	})
	t.Run("it takes no run whose lease it cannot keep", func(t *testing.T) {
		bubble(t, func(b *bench) {
			b.left("t", "r1", "", started)
			b.pass(lease)
			r := b.node(agenttest.New())
			gate := make(chan struct{})
			b.past.inject("SaveRun", 1, fault{wait: gate})
			for nth := range 1000 {
				b.log.Inject(logtest.Renew, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
			n, err := r.Reclaim(b.Context())
			same(b, "reclaimed", 0, n)
			same(b, "error", true, err != nil)
			same(b, "records", 0, b.past.saved())
			b.reclaims(b.node(agenttest.New()), 1)
		})
	})
}

func TestReclaimClearsDeletions(t *testing.T) {
	t.Run("that an owner left half done", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			if _, err := b.memory.Acquire(b.Context(), thread.Claim{Thread: "t", Owner: "gone"}, lease); err != nil {
				b.Fatal(err)
			}
			if err := b.past.DeleteThread(b.Context(), historytest.Holding("t")); err != nil {
				b.Fatal(err)
			}
			b.pass(lease)
			b.reclaims(r, 0)
			same(b, "entries", 0, len(b.entries("t")))
			abandoned, err := b.memory.Abandoned(b.Context(), 10)
			same(b, "error", nil, err)
			same(b, "abandoned leases", 0, len(abandoned))
		})
	})
	t.Run("also when a new run comes first", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			if err := b.past.DeleteThread(b.Context(), historytest.Holding("t")); err != nil {
				b.Fatal(err)
			}
			b.begin(r, "t", "r2")
			synctest.Wait()
			runs := b.ended("t")
			same(b, "runs", 1, len(runs))
			same(b, "number", uint64(2), runs[0].number)
		})
	})
	t.Run("and leaves a thread alone that was not deleted", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			for _, id := range []thread.ID{"t", "never"} {
				if _, err := b.memory.Acquire(b.Context(), thread.Claim{Thread: id, Owner: "gone"}, lease); err != nil {
					b.Fatal(err)
				}
			}
			b.pass(lease)
			b.reclaims(r, 0)
			same(b, "outcome", "finished", b.last("t").outcome())
		})
	})
}
