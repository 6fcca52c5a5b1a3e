package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestOrder(t *testing.T) {
	t.Run("sixteen runs at once are recorded byte for byte", func(t *testing.T) {
		bubble(t, func(b *bench) {
			const events = 2000
			odd := []string{
				`{"type":"CUSTOM","name":"n","value":%d}`,
				`{ "value" : 123456789012345678901234567890.10e-%d, "type":"CUSTOM","name":"" }`,
				`{"type":"NEW_KIND","\u0061":null,"x":[%d,{}],"x":"\ud83d"}`,
				"{\"type\":\"RAW\",\n\t\"event\":{\"é\":\"\\u0000 %d\"}}",
			}
			emitted := func(id thread.ID) []string {
				var all []string
				for i := range events {
					all = append(all, fmt.Sprintf(odd[(i+len(id))%len(odd)], i))
				}
				return all
			}
			r := b.node(agenttest.Func(func(_ context.Context, in runner.Input, emit func([]byte) error) error {
				names := strings.NewReplacer("{thread}", string(in.ThreadID), "{run}", string(in.RunID))
				for _, event := range append(emitted(in.ThreadID), names.Replace(finished)) {
					if err := emit([]byte(event)); err != nil {
						return err
					}
				}
				return nil
			}))
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() { <-b.ask(r, thread.ID(fmt.Sprint("t", i)), "r1") })
			}
			all.Wait()
			synctest.Wait()
			for i := range 16 {
				id := thread.ID(fmt.Sprint("t", i))
				got := b.last(id)
				same(b, "outcome", "finished", got.outcome())
				same(b, "events of "+string(id), emitted(id), got.events[1:len(got.events)-1])
			}
		})
	})
	t.Run("appends grow while one is under way", func(t *testing.T) {
		bubble(t, func(b *bench) {
			agent := agenttest.New(append(append(script(started, open), agenttest.Mark("here"), agenttest.WaitFor("go"),
				agenttest.Repeat(1000, word, 0), agenttest.Mark("said")), script(shut, finished)...))
			r := b.node(agent)
			b.begin(r, "t", "r1")
			synctest.Wait()
			before := b.log.Calls(logtest.Append)
			gate := make(chan struct{})
			b.log.Inject(logtest.Append, 1, logtest.Fault{Wait: gate})
			agent.Release("go")
			synctest.Wait()
			close(gate)
			synctest.Wait()
			same(b, "outcome", "finished", b.last("t").outcome())
			if n := b.log.Calls(logtest.Append) - before; n > 2+1000/256+1 {
				b.Errorf("%d appends", n)
			}
		})
	})
}

// play is what happens to a run: a script, and what meets it.
type play struct {
	steps  []agenttest.Step
	stop   time.Duration // when it is stopped; negative for never
	drain  time.Duration // when its node is drained
	faults map[int]logtest.Fault
}

// plays generates plays.
func plays(t *rapid.T) play {
	events := []string{
		started, open, word, shut, custom, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`,
		`{"type":"STEP_STARTED","stepName":"s"}`, `{"type":"STEP_FINISHED","stepName":"s"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"k","role":"assistant","delta":"a"}`, `{"type":"STATE_DELTA","delta":[]}`,
		`{"type":"REASONING_START","messageId":"q"}`, `{"type":"REASONING_END","messageId":"q"}`,
		finished, asks, `{"type":"RUN_ERROR","message":"no"}`, `rubbish`,
	}
	p := play{faults: map[int]logtest.Fault{}}
	if rapid.IntRange(0, 3).Draw(t, "begins properly") > 0 {
		p.steps = script(started)
	}
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, len(events)+5), 0, 20).Draw(t, "steps") {
		switch {
		case n < len(events):
			p.steps = append(p.steps, agenttest.Emit(events[n]))
		default:
			p.steps = append(p.steps, agenttest.Sleep(time.Duration(1+n-len(events))*time.Millisecond))
		}
	}
	switch rapid.SampledFrom([]string{"returns", "finishes", "fails", "panics", "hangs"}).Draw(t, "ending") {
	case "finishes":
		p.steps = append(p.steps, agenttest.Emit(finished))
	case "fails":
		p.steps = append(p.steps, agenttest.Fail(errors.New("no")))
	case "panics":
		p.steps = append(p.steps, agenttest.Panic("no"))
	case "hangs":
		p.steps = append(p.steps, agenttest.WaitFor("never"))
	}
	p.stop = time.Duration(rapid.IntRange(-20, 40).Draw(t, "stop")) * time.Millisecond
	p.drain = time.Duration(rapid.IntRange(0, 80).Draw(t, "drain")) * time.Millisecond
	for nth := range 8 {
		switch rapid.IntRange(0, 8).Draw(t, "fault") {
		case 0:
			p.faults[nth+1] = logtest.Fault{Err: thread.ErrUnavailable}
		case 1:
			p.faults[nth+1] = logtest.Fault{Cut: true}
		}
	}
	return p
}

// perform plays, and tells what is wrong with the outcome.
func (p play) perform(b *bench) string {
	r := b.node(agenttest.New(p.steps))
	for nth, fault := range p.faults {
		b.log.Inject(logtest.Append, nth, fault)
	}
	b.begin(r, "t", "r1")
	var both sync.WaitGroup
	if p.stop >= 0 {
		both.Go(func() {
			b.rest(p.stop)
			if _, err := r.Stop(b.Context(), "t", "r1", "me"); err != nil && !errors.Is(err, thread.ErrDraining) {
				b.Error(err)
			}
		})
	}
	both.Go(func() {
		b.rest(p.drain)
		soft, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := r.Drain(soft, b.Context()); err != nil {
			b.Error(err)
		}
	})
	both.Wait()
	runs := b.captures("t")
	asked := len(runs) == 2 && runs[0].outcome() == "waiting" && runs[1].outcome() == "stopped" // what it asked was dismissed
	if len(runs) != 1 && !asked {
		return fmt.Sprintf("%d runs", len(runs))
	}
	for _, c := range runs {
		if wrong := b.check("t", c); wrong != "" {
			return wrong
		}
	}
	return ""
}

func TestEveryRunEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plays(rt)
		var wrong string
		bubble(t, func(b *bench) { wrong = p.perform(b) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
