package agenttest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/threadcast/threadcast/runner"
)

// Func is a [runner.Agent] made of a function.
type Func func(ctx context.Context, in runner.Input, emit func(event []byte) error) error

// Run calls f.
func (f Func) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	return f(ctx, in, emit)
}

// Agent plays scripts as a [runner.Agent] in this process. It is safe for concurrent use.
type Agent struct {
	Signals
	// IgnoreCancel is how long the agent goes on after its run was cancelled, also against errors of emit. It is
	// set before the first run.
	IgnoreCancel time.Duration

	runs      [][]Step
	cancelled chan error

	mu     sync.Mutex
	inputs []runner.Input
}

// New returns an agent whose nth run plays the nth of the scripts, and the last of them from then on.
func New(runs ...[]Step) *Agent {
	return &Agent{runs: runs, cancelled: make(chan error, 1024)}
}

// Inputs returns what the agent was run on, in order.
func (a *Agent) Inputs() []runner.Input {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.inputs)
}

// Invocations returns how often the agent was run.
func (a *Agent) Invocations() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.inputs)
}

// Cancelled returns a channel that receives the cause whenever the context of a run is done before the run has
// returned.
func (a *Agent) Cancelled() <-chan error { return a.cancelled }

// Run plays the next script.
func (a *Agent) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	stop := context.AfterFunc(ctx, func() { notify(a.cancelled, context.Cause(ctx)) })
	defer stop()
	p := &play{
		signals: &a.Signals,
		names:   newNames(string(in.ThreadID), string(in.RunID)),
		emit:    emit,
		flush:   func() {},
	}
	steps := a.begin(in)
	if a.IgnoreCancel == 0 {
		return p.perform(ctx, steps)
	}
	p.emit = func(event []byte) error { _ = emit(event); return nil }
	longer, done := outlast(ctx, a.IgnoreCancel)
	defer done()
	return p.perform(longer, steps)
}

func (a *Agent) begin(in runner.Input) []Step {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inputs = append(a.inputs, in)
	return nth(a.runs, len(a.inputs)-1)
}

// nth returns the nth of the scripts, or the last.
func nth(runs [][]Step, n int) []Step {
	if len(runs) == 0 {
		return nil
	}
	return runs[min(n, len(runs)-1)]
}

// outlast returns a context that is done d after ctx is.
func outlast(ctx context.Context, d time.Duration) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if sleep(longer, d) == nil {
			cancel(context.Cause(ctx))
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}

// notify sends without waiting: nobody counts beyond what the channel holds.
func notify[T any](ch chan T, value T) {
	select {
	case ch <- value:
	default:
	}
}
