package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step is one thing that a scripted agent does. In the text of events and streams, {thread} and {run} stand for the
// ids of the run that is played.
type Step struct {
	do func(ctx context.Context, p *play) error
}

// play is one performance of a script.
type play struct {
	signals *Signals
	names   *strings.Replacer
	emit    func(event []byte) error
	raw     func(chunk []byte) error // sends a piece of the stream as it is; nil where there is no stream
	flush   func()
}

// perform plays the steps until one of them fails.
func (p *play) perform(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		err := s.do(ctx, p)
		p.flush()
		if err != nil {
			return err
		}
	}
	return nil
}

// newNames replaces {thread} and {run} by ids, written for the inside of a JSON string.
func newNames(threadID, runID string) *strings.Replacer {
	return strings.NewReplacer("{thread}", inString(threadID), "{run}", inString(runID))
}

func inString(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(quoted[1 : len(quoted)-1])
}

// Emit emits one event: exactly these bytes, whether or not they are JSON.
func Emit(event string) Step {
	return Step{func(_ context.Context, p *play) error { return p.emit([]byte(p.names.Replace(event))) }}
}

// EmitJSON emits the JSON of a value as one event. It panics if the value has none.
func EmitJSON(value any) Step {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("agenttest: event %v: %v", value, err))
	}
	return Emit(string(data))
}

// Repeat emits an event n times, this long apart, with {i} replaced by 0 to n-1.
func Repeat(n int, event string, apart time.Duration) Step {
	return Step{func(ctx context.Context, p *play) error {
		for i := range n {
			if i > 0 && apart > 0 {
				p.flush()
				if err := sleep(ctx, apart); err != nil {
					return err
				}
			}
			text := p.names.Replace(strings.ReplaceAll(event, "{i}", strconv.Itoa(i)))
			if err := p.emit([]byte(text)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// RepeatUntil emits an event again and again, this long apart, with {i} replaced by 0, 1, 2..., until the test releases the
// gate; see [Signals.Release]. In the name of the gate, too, {thread} and {run} stand for the run's ids.
func RepeatUntil(gate, event string, apart time.Duration) Step {
	return Step{func(ctx context.Context, p *play) error {
		name := p.names.Replace(gate)
		open := p.signals.enter(name)
		defer p.signals.leave(name, open)
		again := time.NewTicker(apart)
		defer again.Stop()
		for i := 0; ; i++ {
			text := p.names.Replace(strings.ReplaceAll(event, "{i}", strconv.Itoa(i)))
			if err := p.emit([]byte(text)); err != nil || open == nil {
				return err
			}
			p.flush()
			select {
			case <-again.C:
			case <-open:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}}
}

// BigResult emits a TOOL_CALL_RESULT whose content has this many bytes.
func BigResult(toolCallID, messageID string, size int) Step {
	return Step{func(_ context.Context, p *play) error {
		e := fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"%s","toolCallId":"%s","role":"tool","content":"`,
			inString(messageID), inString(toolCallID))
		event := append([]byte(p.names.Replace(e)), bytes.Repeat([]byte("x"), size)...)
		return p.emit(append(event, `"}`...))
	}}
}

// Sleep is silence.
func Sleep(d time.Duration) Step {
	return Step{func(ctx context.Context, _ *play) error { return sleep(ctx, d) }}
}

// sleep returns after d, or with the cause of ctx when ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Mark tells the test that the script has come here; see [Signals.Mark].
func Mark(name string) Step {
	return Step{func(_ context.Context, p *play) error { p.signals.reach(name); return nil }}
}

// WaitFor waits until the test releases the gate of that name; see [Signals.Release].
func WaitFor(name string) Step {
	return Step{func(ctx context.Context, p *play) error { return p.signals.wait(ctx, name) }}
}

// Hang waits like [WaitFor], but does not care whether the run is cancelled.
func Hang(name string) Step {
	return Step{func(ctx context.Context, p *play) error { return p.signals.wait(context.WithoutCancel(ctx), name) }}
}

// Panic panics. An agent behind HTTP cuts the connection instead, which is what becomes of a panic there.
func Panic(text string) Step {
	return Step{func(context.Context, *play) error { panic(panicked(text)) }}
}

// panicked is what [Panic] panics with.
type panicked string

// Fail returns err from the agent. An agent behind HTTP cuts the connection instead.
func Fail(err error) Step {
	return Step{func(context.Context, *play) error { return err }}
}

// SSE sends text as it is, as part of the stream of an agent behind HTTP, in the pieces that cut makes of it.
func SSE(text string, cut Cut) Step {
	return Step{func(ctx context.Context, p *play) error {
		if p.raw == nil {
			return errors.New("agenttest: SSE needs an agent behind HTTP")
		}
		for _, piece := range cut([]byte(p.names.Replace(text))) {
			if err := p.raw(piece); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Cut divides a stream into the pieces in which it is sent.
type Cut func(stream []byte) [][]byte

// OnePiece does not cut.
func OnePiece(stream []byte) [][]byte { return [][]byte{stream} }

// ByteByByte makes each byte a piece.
func ByteByByte(stream []byte) [][]byte { return slices.Collect(slices.Chunk(stream, 1)) }

// SplitAt cuts once, before byte i; at the end if the stream is not that long.
func SplitAt(i int) Cut {
	return func(stream []byte) [][]byte {
		n := min(i, len(stream))
		return [][]byte{stream[:n], stream[n:]}
	}
}
