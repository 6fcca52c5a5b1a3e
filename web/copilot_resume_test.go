package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// A page that comes back with any position that it was given gets exactly what followed it, with the same positions. Texts
// that are spoken at the same time leave no cut between the events of the record.
func TestEveryPositionOfARecordIsGoneOnFrom(t *testing.T) {
	for _, voices := range []int{2, 3} {
		s := open(t, plan{agent: agenttest.New(choir(voices))})
		s.finish("t", "r1")
		s.saved("t", "r1")
		whole := s.whole(s.connects("t", nil))
		within := 0
		for i, event := range whole.events {
			var e struct {
				Metadata struct {
					ID string `json:"cpki_event_id"`
				}
			}
			s.must(json.Unmarshal([]byte(event), &e))
			if strings.Contains(e.Metadata.ID, "+") {
				within++
			}
			p := s.whole(s.connects("t", &page{cursor: e.Metadata.ID}))
			if diff := cmp.Diff(whole.events[i+1:], append([]string{}, p.events...)); diff != "" {
				t.Fatalf("after %s, event %d of %d:\n%s", e.Metadata.ID, i+1, len(whole.events), diff)
			}
		}
		if within < 3 {
			t.Errorf("%d of %d positions are within", within, len(whole.events))
		}
	}
}

// choir is a run of texts that are spoken at the same time.
func choir(voices int) []agenttest.Step {
	steps := []agenttest.Step{agenttest.Emit(started)}
	each := func(event string) {
		for v := range voices {
			steps = append(steps, agenttest.Emit(strings.ReplaceAll(event, "ID", fmt.Sprint("m", v))))
		}
	}
	each(`{"type":"TEXT_MESSAGE_START","messageId":"ID","role":"assistant"}`)
	for range 3 {
		each(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"ID","delta":"la"}`)
	}
	each(`{"type":"TEXT_MESSAGE_END","messageId":"ID"}`)
	return append(steps, agenttest.Emit(finished))
}
