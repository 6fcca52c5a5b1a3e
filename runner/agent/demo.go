package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/threadcast/threadcast/runner"
)

// DemoOptions are the particulars of a [Demo]. The zero value is fit for use.
type DemoOptions struct {
	// Speed is how many times faster than usual the demo writes and works. Zero means 1, which is about 25
	// milliseconds a word; positive infinity means without any pause. Silence that was asked for is not shortened.
	Speed float64
	// Seed decides what is left to chance: the rhythm of the words and the choice of phrases. The same seed, input
	// and run give the same events.
	Seed uint64
}

// Demo is the agent that is always there. It answers the last user message of its input, and shows on request what
// the run of an agent may hold; its first answer in a thread says what can be asked for. All its runs are
// legal in AG-UI 1.0. It is safe for concurrent use.
//
// With forwardedProps {"emit":{"count":N,"rate":R,"bytes":B,"hold":H}} it makes load instead: N text events of B
// bytes each, R in a second, or as fast as they are taken if R is zero. The delta of event number i, counted from 0,
// begins with "#i@t;", where t is the host's monotonic clock in nanoseconds. With hold the run stays open after them
// until it is cancelled. N is at most 10,000,000, R 1,000,000 and B 1 MiB; an event is never smaller
// than its frame, and has 150 bytes if B is absent or zero.
type Demo struct {
	opts DemoOptions
}

// NewDemo returns a demo agent.
func NewDemo(opts DemoOptions) *Demo {
	opts.Speed = cmp.Or(opts.Speed, 1)
	return &Demo{opts: opts}
}

// Run answers. It returns nil after RUN_FINISHED; the error of emit; the cause of ctx at once when ctx is done;
// or a [runner.AgentError]: agent_bad_input if the input asks for a load that is out of bounds or cannot be
// read, demo_failure if a failure was asked for.
func (d *Demo) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	q, err := readQuestion(in.JSON)
	if err != nil {
		return &runner.AgentError{Code: "agent_bad_input", Message: "The demo cannot use this input: " + err.Error() + ".", Err: err}
	}
	v := newVoice(in, d.opts, emit)
	if err := v.send(ctx, event{Type: "RUN_STARTED", ThreadID: v.thread, RunID: v.run, Version: "1.0"}); err != nil {
		return err
	}
	if err := q.scene()(ctx, v, q); err != nil {
		return err
	}
	return v.send(ctx, event{Type: "RUN_FINISHED", ThreadID: v.thread, RunID: v.run, Outcome: v.outcome})
}

// scene is one way to answer. It runs between RUN_STARTED and RUN_FINISHED.
type scene func(ctx context.Context, v *voice, q question) error

// scene chooses by what was asked for: the first word of the question that names a scene decides.
func (q question) scene() scene {
	switch {
	case q.load != nil:
		return makeLoad
	case len(q.resume) > 0:
		return hearDecision
	}
	for _, word := range q.words {
		if s := sceneFor(word); s != nil {
			return s
		}
	}
	if q.turn == 0 {
		return welcome
	}
	return answer
}

// sceneFor returns the scene that a word asks for, or nil. The word is in lower case.
func sceneFor(word string) scene {
	switch word {
	case "tool", "tools", "weather":
		return callTool
	case "state", "plan":
		return shareState
	case "reasoning", "reason", "think", "thinking":
		return reason
	case "approve", "approval", "interrupt":
		return askApproval
	case "silence", "silent", "quiet":
		return fallSilent
	case "fail", "failure", "error":
		return breakDown
	case "long", "essay":
		return recite("long")
	case "code", "table":
		return recite(word)
	case "help":
		return recite("menu")
	}
	return nil
}

const (
	wordPause   = 25 * time.Millisecond
	workPause   = 700 * time.Millisecond // what a pretended piece of work takes
	defaultHush = 30 * time.Second
	longestHush = 10 * time.Minute
)
