package web_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// talk is a run with text, a tool call and a step, of about n events.
func talk(n int, apart time.Duration) []agenttest.Step {
	return []agenttest.Step{
		agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(n, word, apart), agenttest.Emit(end),
		agenttest.Emit(`{"type":"STEP_STARTED","stepName":"s"}`),
		agenttest.Emit(`{"type":"TOOL_CALL_START","toolCallId":"c-{run}","toolCallName":"f","parentMessageId":"m-{run}"}`),
		agenttest.Repeat(n/2, `{"type":"TOOL_CALL_ARGS","toolCallId":"c-{run}","delta":"{i}"}`, apart),
		agenttest.Emit(`{"type":"TOOL_CALL_END","toolCallId":"c-{run}"}`),
		agenttest.Emit(`{"type":"STEP_FINISHED","stepName":"s"}`),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"n-{run}","role":"assistant"}`),
		agenttest.Repeat(n/2, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"n-{run}","delta":"{i};"}`, apart),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_END","messageId":"n-{run}"}`), agenttest.Emit(finished),
	}
}

func TestAPageIsExactWhereverItsSocketsBreak(t *testing.T) {
	for _, mode := range []string{"run", "connect", "history"} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, plan{agent: agenttest.New(talk(40, 200*time.Microsecond))})
			var mu sync.Mutex
			var opened, refused int
			var group sync.WaitGroup
			for worker := range 4 {
				random := rand.New(rand.NewPCG(uint64(worker), 7))
				group.Go(func() {
					for i := range 17 {
						p, err := s.broken(fmt.Sprintf("t%d-%d", worker, i), mode, random)
						if err != nil {
							t.Errorf("%s: %v, at %s after %s", p.thread, err, p.cursor, p.types())
							return
						}
						mu.Lock()
						opened, refused = opened+p.opened, refused+p.refused
						mu.Unlock()
					}
				})
			}
			group.Wait()
			t.Logf("measured: 68 pages: %d sockets were let in, %d refused", opened, refused)
		})
	}
}

// broken opens a page on a thread, breaks its socket at random moments, and checks what it has in the end.
func (s *site) broken(id, mode string, random *rand.Rand) (*page, error) {
	ctx := within(s.T)
	var p *page
	switch mode {
	case "run":
		s.start(id, "r1")
		p = s.runs(id, "r1")
	case "connect":
		s.start(id, "r1")
		p = s.connects(id, nil)
	case "history":
		s.start(id, "r0")
		s.saved(id, "r0")
		s.start(id, "r1")
		p = s.connects(id, nil)
	}
	if err := p.join(ctx); err != nil {
		return p, err
	}
	for range 1 + random.IntN(3) {
		n := len(p.events) + random.IntN(40)
		if err := p.follow(ctx, func() bool { return len(p.events) >= n }); err != nil {
			break // it is done already
		}
		if err := p.cut(ctx); err != nil || p.done {
			return p, err
		}
		if err := p.join(ctx); err != nil {
			return p, err
		}
	}
	if err := p.finish(ctx); err != nil {
		return p, err
	}
	if got, want := p.messages(), s.truth(id); got != want {
		return p, fmt.Errorf("the page has\n%.2000s\nand the server\n%.2000s", got, want)
	}
	return p, nil
}
