package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/runner/agui"
)

// heard is what an agent says that is asked.
func heard(ctx context.Context, r *runner.Runner, req thread.Request) (types string, err error) {
	var all []string
	err = r.Ask(ctx, req, func(event []byte) error {
		h, err := agui.ParseHeader(event)
		all = append(all, h.Type)
		return err
	})
	return strings.Join(all, " "), err
}

func TestAskingAnAgent(t *testing.T) {
	const whole = "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"
	t.Run("beside a busy thread leaves nothing", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}), answer(1))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			got, err := heard(b.Context(), r, request("t", "r2"))
			same(b, "error", nil, err)
			same(b, "events", whole, got)
			if _, there := b.past.run("t", "r2"); there {
				b.Error("it is recorded as a run")
			}
			if entries := b.entries("t"); len(entries) != 1 {
				b.Errorf("the log has %d entries", len(entries))
			}
			agent.Release("go")
		})
	})
	for name, tt := range map[string]struct {
		agent runner.Agent
		want  string
	}{
		"that begins without RUN_STARTED": {agenttest.New([]agenttest.Step{agenttest.Emit(finished)}), "RUN_STARTED RUN_FINISHED"},
		"that says nothing":               {agenttest.New(nil), "RUN_STARTED RUN_ERROR"},
		"that breaks off":                 {agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(open)}), "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END RUN_ERROR"},
		"that panics":                     {agenttest.Func(func(context.Context, runner.Input, func([]byte) error) error { panic("a bug") }), "RUN_STARTED RUN_ERROR"},
		"that sends rubbish":              {agenttest.New([]agenttest.Step{agenttest.Emit("{")}), "RUN_STARTED RUN_ERROR"},
		"that is silent":                  {agenttest.New([]agenttest.Step{agenttest.WaitFor("never")}), "RUN_STARTED RUN_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				r := b.limited(tt.agent, func(c *runner.Config) { c.MaxSilence = time.Minute })
				got, err := heard(b.Context(), r, request("t", "r1"))
				same(b, "error", nil, err)
				same(b, "events", tt.want, got)
			})
		})
	}
	t.Run("is over when nobody waits for the answer", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			r := b.node(agent)
			ctx, cancel := context.WithCancelCause(b.Context())
			gone := errors.New("the client has gone")
			time.AfterFunc(time.Second, func() { cancel(gone) })
			got, err := heard(ctx, r, request("t", "r1"))
			same(b, "error", gone, err)
			same(b, "events", "RUN_STARTED", got)
			same(b, "cause", gone, <-agent.Cancelled())
		})
	})
	t.Run("is over when the answer cannot be taken", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(held([]string{started}, []string{finished}))
			broken := errors.New("broken")
			err := b.node(agent).Ask(b.Context(), request("t", "r1"), func([]byte) error { return broken })
			same(b, "error", broken, err)
			same(b, "cause", broken, <-agent.Cancelled())
		})
	})
	t.Run("whose result is too large keeps nothing apart", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.BigResult("c", "m", 2000), agenttest.Emit(finished)})
			r := b.limited(agent, func(c *runner.Config) { c.MaxEventBytes = 1000 })
			got, err := heard(b.Context(), r, request("t", "r1"))
			same(b, "error", nil, err)
			same(b, "events", "RUN_STARTED RUN_ERROR", got)
		})
	})
	t.Run("is refused", func(t *testing.T) {
		bubble(t, func(b *bench) {
			r := b.node(agenttest.New(answer(1)))
			none := request("t", "r1")
			none.Agent = "nobody"
			bad := request("t", "r1")
			bad.Input = func(thread.RunID) ([]byte, error) { return []byte("{}"), nil }
			for want, req := range map[error]thread.Request{thread.ErrUnknownAgent: none, thread.ErrBadInput: bad} {
				if got, err := heard(b.Context(), r, req); !errors.Is(err, want) || got != "" {
					b.Errorf("%q, %v, want %v", got, err, want)
				}
			}
			if _, err := r.Drain(b.Context(), b.Context()); err != nil {
				b.Fatal(err)
			}
			_, err := heard(b.Context(), r, request("t", "r1"))
			same(b, "while it drains", fmt.Sprint(thread.ErrDraining), fmt.Sprint(err))
		})
	})
}
