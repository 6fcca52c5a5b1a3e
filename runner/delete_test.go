package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// tail follows a thread, and returns a channel that receives why it ended.
func (b *bench) tail(id thread.ID) <-chan error {
	over := make(chan error, 1)
	go func() {
		over <- b.memory.Tail(b.Context(), id, thread.Cursor{}, func([]thread.Entry) error { return nil })
	}()
	synctest.Wait()
	return over
}

// gone checks that nothing is left of a thread but its last run number.
func (b *bench) gone(id thread.ID, last uint64) {
	b.Helper()
	th, err := b.past.Thread(b.Context(), id)
	same(b, "error", nil, err)
	same(b, "deleted", true, th.Deleted)
	same(b, "last run", last, th.LastRun)
	same(b, "entries", 0, len(b.entries(id)))
	_, err = b.memory.Holder(b.Context(), id)
	same(b, "released", true, errors.Is(err, thread.ErrNotFound))
}

func TestDelete(t *testing.T) {
	t.Run("an idle thread", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			over := b.tail("t")
			same(b, "error", nil, r.Delete(b.Context(), "t", "me"))
			same(b, "end of the tail", thread.ErrDeleted, <-over)
			b.gone("t", 1)
			same(b, "number of the next run", uint64(2), b.perform(r, "t", "r1").number)
		})
	})
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprint("a thread in mid run, elsewhere: ", elsewhere), func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held([]string{started, open}, nil), answer(1))
				r := b.node(agent)
				from := r
				if elsewhere {
					from = b.node(agent)
				}
				b.begin(r, "t", "r1")
				over := b.tail("t")
				same(b, "error", nil, from.Delete(b.Context(), "t", "me"))
				same(b, "cancelled", 1, len(agent.Cancelled()))
				same(b, "end of the tail", thread.ErrDeleted, <-over)
				b.gone("t", 1)
				b.pass(time.Minute)
				b.gone("t", 1)
				got := b.perform(from, "t", "r1")
				same(b, "number of the next run", uint64(2), got.number)
				same(b, "outcome", "finished", got.outcome())
			})
		})
	}
	t.Run("a thread that never was, and one that was deleted", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			same(b, "unknown", true, errors.Is(r.Delete(b.Context(), "t", "me"), thread.ErrNotFound))
			b.perform(r, "t", "r1")
			same(b, "first", nil, r.Delete(b.Context(), "t", "me"))
			same(b, "second", true, errors.Is(r.Delete(b.Context(), "t", "me"), thread.ErrNotFound))
			b.gone("t", 1)
		})
	})
	t.Run("a thread twice at once", func(t *testing.T) {
		for range 50 {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(held([]string{started}, nil)))
				b.begin(r, "t", "r1")
				synctest.Wait()
				errs := make([]error, 2)
				var both sync.WaitGroup
				for i := range errs {
					both.Go(func() { errs[i] = r.Delete(b.Context(), "t", "me") })
				}
				both.Wait()
				if errs[0] != nil {
					errs[0], errs[1] = errs[1], errs[0]
				}
				same(b, "one", nil, errs[0])
				same(b, "the other", true, errors.Is(errs[1], thread.ErrNotFound))
				b.gone("t", 1)
			})
		}
	})
}

