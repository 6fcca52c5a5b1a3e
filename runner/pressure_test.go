package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
)

// flood is an agent that emits events of a kilobyte until it is refused.
type flood struct {
	total   atomic.Int64 // bytes taken
	refused atomic.Bool
	cause   atomic.Value
}

func (f *flood) Run(ctx context.Context, _ runner.Input, emit func([]byte) error) error {
	filler := strings.Repeat("x", 1000)
	for i := 0; ; i++ {
		event := fmt.Appendf(nil, `{"type":"CUSTOM","name":"%d","value":%q}`, i, filler)
		size := int64(len(event))
		if err := emit(event); err != nil {
			f.refused.Store(true)
			f.cause.Store(context.Cause(ctx))
			return err
		}
		f.total.Add(size)
	}
}

func TestBackpressure(t *testing.T) {
	const queue = 100 << 10
	setup := func(b *bench) (*flood, *runner.Runner, chan struct{}) {
		cfg := b.config()
		cfg.QueueBytes = queue
		agent := &flood{}
		r := b.nodeWith(agent, cfg)
		stuck := make(chan struct{})
		for nth := range 100 {
			b.log.Inject(logtest.Append, nth+1, logtest.Fault{Wait: stuck})
		}
		b.begin(r, "t", "r1")
		synctest.Wait()
		return agent, r, stuck
	}
	t.Run("an agent waits while the log is stuck, and holds no more than it may", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent, r, stuck := setup(b)
			taken := agent.total.Load()
			if limit := int64(queue + 1<<20 + 2000); taken < queue || taken > limit {
				b.Errorf("it took %d bytes, and should take %d to %d", taken, queue, limit)
			}
			b.pass(10 * lease)
			same(b, "taken after a while", taken, agent.total.Load())
			same(b, "refused", false, agent.refused.Load())
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				if _, err := r.Stop(b.Context(), "t", "", "me"); err != nil {
					b.Error(err)
				}
			}()
			synctest.Wait()
			same(b, "refused once it is stopped", true, agent.refused.Load())
			close(stuck)
			<-stopped
			synctest.Wait()
			got := b.last("t")
			same(b, "outcome", "stopped", got.outcome())
			bytes := 0
			for i, event := range got.events[1 : len(got.events)-1] {
				if !strings.HasPrefix(event, fmt.Sprintf(`{"type":"CUSTOM","name":"%d"`, i)) {
					b.Fatalf("event %d is %.40s", i, event)
				}
				bytes += len(event)
			}
			same(b, "what was taken is in the log", taken, int64(bytes))
		})
	})
	t.Run("an agent that waits is let go when the lease is lost", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent, r, _ := setup(b)
			b.rob("t")
			b.pass(2 * lease)
			same(b, "refused", true, agent.refused.Load())
			cause, _ := agent.cause.Load().(error)
			same(b, "cause", true, errors.Is(cause, thread.ErrLeaseLost))
			same(b, "active runs", 0, r.Active())
		})
	})
}
