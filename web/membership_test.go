package web_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// tape keeps the frames that come, in order.
type tape struct {
	mu     sync.Mutex
	frames []string
	more   chan struct{}
}

func newTape() *tape { return &tape{more: make(chan struct{}, 1)} }

func (p *tape) record(text []byte) {
	p.mu.Lock()
	p.frames = append(p.frames, string(text))
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *tape) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.frames)
}

// await waits until a frame holds text, and returns all frames up to it.
func (p *tape) await(t *testing.T, text string) []string {
	t.Helper()
	ctx := within(t)
	for {
		frames := p.all()
		for i, f := range frames {
			if strings.Contains(f, text) {
				return frames[:i+1]
			}
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			t.Fatalf("no frame holds %s:\n%s", text, strings.Join(frames, "\n"))
		}
	}
}

// count returns how many frames hold text.
func count(frames []string, text string) int {
	n := 0
	for _, f := range frames {
		n += strings.Count(f, text)
	}
	return n
}

func send(t *testing.T, c *webtest.Client, frames ...string) {
	t.Helper()
	for _, f := range frames {
		if err := c.SendText([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJoinTwiceLeavesOneMembership(t *testing.T) {
	for name, second := range map[string]string{"with another join_ref": "2", "with the same join_ref": "1"} {
		t.Run(name, func(t *testing.T) {
			agent := agenttest.New(said(100, 0))
			s := open(t, plan{agent: agent})
			tape := newTape()
			c := s.client(webtest.Options{OnFrame: tape.record})
			send(t, c, `["1","1","thread:t","phx_join",{}]`,
				`["`+second+`","2","thread:t","phx_join",{}]`, `["`+second+`","3","thread:t","run",{"runId":"r1","messages":[]}]`)
			frames := tape.await(t, "RUN_FINISHED")
			if n := count(frames, `"seq-`) + count(frames, `RUN_STARTED"`); n != 1 {
				t.Errorf("RUN_STARTED came %d times", n)
			}
			if n := count(frames, `"delta":`); n != 100 {
				t.Errorf("%d words came, of 100", n)
			}
			if n := count(frames, `"2","thread:t","phx_reply",{"status":"ok"`); n != 1 {
				t.Errorf("the second join was answered %d times", n)
			}
			if n := count(frames, `["1",null,"thread:t","phx_close",{}]`); (n == 1) != (second == "2") {
				t.Errorf("phx_close for the first came %d times", n)
			}
			if s.hub.Watched() != 1 {
				t.Errorf("%d threads are watched", s.hub.Watched())
			}
			if t.Failed() {
				t.Log(strings.Join(tape.all(), "\n"))
			}
		})
	}
}

func TestNothingOfAnOldMembershipFollowsTheNewOne(t *testing.T) {
	agent := agenttest.New(said(3000, 0))
	s := open(t, plan{agent: agent})
	tape := newTape()
	c := s.client(webtest.Options{OnFrame: tape.record})
	s.start("t", "r1")
	for i := 1; i <= 50; i++ {
		send(t, c, fmt.Sprintf(`["%d","%d","thread:t","phx_join",{"replay":"raw"}]`, i, i))
	}
	tape.await(t, `["50","50","thread:t","phx_reply"`)
	frames := tape.await(t, "RUN_FINISHED")
	newest := 0
	for _, f := range frames {
		var ref int
		if _, err := fmt.Sscanf(f, `["%d"`, &ref); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if ref < newest {
			t.Fatalf("after a frame of membership %d came %.120s", newest, f)
		}
		if strings.Contains(f, "ag_ui_events") || strings.Contains(f, "phx_reply") {
			newest = ref
		}
	}
}

func TestLeaveEndsTheMembership(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	c := s.client(webtest.Options{})
	ch, err := c.Join(within(t), "thread:t", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.start("t", "r1")
	<-agent.Mark("held")
	if err := ch.Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Push(within(t), "status", nil); webtest.Code(err) != "unmatched_topic" {
		t.Fatalf("a request after leaving: %v", err)
	}
	strays := c.Strays()
	agent.Release("go")
	s.until(s.viewer("t", nil), webtest.Ended("r1"))
	if err := c.Heartbeat(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := c.Strays(); got != strays {
		t.Fatalf("%d frames came after leaving", got-strays)
	}
	if err := ch.Leave(within(t)); err != nil {
		t.Fatalf("leaving again: %v", err)
	}
	for ctx := within(t); s.runner.Active() != 0; <-time.After(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d runs", s.runner.Active())
		}
	}
}

func TestLeavingIsNotStopping(t *testing.T) {
	for name, go_ := range map[string]func(*webtest.Client, *webtest.Channel){
		"leave": func(_ *webtest.Client, ch *webtest.Channel) { _ = ch.Leave(t.Context()) },
		"close": func(c *webtest.Client, _ *webtest.Channel) { c.Close() },
		"drop":  func(c *webtest.Client, _ *webtest.Channel) { c.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			agent := agenttest.New(held(1))
			s := open(t, plan{agent: agent})
			c := s.client(webtest.Options{})
			ch, err := c.Join(within(t), "thread:t", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ch.Push(within(t), "run", `{"runId":"r1","messages":[]}`); err != nil {
				t.Fatal(err)
			}
			<-agent.Mark("held")
			go_(c, ch)
			agent.Release("go")
			v := s.viewer("t", nil)
			s.until(v, webtest.Ended("r1"))
			if types := v.Run("r1").Types; types[len(types)-1] != "RUN_FINISHED" {
				t.Fatalf("the run ended with %v", types)
			}
		})
	}
}

func TestFramesWithAnOldJoinRefAreRefused(t *testing.T) {
	s := open(t, plan{})
	c := s.client(webtest.Options{})
	old, err := c.Join(within(t), "thread:t", nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := c.Join(within(t), "thread:t", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Push(within(t), "run", `{"messages":[]}`); webtest.Code(err) != "unmatched_topic" {
		t.Fatalf("a run: %v", err)
	}
	if err := old.Leave(within(t)); err != nil {
		t.Fatalf("a leave: %v", err)
	}
	if _, err := fresh.Push(within(t), "status", nil); err != nil {
		t.Fatalf("the old leave ended the new membership: %v", err)
	}
	r, err := c.Request(within(t), webtest.Message{Topic: "thread:t", Event: "status"})
	if err != nil || r.Status != "ok" {
		t.Fatalf("a frame without join_ref: %v %s", err, r.Response)
	}
}

func TestUnmatchedTopicsAreAnsweredAsPhoenixDoes(t *testing.T) {
	s := open(t, plan{})
	c := s.client(webtest.Options{})
	for _, m := range []webtest.Message{
		{Topic: "thread:t", Event: "run", JoinRef: "9", Payload: `{"messages":[]}`}, {Topic: "room", Event: "phx_join"},
		{Topic: "phoenix", Event: "other"},
	} {
		r, err := c.Request(within(t), m)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"code":"unmatched_topic","message":"unmatched topic","reason":"unmatched topic"}`
		if r.Status != "error" || string(r.Response) != want {
			t.Errorf("%v: %s %s", m, r.Status, r.Response)
		}
	}
}

// F033: subscriptions that come and go fast leave nothing behind.
func TestSubscribingAndLeavingAThousandTimes(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	c := s.client(webtest.Options{})
	for i := range 1000 {
		ch, err := c.Join(within(t), "thread:t", nil)
		if err != nil {
			t.Fatalf("join %d: %v", i, err)
		}
		if err := ch.Leave(within(t)); err != nil {
			t.Fatalf("leave %d: %v", i, err)
		}
	}
	tape := newTape()
	fast := s.client(webtest.Options{OnFrame: tape.record})
	for i := range 1000 {
		ref := fmt.Sprint(i + 1)
		send(t, fast, `["`+ref+`","`+ref+`","thread:t","phx_join",{}]`, `["`+ref+`","l`+ref+`","thread:t","phx_leave",{}]`)
	}
	send(t, fast, `["last","last","thread:t","phx_join",{}]`)
	tape.await(t, `["last","last","thread:t","phx_reply",{"status":"ok"`)
	agent.Release("go")
	tape.await(t, "RUN_FINISHED")
	of := func(event string) int {
		return count(tape.all(), `["last",null,"thread:t","ag_ui_events",{"runId":"r1","from":"1-`+event+`"`)
	}
	if of("0") != 1 {
		t.Fatalf("the run began %d times", of("0"))
	}
	if s.hub.Watched() != 1 {
		t.Fatalf("%d threads are watched", s.hub.Watched())
	}
	if n := strings.Count(s.log.String(), "level=ERROR"); n != 0 {
		t.Fatalf("%d errors were logged: %s", n, s.log)
	}
}

func TestTopicsOfOneSocketAreBounded(t *testing.T) {
	s := open(t, plan{cfg: web.Config{MaxTopics: 3}})
	c := s.client(webtest.Options{})
	var channels []*webtest.Channel
	for i := range 3 {
		ch, err := c.Join(within(t), fmt.Sprintf("thread:t%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, ch)
	}
	if _, err := c.Join(within(t), "thread:more", nil); webtest.Code(err) != "too_many_topics" {
		t.Fatalf("got %v", err)
	}
	if _, err := c.Join(within(t), "thread:t1", nil); err != nil {
		t.Fatalf("joining anew is not one more: %v", err)
	}
	if err := channels[0].Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join(within(t), "thread:more", nil); err != nil {
		t.Fatalf("after leaving: %v", err)
	}
}

func TestDeletionEndsTheMembership(t *testing.T) {
	agent := agenttest.New(held(1), said(1, 0))
	s := open(t, plan{agent: agent})
	ch := s.join("t", nil)
	other := s.join("other", nil)
	s.next(other, "caught_up")
	s.start("t", "r1")
	<-agent.Mark("held")
	if response, body := s.request("DELETE", "/api/threads/t", ""); response.StatusCode != 204 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	v := webtest.NewViewer("t", nil)
	var err error
	for err == nil {
		var p webtest.Push
		if p, err = ch.Next(within(t)); err == nil {
			err = v.Apply(p)
		}
	}
	if !errors.Is(err, webtest.ErrEnded) || !strings.Contains(err.Error(), "phx_close") || !v.Deleted {
		t.Fatalf("got %v, deleted %v", err, v.Deleted)
	}
	if _, err := ch.Push(within(t), "status", nil); webtest.Code(err) != "unmatched_topic" {
		t.Fatalf("a request afterwards: %v", err)
	}
	if _, err := other.Push(within(t), "status", nil); err != nil {
		t.Fatalf("another topic of another socket: %v", err)
	}
	again := s.viewer("t", nil)
	s.until(again, webtest.CaughtUp)
	if len(again.Runs) != 0 {
		t.Fatalf("%d runs are left", len(again.Runs))
	}
	s.start("t", "r1")
	s.until(again, webtest.Ended("r1"))
	if again.Run("r1").Number != 2 {
		t.Fatalf("the number of the run is %d", again.Run("r1").Number)
	}
}

// frail is a live log whose tails the test can break.
type frail struct {
	hub.Log
	cut chan error
}

func (f frail) Tail(ctx context.Context, id thread.ID, after thread.Cursor, fn func([]thread.Entry) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case err := <-f.cut:
			cancel(err)
		case <-inner.Done():
		}
	})
	err := f.Log.Tail(inner, id, after, fn)
	cancel(nil)
	watching.Wait()
	if cause := context.Cause(inner); ctx.Err() == nil && cause != context.Canceled {
		return cause
	}
	return err
}

func TestAFailingHubMakesClientsComeBack(t *testing.T) {
	agent := agenttest.New(held(5))
	log := frail{cut: make(chan error)}
	s := open(t, plan{agent: agent, log: func(l hub.Log) hub.Log { log.Log = l; return log }})
	c := s.client(webtest.Options{})
	v := webtest.NewViewer("t", nil)
	if err := v.Join(within(t), c); err != nil {
		t.Fatal(err)
	}
	s.start("t", "r1")
	<-agent.Mark("held")
	s.until(v, webtest.Seen(7))
	log.cut <- fmt.Errorf("disk I/O error: %w", thread.ErrUnavailable)
	err := v.Until(within(t), func(*webtest.Viewer) bool { return false })
	if !errors.Is(err, webtest.ErrEnded) || !strings.Contains(err.Error(), "phx_error") {
		t.Fatalf("got %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, "disk I/O error") || !strings.Contains(log, "level=ERROR") {
		t.Fatalf("the log does not tell: %s", log)
	}
	if err := v.Join(within(t), c); err != nil {
		t.Fatal(err)
	}
	agent.Release("go")
	s.until(v, webtest.Ended("r1"))
	if n := len(v.Events()); n != 9 || v.Resets != 0 {
		t.Fatalf("%d events, %d resets", n, v.Resets)
	}
}

func TestAClosingHubMakesClientsComeBackLater(t *testing.T) {
	s := open(t, plan{})
	ch := s.join("t", nil)
	s.next(ch, "caught_up")
	s.hub.Close()
	s.next(ch, "phx_error")
	if _, err := s.client(webtest.Options{}).Join(within(t), "thread:t", nil); webtest.Code(err) != "draining" {
		t.Fatalf("a join afterwards: %v", err)
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Fatalf("an orderly end was logged as an error: %s", s.log)
	}
}
