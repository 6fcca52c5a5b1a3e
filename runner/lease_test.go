package runner_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// rob takes a thread's lease away from whoever holds it.
func (b *bench) rob(id thread.ID) thread.Lease {
	b.Helper()
	held, err := b.memory.Holder(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	if err := b.memory.Release(b.Context(), held); err != nil {
		b.Fatal(err)
	}
	robbed, err := b.memory.Acquire(b.Context(), thread.Claim{Thread: id, RunID: held.RunID, Owner: "robber"}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	return robbed
}

func TestLeaseIsTaken(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string
		after  []string
		within time.Duration
	}{
		{"from a silent agent, the next renewal tells", []string{started, open}, nil, lease / 3},
		{"from a talking agent, the next append tells", []string{started, open}, []string{custom, custom, custom}, 0},
		{"from an agent that is about to finish", []string{started}, []string{finished}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				script := held(c.before, c.after)
				if c.after == nil {
					script = append(script, agenttest.Hang("never"))
				}
				agent := agenttest.New(append(script, agenttest.WaitFor("never")))
				r := b.node(agent)
				b.begin(r, "t", "r1")
				<-agent.Mark("here")
				synctest.Wait()
				before := b.entries("t")
				b.rob("t")
				taken := time.Now()
				if c.after != nil {
					agent.Release("go")
				}
				if cause := <-agent.Cancelled(); !errors.Is(cause, thread.ErrLeaseLost) && len(c.after) != 1 {
					b.Errorf("cause is %v", cause)
				}
				if took := time.Since(taken); took > c.within {
					b.Errorf("it took %v", took)
				}
				b.pass(time.Minute)
				same(b, "entries", before, b.entries("t"))
				same(b, "saves", 0, b.past.count("SaveRun"))
				same(b, "active runs", 0, r.Active())
				held, err := b.memory.Holder(b.Context(), "t")
				same(b, "error", nil, err)
				same(b, "holder", "robber", held.Owner)
				agent.Release("never")
				synctest.Wait()
				if err := b.memory.Release(b.Context(), held); err != nil {
					b.Fatal(err)
				}
				n, err := b.node(agent).Reclaim(b.Context())
				same(b, "error", nil, err)
				same(b, "reclaimed", 1, n)
				same(b, "outcome", "lost lost", b.last("t").outcome())
			})
		})
	}
}

func TestLeaseIsTakenAtTheEnd(t *testing.T) {
	t.Run("while the run is being saved, and the other's record counts", func(t *testing.T) {
		bubble(t, func(b *bench) {
			former, latter := make(chan struct{}), make(chan struct{})
			b.past.inject("SaveRun", 1, fault{wait: former})
			b.past.inject("SaveRun", 2, fault{wait: latter})
			r, other := b.node(agenttest.New(answer(3))), b.node(agenttest.New())
			b.begin(r, "t", "r1")
			synctest.Wait()
			before, _ := b.past.run("t", "r1")
			if err := b.memory.Release(b.Context(), b.rob("t")); err != nil {
				b.Fatal(err)
			}
			reclaimed := make(chan int, 1)
			go func() {
				n, err := other.Reclaim(b.Context())
				same(b, "error", nil, err)
				reclaimed <- n
			}()
			synctest.Wait()
			close(former)
			synctest.Wait()
			same(b, "records of the former owner", 0, b.past.saved())
			same(b, "active runs", 0, r.Active())
			close(latter)
			same(b, "reclaimed", 1, <-reclaimed)
			same(b, "records", 1, b.past.saved())
			same(b, "outcome", "finished", b.last("t").outcome())
			after, _ := b.past.run("t", "r1")
			same(b, "token is greater", true, after.Token > before.Token)
			same(b, "owner is the same", false, after.Owner == before.Owner)
		})
	})
	t.Run("and a stop of the former owner does not say that it stopped", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Hang("go")})
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			robbed := b.rob("t")
			if err := b.memory.Release(b.Context(), robbed); err != nil {
				b.Fatal(err)
			}
			b.pass(lease/3 + grace/2) // the keeper knows, the agent has not returned
			same(b, "active runs", 1, r.Active())
			st, err := r.Stop(b.Context(), "t", "", "me")
			same(b, "error", nil, err)
			same(b, "answer", thread.Stopped{}, st)
			agent.Release("go")
		})
	})
}