func TestDeleteRacingRuns(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(slow(2))
		nodes := []*runner.Runner{b.node(agent), b.node(agent)}
		var all sync.WaitGroup
		accepted := make([]int, 4)
		for i := range accepted {
			all.Go(func() {
				for n := range 100 {
					id := thread.RunID(fmt.Sprint("r", i, "-", n))
					_, err := nodes[i%2].Run(b.Context(), request("t", id))
					switch {
					case err == nil:
						accepted[i]++
					case errors.Is(err, thread.ErrRunning):
						b.rest(3 * time.Millisecond)
					default:
						b.Errorf("run %s: %v", id, err)
					}
				}
			})
		}
		for i := range nodes {
			all.Go(func() {
				for range 50 {
					b.rest(7 * time.Millisecond)
					if err := nodes[i].Delete(b.Context(), "t", "me"); err != nil && !errors.Is(err, thread.ErrNotFound) {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.pass(time.Minute)
		total := 0
		for _, n := range accepted {
			total += n
		}
		th, err := b.past.Thread(b.Context(), "t")
		same(b, "error", nil, err)
		same(b, "runs accepted", uint64(total), th.LastRun)
		same(b, "invocations", total, agent.Invocations())
		for _, c := range b.ended("t") { // whatever is left is whole
			same(b, "outcome", "finished", c.outcome())
		}
	})
}

func TestDeleteWhenStoresAreAway(t *testing.T) {
	t.Run("a history that is away means that nothing was done", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			b.past.inject("DeleteThread", 1, fault{err: thread.ErrUnavailable})
			same(b, "unavailable", true, errors.Is(r.Delete(b.Context(), "t", "me"), thread.ErrUnavailable))
			same(b, "outcome", "finished", b.perform(r, "t", "r2").outcome())
			same(b, "runs", 2, len(b.ended("t")))
		})
	})
	t.Run("a log that is away for a while is waited for, and the lease kept", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			for nth := range 60 {
				b.log.Inject(logtest.Forget, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
			deleted := make(chan error, 1)
			go func() { deleted <- r.Delete(b.Context(), "t", "me") }()
			b.pass(2 * lease)
			same(b, "answers", 0, len(deleted))
			_, err := b.memory.Holder(b.Context(), "t")
			same(b, "lease is held", nil, err)
			same(b, "error", nil, <-deleted)
			b.gone("t", 1)
		})
	})
	t.Run("a log that stays away is cleared by a reclaim", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			b.perform(r, "t", "r1")
			for nth := range 60 {
				b.log.Inject(logtest.Forget, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			defer cancel()
			err := r.Delete(ctx, "t", "me")
			same(b, "unavailable", true, errors.Is(err, thread.ErrUnavailable))
			for nth := range 60 { // none of the faults is left
				b.log.Inject(logtest.Forget, nth+1, logtest.Fault{})
			}
			over := b.tail("t")
			b.pass(2 * lease)
			b.reclaims(r, 0)
			same(b, "end of the tail", thread.ErrDeleted, <-over)
			b.gone("t", 1)
		})
	})
	t.Run("who no longer waits gets the reason", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Hang("go")})
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			ctx, cancel := context.WithTimeout(b.Context(), grace/2)
			defer cancel()
			err := r.Delete(ctx, "t", "me")
			same(b, "deadline", true, errors.Is(err, context.DeadlineExceeded))
			b.pass(grace)
			same(b, "outcome", "stopped", b.last("t").outcome())
			agent.Release("go")
		})
	})
}

func TestDeletionThatComesTooLateDeletesNothing(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(answer(1), held([]string{started}, []string{finished}))
		slow, other := b.node(agent), b.node(agent)
		b.perform(slow, "t", "r1")
		gate := make(chan struct{})
		b.past.inject("DeleteThread", 1, fault{wait: gate})
		for i := range 100 { // as if the node stood still
			b.log.Inject(logtest.Renew, i+1, logtest.Fault{Wait: gate})
		}
		deleted := make(chan error, 1)
		go func() { deleted <- slow.Delete(b.Context(), "t", "me") }()
		b.pass(lease + 10*time.Second)
		b.begin(other, "t", "r2")
		<-agent.Mark("here")
		close(gate)
		if err := <-deleted; !errors.Is(err, thread.ErrLeaseLost) {
			b.Errorf("the deletion: %v", err)
		}
		agent.Release("go")
		synctest.Wait()
		same(b, "runs", 2, len(b.ended("t")))
		same(b, "second", "finished", b.last("t").outcome())
	})
}

func TestDeletionWhoseAnswerIsLostIsFinished(t *testing.T) {
	for name, finish := range map[string]func(b *bench, r *runner.Runner){
		"by a reclaim": func(b *bench, r *runner.Runner) {
			b.pass(lease)
			if _, err := r.Reclaim(b.Context()); err != nil {
				b.Error(err)
			}
		},
		"by another try": func(b *bench, r *runner.Runner) {
			if err := r.Delete(b.Context(), "t", "me"); !errors.Is(err, thread.ErrNotFound) {
				b.Errorf("another deletion: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.node(agenttest.New(answer(1)))
				b.perform(r, "t", "r1")
				tail := b.tail("t")
				b.past.inject("DeleteThread", 1, fault{err: thread.ErrUnavailable, cut: true})
				if err := r.Delete(b.Context(), "t", "me"); !errors.Is(err, thread.ErrUnavailable) {
					b.Errorf("the deletion: %v", err)
				}
				finish(b, b.node(agenttest.New()))
				same(b, "entries", 0, len(b.entries("t")))
				same(b, "deleted", true, errors.Is(<-tail, thread.ErrDeleted))
				_, err := b.memory.Holder(b.Context(), "t")
				same(b, "released", true, errors.Is(err, thread.ErrNotFound))
			})
		})
	}
}
