package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// slow is the script of an agent that says n words, one after the other.
func slow(n int) []agenttest.Step {
	steps := append(script(started, open), agenttest.Repeat(n, word, 10*time.Millisecond))
	return append(steps, script(shut, finished)...)
}

// spoken returns the text of a run.
func spoken(c capture) string {
	var text strings.Builder
	for _, event := range c.events {
		if _, delta, ok := strings.Cut(event, `"delta":"`); ok {
			text.WriteString(strings.TrimSuffix(delta, `"}`))
		}
	}
	return text.String()
}

// counted is what an agent says that counts to n.
func counted(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprint(&text, i, " ")
	}
	return text.String()
}

func TestLogFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault logtest.Fault
		hangs bool
	}{
		{"fails", logtest.Fault{Err: fmt.Errorf("no answer: %w", thread.ErrUnavailable)}, false},
		{"loses its reply", logtest.Fault{Cut: true}, false},
		{"hangs", logtest.Fault{}, true},
	} {
		for nth := 1; nth <= 7; nth++ {
			t.Run(fmt.Sprintf("append %d %s", nth, c.name), func(t *testing.T) {
				bubble(t, func(b *bench) {
					r := b.node(agenttest.New(slow(5)))
					fault := c.fault
					if c.hangs {
						fault.Wait = make(chan struct{})
					}
					b.log.Inject(logtest.Append, nth, fault)
					b.begin(r, "t", "r1")
					b.pass(2 * lease)
					got := b.last("t")
					same(b, "outcome", "finished", got.outcome())
					same(b, "text", counted(5), spoken(got))
					same(b, "events", 9, len(got.events))
				})
			})
		}
	}
	t.Run("at the end of a stopped run too", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started, open}, nil))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			b.log.Inject(logtest.Append, 1, logtest.Fault{Cut: true})
			b.log.Inject(logtest.Append, 2, logtest.Fault{Err: thread.ErrUnavailable})
			b.stop(r, "t", "r1")
			synctest.Wait()
			same(b, "events", "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_FINISHED", b.last("t").types())
		})
	})
}

func TestLogIsAway(t *testing.T) {
	t.Run("altogether for less than a lease, and the run goes on", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(slow(5)))
			b.begin(r, "t", "r1")
			b.pass(25 * time.Millisecond)
			b.log.Down(thread.ErrUnavailable)
			b.pass(lease - time.Second)
			b.log.Up()
			b.pass(lease)
			got := b.last("t")
			same(b, "outcome", "finished", got.outcome())
			same(b, "text", counted(5), spoken(got))
		})
	})
	t.Run("only for writing, for an hour, and the run goes on", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(slow(5)))
			for nth := range 3600 {
				b.log.Inject(logtest.Append, nth+2, logtest.Fault{Err: thread.ErrUnavailable})
			}
			b.begin(r, "t", "r1")
			b.pass(2 * time.Hour)
			got := b.last("t")
			same(b, "outcome", "finished", got.outcome())
			same(b, "text", counted(5), spoken(got))
		})
	})
	t.Run("for writing, and the agent of a stopped run is cancelled all the same", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, nil))
			r := b.node(agent)
			stuck := make(chan struct{})
			b.log.Inject(logtest.Append, 1, logtest.Fault{Wait: stuck})
			b.begin(r, "t", "r1")
			synctest.Wait()
			stopped := make(chan thread.Stopped, 1)
			go func() {
				st, err := r.Stop(b.Context(), "t", "r1", "me")
				same(b, "error", nil, err)
				stopped <- st
			}()
			synctest.Wait()
			same(b, "waiting agents", 0, agent.Waiting("go"))
			same(b, "answers before the end is durable", 0, len(stopped))
			close(stuck)
			same(b, "stopped", true, (<-stopped).Stopped)
		})
	})
}

