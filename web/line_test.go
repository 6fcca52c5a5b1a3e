package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestFramesOfAllSizesArriveWhole(t *testing.T) {
	var steps []agenttest.Step
	steps = append(steps, agenttest.Emit(started))
	sizes := []int{1, 50, 125, 126, 127, 1000, 65_000, 65_535, 65_536, 65_537, 200_000}
	for _, n := range sizes {
		for near := n - 1; near <= n+1; near++ { // the sizes at which the head grows are met by some
			steps = append(steps, agenttest.EmitJSON(map[string]string{"type": "CUSTOM", "name": "x", "value": strings.Repeat("x", near)}))
		}
	}
	steps = append(steps, agenttest.Emit(finished))
	s := open(t, plan{agent: agenttest.New(steps)})
	v := s.viewer("t", nil)
	s.start("t", "r1")
	s.until(v, webtest.Ended("r1"))
	p := s.whole(s.runs("t", "r1"))
	if len(v.Events()) != len(steps) || len(p.events) != len(steps) {
		t.Fatalf("%d and %d events of %d", len(v.Events()), len(p.events), len(steps))
	}
	for i, event := range v.Events()[1 : len(steps)-1] {
		var e struct{ Value string }
		if err := json.Unmarshal(event, &e); err != nil || len(e.Value) != sizes[i/3]+i%3-1 {
			t.Errorf("event %d has %d bytes, %v", i, len(e.Value), err)
		}
	}
}

func TestFramesAndControlFramesDoNotMix(t *testing.T) {
	agent := agenttest.New(said(1000, 0))
	s := open(t, plan{agent: agent, cfg: web.Config{Ping: time.Millisecond, Pong: 20 * time.Second}})
	c := s.client(webtest.Options{})
	var group sync.WaitGroup
	var viewers []*webtest.Viewer
	for i := range 4 { // on one socket, beside its pings and answers
		v := webtest.NewViewer(fmt.Sprintf("t%d", i), map[string]any{"replay": "raw"})
		s.must(v.Join(within(t), c))
		viewers = append(viewers, v)
	}
	done := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := c.Heartbeat(within(t)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range viewers {
		s.start(fmt.Sprintf("t%d", i), "r1")
	}
	for _, v := range viewers {
		s.until(v, webtest.Ended("r1"))
		if n := len(v.Events()); n != 1004 {
			t.Errorf("%d events", n)
		}
	}
	close(done)
	group.Wait()
}

func TestNothingFollowsACloseFrame(t *testing.T) {
	agent := agenttest.New(said(10_000, 20*time.Microsecond))
	s := open(t, plan{agent: agent})
	r := s.raw("t")
	s.start("t", "r1")
	r.next()
	go s.web.Drain(within(t))
	r.untilClosed(t)
}

// untilClosed reads to the close frame, after which nothing may come.
func (r *rawReader) untilClosed(t *testing.T) {
	closed := false
	for {
		op, err := r.in.Peek(1)
		if err != nil {
			break
		}
		if closed {
			t.Fatalf("a frame 0x%x follows the close frame", op[0])
		}
		r.next()
		if closed = op[0]&0xf == 8; closed { // the server waits for an answer, and must have nothing more to say
			_ = r.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		}
	}
	if !closed {
		t.Error("no close frame came")
	}
}

func TestPingsCarryThePosition(t *testing.T) {
	agent := agenttest.New(held(3))
	s := open(t, plan{agent: agent, cfg: web.Config{Ping: 5 * time.Millisecond}})
	native := s.raw("t")
	s.start("t", "r1")
	<-agent.Mark("held")
	native.untilPing(t, "1-5")
	pipe := s.rawAt(s.runs("t", "r1").path(), `["1","1","thread:t","phx_join",{"stream_mode":"run","run_id":"r1"}]`)
	pipe.untilPing(t, "1-5")
	agent.Release("go")
	pipe.untilPing(t, "1-7") // the end of the run, whose socket the client has not left
	native.untilPing(t, "1-8")
}

// untilPing reads until a ping with that payload has come.
func (r *rawReader) untilPing(t *testing.T, payload string) {
	t.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		text := r.next()
		if text == nil {
			t.Fatalf("no ping carries %s", payload)
		}
		if r.ping && string(text) == payload {
			return
		}
	}
}

func TestWhatAPipelineSentIsSoonAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		agent := agenttest.New([]agenttest.Step{agenttest.Emit(started), agenttest.Emit(begin),
			agenttest.Repeat(107, word, 3*time.Millisecond), agenttest.Mark("held"), agenttest.WaitFor("go"), agenttest.Emit(end), agenttest.Emit(finished)})
		s := open(t, plan{pipe: true, agent: agent})
		s.start("t", "r1")
		p := s.opened(s.runs("t", "r1"))
		<-agent.Mark("held")
		s.seen(p, 109)
		<-time.After(51 * time.Millisecond)
		if !s.web.Acknowledged(p.token) {
			t.Error("the last words are not acknowledged")
		}
		agent.Release("go")
		s.must(p.finish(within(t)))
	})
}
