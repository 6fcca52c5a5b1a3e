package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestExactUnderComingAndGoing lets an agent emit one long run as fast as it is taken, while many viewers join, leave and return
// at random, each time to any position that they really had. Whatever a viewer gets must be the agent's record, without a
// hole, a repeat or a change of order: byte for byte, or in compacted form word for word.
func TestExactUnderComingAndGoing(t *testing.T) {
	for name, form := range map[string]struct {
		replay string
		flags  []string
		drains bool // the log forgets the run as soon as it has ended, so that resets are right
		short  bool // is part of the short size
	}{
		"raw":                    {replay: "raw", short: true},
		"compact":                {replay: "compact"},
		"compact, log forgets":   {replay: "compact", flags: []string{"--retention", "1s"}, drains: true, short: true},
		"raw asked, log forgets": {replay: "raw", flags: []string{"--retention", "1s"}, drains: true},
	} {
		if sized(1, 0) == 0 && !form.short {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := &crowd{replay: form.replay, drains: form.drains}
			c.record = newRecording("exact", "r1", sized(20_000, 2_000), rand.New(rand.NewPCG(7, 7)))
			agents := agenttest.NewServer(t)
			agents.Handle("exact", append([]agenttest.Step{agenttest.WaitFor("go")}, c.record.script()...))
			c.n = start(t, append(form.flags, "--agent", "exact=agui:"+agents.URL("exact"), "--log-level", "warn")...)
			c.watch(sized(200, 40), func() {
				if err := c.n.tryRun("exact", load("r1", 0, 0, 0, false)); err != nil {
					t.Error(err)
				}
				agents.Release("go")
			})
			if form.drains {
				c.returnTo(20)
			}
			if form.drains && c.resets == 0 {
				t.Error("nobody returned to a place that the log had forgotten")
			}
			if !form.drains && c.resets > 0 {
				t.Errorf("%d resets came, although the log had everything", c.resets)
			}
			measured(t, "%d events, %d viewers, %d joins (%d after cuts), %d resets, %d events delivered in %s; 0 lost, 0 repeated, 0 swapped",
				len(c.record.events), sized(200, 40), c.joins, c.cuts, c.resets, c.events, c.took.Round(time.Millisecond))
		})
	}
}

// crowd is many viewers of one run.
type crowd struct {
	n      *node
	record *recording
	replay string
	drains bool

	took                  time.Duration
	mu                    sync.Mutex
	visitors              []*visitor // those who have the whole run
	joins, events, resets int
	cuts                  int
}

// watch lets viewers come and go until each has the whole run. Half of them are there before it begins.
func (c *crowd) watch(viewers int, begin func()) {
	began := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(viewers / 2)
	for i := range viewers {
		v := &visitor{crowd: c, rng: rand.New(rand.NewPCG(11, uint64(i)))}
		v.follower = follower{n: c.n, thread: "exact", replay: c.replay, mayReset: c.drains, take: v.check}
		done.Go(func() {
			err := error(nil)
			if i < viewers/2 {
				err = v.join()
				ready.Done()
			} else {
				<-began
			}
			if err == nil {
				err = v.visit()
			}
			v.drop()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.joins, c.events, c.resets, c.cuts = c.joins+v.joins, c.events+v.events, c.resets+v.resets, c.cuts+v.cuts
			if err != nil {
				c.n.t.Errorf("viewer %d after %d joins: %v", i, v.joins, err)
				return
			}
			c.visitors = append(c.visitors, v)
		})
	}
	ready.Wait()
	start := time.Now()
	begin()
	close(began)
	done.Wait()
	c.took = time.Since(start)
}

// returnTo lets some viewers come back to random places once the log has forgotten the run.
func (c *crowd) returnTo(some int) {
	eventually(c.n.t, time.Minute, "the log has forgotten the run", func() bool {
		events, err := c.n.eventsOf("exact", 1, "raw")
		return err == nil && len(events) < len(c.record.events)
	})
	for i, v := range c.visitors[:min(some, len(c.visitors))] {
		v.channel, v.pos, v.resets = nil, v.had[v.rng.IntN(len(v.had)-1)], 0
		err := v.join()
		if err == nil {
			err = v.until(func() bool { return v.pos == c.record.end(1) })
		}
		v.drop()
		if err != nil {
			c.n.t.Errorf("viewer %d, back when the log has forgotten: %v", i, err)
		}
		c.resets += v.resets
	}
}

// visitor is one of a crowd.
type visitor struct {
	follower
	crowd *crowd
	rng   *rand.Rand
	had   []thread.Cursor // positions at which it has been
	cuts  int             // sockets that ended although it wanted to read on
}

// returns is how often a visitor comes back.
const returns = 6

// visit reads, leaves and comes back, and reads to the end the last time.
func (v *visitor) visit() error {
	end := v.crowd.record.end(1)
	for left := returns; ; {
		err := error(nil)
		if v.channel == nil {
			err = v.join()
		}
		if err == nil {
			enough := v.events + 1 + v.rng.IntN(int(end.Seq)/returns)
			err = v.until(func() bool { return v.pos == end || (left > 0 && v.events >= enough) })
		}
		switch {
		case errors.Is(err, errNothingMore) && v.cuts < 10:
			// On a machine with too much to do a ping or a handshake waits for too long, and the server hangs up.
			v.cuts++
			v.drop()
			v.channel = nil
			continue
		case err != nil || left == 0:
			return err
		}
		v.goAway()
		left--
	}
}

// goAway leaves in one of the ways there are, and chooses where to go on.
func (v *visitor) goAway() {
	switch v.rng.IntN(4) {
	case 0:
		if err := v.leave(); err != nil {
			v.drop() // the socket has just ended
		}
	case 1: // joins anew on the same socket: the server ends the earlier membership
	default:
		v.drop()
	}
	v.channel = nil
	if len(v.had) > 0 && v.rng.IntN(2) == 0 {
		v.pos = v.had[v.rng.IntN(len(v.had))]
	}
}

// check compares a batch with the agent's record.
func (v *visitor) check(from, to thread.Cursor, b batch) error {
	if b.RunID != "r1" || from.Run != 1 {
		return fmt.Errorf("it is of run %s", b.RunID)
	}
	events := make([][]byte, len(b.Events))
	for i, e := range b.Events {
		events[i] = e
	}
	if err := v.crowd.record.check(from.Seq, to.Seq, events, v.replay == "compact" || v.crowd.drains); err != nil {
		return err
	}
	v.had = append(v.had, to)
	return nil
}