func TestLogLosesEntries(t *testing.T) {
	const many = 700 // more than one append takes
	for _, c := range []struct {
		name   string
		faults func(*logtest.FaultyLog)
	}{
		{"all are written again", func(*logtest.FaultyLog) {}},
		{"also when the log fails meanwhile", func(log *logtest.FaultyLog) {
			log.Inject(logtest.Append, 3, logtest.Fault{Err: thread.ErrUnavailable})
			log.Inject(logtest.Append, 5, logtest.Fault{Cut: true})
		}},
		{"also when it loses some again meanwhile", func(log *logtest.FaultyLog) {
			log.Inject(logtest.Append, 3, logtest.Fault{Err: thread.ErrGap})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				steps := append(script(started, open), agenttest.Repeat(many, word, time.Microsecond))
				steps = append(append(steps, agenttest.WaitFor("go")), script(shut, finished)...)
				agent := agenttest.New(steps)
				r := b.node(agent)
				b.begin(r, "t", "r1")
				b.pass(time.Second)
				same(b, "entries before", many+2, len(b.entries("t")))
				if err := logtest.Wipe(b.Context(), b.memory, "t"); err != nil {
					b.Fatal(err)
				}
				c.faults(b.log)
				agent.Release("go")
				b.pass(time.Second)
				got := b.last("t")
				same(b, "outcome", "finished", got.outcome())
				same(b, "text", counted(many), spoken(got))
			})
		})
	}
	t.Run("after the end, and the history has them", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(3)))
			b.past.inject("SaveRun", 1, fault{err: thread.ErrUnavailable})
			b.begin(r, "t", "r1")
			synctest.Wait()
			was := b.captures("t")
			if err := logtest.Wipe(b.Context(), b.memory, "t"); err != nil {
				b.Fatal(err)
			}
			b.pass(time.Second)
			same(b, "what is wrong", "", b.check("t", was[0]))
		})
	})
}

// prompter is a log that wakes the holder of a lease when the test says so.
type prompter struct {
	live
	asked chan struct{}
}

func (p prompter) Acquire(ctx context.Context, claim thread.Claim, ttl time.Duration) (thread.Lease, error) {
	l, err := p.live.Acquire(ctx, claim, ttl)
	l.Asked = p.asked
	return l, err
}

func (p prompter) Renew(ctx context.Context, l thread.Lease, ttl time.Duration) (thread.Lease, error) {
	l, err := p.live.Renew(ctx, l, ttl)
	l.Asked = p.asked
	return l, err
}

func TestLogThatLosesARunIsGivenItAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New(held([]string{started, open}, []string{shut, finished}))
		log := prompter{b.log, make(chan struct{})}
		r := b.nodeOn(log, agent, b.config())
		b.begin(r, "t", "r1")
		<-agent.Mark("here")
		synctest.Wait()
		same(b, "entries before", 2, len(b.entries("t")))
		if err := logtest.Wipe(b.Context(), b.memory, "t"); err != nil {
			b.Fatal(err)
		}
		log.asked <- struct{}{}
		synctest.Wait()
		same(b, "entries after, though the agent is silent", 2, len(b.entries("t")))
		agent.Release("go")
		b.pass(time.Second)
		same(b, "outcome", "finished", b.last("t").outcome())
	})
}

func TestLogRefuses(t *testing.T) {
	for _, refusal := range []error{thread.ErrTooLarge, thread.ErrCorrupt, thread.ErrEnded, errors.New("odd")} {
		t.Run(fmt.Sprint("an append with: ", refusal), func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(slow(5))
				r := b.node(agent)
				b.log.Inject(logtest.Append, 3, logtest.Fault{Err: refusal})
				b.begin(r, "t", "r1")
				b.pass(time.Second)
				same(b, "cancelled because of it", true, errors.Is(<-agent.Cancelled(), refusal))
				same(b, "active runs", 0, r.Active())
				n, err := r.Reclaim(b.Context())
				same(b, "error", nil, err)
				same(b, "reclaimed", 1, n)
				got := b.last("t")
				same(b, "outcome", "lost lost", got.outcome())
				same(b, "text is what was written before", true, strings.HasPrefix(counted(4), spoken(got)))
			})
		})
	}
}

// A log that is full takes no more events, but the end of a run: it ends with what was let in.
func TestLogFull(t *testing.T) {
	for nth := 1; nth <= 5; nth++ {
		t.Run(fmt.Sprintf("at append %d", nth), func(t *testing.T) {
			bubble(t, func(b *bench) {
				agent := agenttest.New(slow(5), script(started, finished))
				r := b.node(agent)
				b.log.Inject(logtest.Append, nth, logtest.Fault{Err: fmt.Errorf("append: %w", thread.ErrFull)})
				b.begin(r, "t", "r1")
				b.pass(2 * lease)
				got := b.last("t")
				same(b, "outcome", "failed log_full", got.outcome())
				if text := spoken(got); !strings.HasPrefix(counted(5), text) {
					t.Fatalf("the run says %q", text)
				}
				b.begin(r, "t", "r2")
				b.pass(2 * lease)
				same(b, "outcome of the next", "finished", b.last("t").outcome())
			})
		})
	}
}