func TestKeeper(t *testing.T) {
	t.Run("keeps the lease of an agent that is silent for a hundred times as long", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			for range 100 {
				b.pass(lease)
				held, err := b.memory.Holder(b.Context(), "t")
				if err != nil || held.RunID != "r1" {
					b.Fatalf("the lease is %+v, %v", held, err)
				}
			}
			agent.Release("go")
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
			_, err := b.memory.Holder(b.Context(), "t")
			same(b, "released", true, errors.Is(err, thread.ErrNotFound))
		})
	})
}

func TestKeeperWhenRenewalsFail(t *testing.T) {
	// The first renewal of a run is asked for after a third of a lease.
	for _, c := range []struct {
		name   string
		faults func(log *logtest.FaultyLog)
		lostAt time.Duration // after the run began; 0 if it is not
	}{
		{"survives renewals that fail for less than a lease", func(log *logtest.FaultyLog) {
			for nth := range 20 { // four a second
				log.Inject(logtest.Renew, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
		}, 0},
		{"survives a renewal that hangs", func(log *logtest.FaultyLog) {
			log.Inject(logtest.Renew, 1, logtest.Fault{Wait: make(chan struct{})})
		}, 0},
		{"survives a renewal whose reply is lost", func(log *logtest.FaultyLog) {
			log.Inject(logtest.Renew, 1, logtest.Fault{Cut: true})
		}, 0},
		{"gives up when its trust is used up", func(log *logtest.FaultyLog) {
			for nth := range 1000 {
				log.Inject(logtest.Renew, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
		}, lease},
		{"gives up when its trust is used up by renewals that hang", func(log *logtest.FaultyLog) {
			for nth := range 1000 {
				log.Inject(logtest.Renew, nth+1, logtest.Fault{Wait: make(chan struct{})})
			}
		}, lease},
		{"counts its trust from before it asked", func(log *logtest.FaultyLog) {
			answer := make(chan struct{})
			time.AfterFunc(lease/3+4*time.Second, func() { close(answer) })
			log.Inject(logtest.Renew, 1, logtest.Fault{Wait: answer})
			for nth := range 1000 {
				log.Inject(logtest.Renew, nth+2, logtest.Fault{Err: thread.ErrUnavailable})
			}
		}, lease/3 + lease},
		{"counts its trust from before it took the lease", func(log *logtest.FaultyLog) {
			answer := make(chan struct{})
			time.AfterFunc(4*time.Second, func() { close(answer) })
			log.Inject(logtest.Acquire, 1, logtest.Fault{Wait: answer})
			for nth := range 1000 {
				log.Inject(logtest.Renew, nth+1, logtest.Fault{Err: thread.ErrUnavailable})
			}
		}, lease},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(held([]string{started}, []string{finished}))
				r := b.node(agent)
				began := time.Now()
				c.faults(b.log)
				b.begin(r, "t", "r1")
				if c.lostAt == 0 {
					b.pass(10 * lease)
					same(b, "cancellations", 0, len(agent.Cancelled()))
					agent.Release("go")
					synctest.Wait()
					same(b, "outcome", "finished", b.last("t").outcome())
					return
				}
				cause := <-agent.Cancelled()
				same(b, "lost after", c.lostAt, time.Since(began))
				same(b, "cause", true, errors.Is(cause, thread.ErrLeaseLost))
				synctest.Wait()
				same(b, "active runs", 0, r.Active())
				n, err := r.Reclaim(b.Context())
				same(b, "error", nil, err)
				same(b, "reclaimed", 1, n)
				same(b, "outcome", "lost lost", b.last("t").outcome())
			})
		})
	}
}

func TestKeeperWhenTheLogIsAway(t *testing.T) {
	t.Run("gives up with the log away, and so does the run that writes", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(slow(10000))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			b.pass(25 * time.Millisecond)
			b.log.Down(thread.ErrUnavailable)
			b.pass(2 * lease)
			same(b, "lost", true, errors.Is(<-agent.Cancelled(), thread.ErrLeaseLost))
			same(b, "active runs", 0, r.Active())
			b.log.Up()
			n, err := r.Reclaim(b.Context())
			same(b, "error", nil, err)
			same(b, "reclaimed", 1, n)
			same(b, "outcome", "lost lost", b.last("t").outcome())
		})
	})
}
