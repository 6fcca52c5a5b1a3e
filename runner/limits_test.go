package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// limited returns a node with other limits than usual.
func (b *bench) limited(a runner.Agent, set func(*runner.Config)) *runner.Runner {
	cfg := b.config()
	set(&cfg)
	return b.nodeWith(a, cfg)
}

func TestARunThatTakesTooLongIsCancelled(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(open), agenttest.Repeat(1000, word, time.Second)}, answer(1))
		r := b.limited(agent, func(c *runner.Config) { c.MaxRunTime = time.Minute })
		b.begin(r, "t", "r1")
		b.pass(59 * time.Second)
		same(b, "before", true, b.status(r).Running)
		b.pass(2 * time.Second)
		c := b.last("t")
		same(b, "end", &thread.End{Outcome: thread.OutcomeTimedOut, Message: "The run took longer than the 1m0s that it may."}, c.end)
		if last := c.events[len(c.events)-1]; !strings.Contains(last, `"outcome":{"type":"cancelled"}`) {
			t.Errorf("it ends with %s", last)
		}
		if cause := <-agent.Cancelled(); !strings.Contains(cause.Error(), "timed out") {
			t.Errorf("the agent is told %v", cause)
		}
		b.perform(r, "t", "r2")
	})
}

func TestASilentAgentTimesOut(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New([]agenttest.Step{
			agenttest.Emit(started), agenttest.Emit(open), agenttest.Repeat(5, word, 50*time.Second), agenttest.WaitFor("never"),
		}, answer(1))
		r := b.limited(agent, func(c *runner.Config) { c.MaxSilence = time.Minute })
		b.begin(r, "t", "r1")
		b.pass(4*50*time.Second + 30*time.Second)
		same(b, "before", true, b.status(r).Running)
		b.pass(31 * time.Second)
		c := b.last("t")
		same(b, "outcome", "timed_out agent_silent", c.outcome())
		if !strings.HasSuffix(c.types(), "TEXT_MESSAGE_END RUN_ERROR") {
			t.Errorf("the events are %s", c.types())
		}
		b.perform(r, "t", "r2")
	})
}

func TestAnAgentThatWaitsForTheLogIsNotSilent(t *testing.T) {
	bubble(t, func(b *bench) {
		agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(open), agenttest.Repeat(100, word, 0),
			agenttest.Emit(shut), agenttest.Emit(finished)})
		r := b.limited(agent, func(c *runner.Config) {
			c.MaxSilence, c.Lease, c.QueueBytes = time.Minute, time.Hour, 100
		})
		b.begin(r, "t", "r1")
		b.log.Down(thread.ErrUnavailable)
		b.pass(10 * time.Minute)
		b.log.Up()
		b.pass(2 * time.Second)
		same(b, "outcome", "finished", b.last("t").outcome())
	})
}

func TestARunMayHoldSoManyEvents(t *testing.T) {
	for n, want := range map[int]string{6: "finished", 7: "failed too_many_events"} {
		t.Run(fmt.Sprint(n, " events"), func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.limited(agenttest.New(answer(n-4)), func(c *runner.Config) { c.MaxEvents = 6 })
				same(b, "outcome", want, b.perform(r, "t", "r1").outcome())
				b.perform(r, "t", "r2")
			})
		})
	}
}

// vault keeps results.
type vault struct {
	mu    sync.Mutex
	kept  []thread.Result
	fails []error
}

func (v *vault) SaveResult(_ context.Context, r thread.Result) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.fails) > 0 {
		err := v.fails[0]
		v.fails = v.fails[1:]
		return err
	}
	v.kept = append(v.kept, r)
	return nil
}

func TestALargeResultIsKeptApart(t *testing.T) {
	const small = 2000
	large := func(n int) string {
		return fmt.Sprintf(`{"x":1e400,"type":"TOOL_CALL_RESULT","messageId":"big","toolCallId":"k1","content":"%s \ud800"}`, strings.Repeat("z", n))
	}
	run := func(t *testing.T, v *vault, event string, set func(*runner.Config)) capture {
		t.Helper()
		var c capture
		bubble(t, func(b *bench) {
			agent := agenttest.New(script(started, event, open, shut, finished))
			cfg := b.config()
			cfg.MaxEventBytes, cfg.MaxResultBytes = small, 10*small
			if set != nil {
				set(&cfg)
			}
			r := runner.New(runner.Stores{
				Log: b.log, Heads: b.log, Leaser: b.log, Owners: b.log, History: b.past, Records: b.past, Backlog: b.past, Line: b.past,
				Story: b.past, Results: v,
			}, agents{"a": agent}, "a", cfg)
			b.nodes = append(b.nodes, r)
			b.begin(r, "t/1", "r 1")
			b.pass(time.Minute)
			c = b.last("t/1")
		})
		return c
	}
	t.Run("and a document says where", func(t *testing.T) {
		v := &vault{fails: []error{thread.ErrUnavailable, thread.ErrUnavailable}}
		c := run(t, v, large(3*small), nil)
		same(&bench{T: t}, "outcome", "finished", c.outcome())
		if len(v.kept) != 1 || string(v.kept[0].Content) != `"`+strings.Repeat("z", 3*small)+` \ud800"` || v.kept[0].Place != 1 {
			t.Fatalf("kept is %d results", len(v.kept))
		}
		if !strings.HasPrefix(c.events[1], `{"x":1e400,"type":"TOOL_CALL_RESULT","messageId":"big","toolCallId":"k1","content":[{"type":"text",`) {
			t.Errorf("the event is %s", c.events[1])
		}
		var marker struct {
			Content []struct {
				Type   string
				Source struct{ Type, Value, MimeType string }
			}
		}
		if err := json.Unmarshal([]byte(c.events[1]), &marker); err != nil {
			t.Fatal(err)
		}
		doc := marker.Content[1]
		if doc.Type != "document" || doc.Source.Type != "url" || doc.Source.Value != "/api/threads/t%2F1/runs/r%201/results/1" {
			t.Errorf("the document is %+v", doc)
		}
	})
	for _, c := range []struct {
		name, event, want string
		v                 *vault
		set               func(*runner.Config)
	}{
		{"unless it is larger than a result may be", large(11 * small), "failed event_too_large", &vault{}, nil},
		{"unless it is something else", `{"type":"CUSTOM","name":"n","value":"` + strings.Repeat("z", 2*small) + `"}`,
			"failed event_too_large", &vault{}, nil},
		{"unless the run is full", large(3 * small), "failed run_too_large", &vault{},
			func(c *runner.Config) { c.MaxRunBytes = 2 * small }},
		{"unless it cannot be stored", large(3 * small), "failed event_too_large", &vault{fails: []error{thread.ErrBadInput}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			same(&bench{T: t}, "outcome", c.want, run(t, c.v, c.event, c.set).outcome())
			if len(c.v.kept) != 0 {
				t.Errorf("%d results are kept", len(c.v.kept))
			}
		})
	}
}
