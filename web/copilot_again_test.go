package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// acknowledged waits until everything that was sent to a page has arrived, as far as the server knows.
func (s *site) acknowledged(p *page) {
	s.Helper()
	ctx := within(s.T)
	for !s.web.Acknowledged(p.token) {
		if ctx.Err() != nil {
			s.Fatal("it never was")
		}
		<-time.After(time.Millisecond)
	}
}

func TestASocketThatDropsInSilenceIsGoneOnWith(t *testing.T) {
	for _, mode := range []string{"run", "connect"} {
		t.Run(mode, func(t *testing.T) {
			agent := agenttest.New(held(50))
			s := open(t, plan{agent: agent})
			s.start("t", "r1")
			<-agent.Mark("held")
			p := s.runs("t", "r1")
			if mode == "connect" {
				p = s.connects("t", nil)
			}
			s.opened(p)
			s.seen(p, 52)
			for range 3 {
				if mode == "connect" {
					s.must(p.follow(within(t), func() bool { return p.replayed })) // else that may be under way when it is cut
				}
				s.acknowledged(p)
				s.must(p.cut(within(t)))
				p.replayed = false
				began := time.Now()
				s.must(p.join(within(t)))
				if took := time.Since(began); took > 500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			}
			agent.Release("go")
			s.must(p.finish(within(t)))
			if p.refused != 0 || p.types() != said1 || p.messages() != s.truth("t") {
				t.Errorf("%d refusals, %s: %s", p.refused, p.types(), p.messages())
			}
		})
	}
}

func TestASocketWithFramesUnderWayIsNotGoneOnWith(t *testing.T) {
	agent := agenttest.New(held(50))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	p := s.runs("t", "r1")
	c, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: p.path(), Dial: s.dial, Mute: true}) // nothing is acknowledged
	s.must(err)
	p.client = c
	s.must(p.rejoin(within(t)))
	s.seen(p, 52)
	s.must(p.cut(within(t)))
	s.must(p.join(within(t)))
	if p.refused != 5 || p.renewed != 1 {
		t.Errorf("%d refusals, %d new tickets", p.refused, p.renewed)
	}
	agent.Release("go")
	s.must(p.finish(within(t)))
	if p.types() != said1 || p.messages() != s.truth("t") {
		t.Errorf("%s: %s", p.types(), p.messages())
	}
}

func TestALostEndComesWithTheNextTicket(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	p := s.runs("t", "r1")
	c, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: p.path(), Dial: s.dial, Mute: true})
	s.must(err)
	p.client = c
	s.must(p.rejoin(within(t)))
	s.seen(p, 4) // and RUN_FINISHED is lost
	c.Drop()
	s.must(p.join(within(t)))
	s.must(p.finish(within(t)))
	if p.renewed != 1 || p.types() != strings.ReplaceAll(said1, "...", "") {
		t.Errorf("%d new tickets, %s", p.renewed, p.types())
	}
}

func TestTheSocketThatComesLastHasThePipeline(t *testing.T) {
	agent := agenttest.New(held(5))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 7)
	s.acknowledged(p)
	old := p.client // it does not know yet that its connection is dead
	s.must(p.join(within(t)))
	if code, err := old.Closed(within(t)); code != webtest.CloseAbnormal {
		t.Errorf("the old socket: %d, %v", code, err)
	}
	agent.Release("go")
	s.must(p.finish(within(t)))
	if p.refused != 0 || p.types() != said1 {
		t.Errorf("%d refusals, %s", p.refused, p.types())
	}
}

func TestAPageThatGaveUpItsJoinBeginsAgain(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	for _, p := range []*page{s.runs("t", "r1"), s.connects("t", nil)} {
		c := s.client(webtest.Options{Path: p.path()})
		early, err := c.Join(within(t), "thread:t", p.payload)
		s.must(err)
		s.must(early.Leave(within(t))) // as phoenix.js does when the answer is late: what comes is thrown away
		p.client = c
		s.must(p.rejoin(within(t)))
		s.must(p.finish(within(t)))
		if p.types() != strings.ReplaceAll(said1, "...", "") {
			t.Errorf("got %s", p.types())
		}
	}
}

func TestAFailingLogMakesThePageJoinAgainOnItsSocket(t *testing.T) {
	for _, mode := range []string{"run", "connect"} {
		t.Run(mode, func(t *testing.T) {
			agent := agenttest.New(held(5))
			var faulty *logtest.FaultyLog
			s := open(t, plan{agent: agent, log: func(l hub.Log) hub.Log {
				faulty = logtest.Faulty(l.(logtest.Log))
				return faulty
			}})
			s.start("t", "r1")
			<-agent.Mark("held")
			p := s.runs("t", "r1")
			if mode == "connect" {
				p = s.connects("t", nil)
			}
			faulty.Down(fmt.Errorf("a fault: %w", thread.ErrUnavailable))
			s.opened(p)
			s.trouble(p)
			s.must(p.rejoin(within(t)))
			s.trouble(p)
			faulty.Up()
			s.must(p.rejoin(within(t)))
			s.seen(p, 7)
			s.hub.Close() // the subscription ends in the middle
			s.trouble(p)
			if p.types() != strings.TrimSuffix(said1, " TEXT_MESSAGE_END RUN_FINISHED") {
				t.Errorf("got %s", p.types())
			}
			agent.Release("go")
		})
	}
}

// trouble waits until a page is told to join again.
func (s *site) trouble(p *page) {
	s.Helper()
	err := p.follow(within(s.T), never)
	if err == nil || !strings.Contains(err.Error(), "phx_error") {
		s.Fatalf("it was not told: %v", err)
	}
}

func TestDrainSendsPagesElsewhere(t *testing.T) {
	agent := agenttest.New(held(5))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 7)
	go s.web.Drain(within(t))
	if code, err := p.client.Closed(within(t)); code != 1012 {
		t.Errorf("closed with %d, %v", code, err)
	}
	agent.Release("go")
}

// long is a run of which history keeps few events: a text of which a page may be in the middle, around a step.
func long() []agenttest.Step {
	return []agenttest.Step{
		agenttest.Emit(started), agenttest.Emit(`{"type":"STEP_STARTED","stepName":"s"}`), agenttest.Emit(begin),
		agenttest.Repeat(20, word, 0), agenttest.Mark("middle"), agenttest.WaitFor("go"), agenttest.Repeat(20, word, 0),
		agenttest.Emit(end), agenttest.Emit(`{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}`),
		agenttest.Emit(`{"type":"STEP_FINISHED","stepName":"s"}`), agenttest.Emit(finished),
	}
}

func TestAPositionThatIsGoneGetsASnapshot(t *testing.T) {
	agent := agenttest.New(long(), said(3, 0))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("middle")
	p := s.opened(s.runs("t", "r1"))
	s.seen(p, 23) // in the middle of what will be one event
	s.must(p.cut(within(t)))
	agent.Release("go")
	s.gone("t", "r1", 1)
	s.finish("t", "r2")
	viewer := s.connects("t", nil)
	viewer.cursor, viewer.views = p.cursor, p.views
	p.renew("")
	s.whole(p) // which fails for what is against the rules of a run
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT... MESSAGES_SNAPSHOT STATE_SNAPSHOT " +
		"TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"
	if p.types() != want || p.messages() != s.truth("t") || string(p.views.State()) != `{"n":1}` {
		t.Errorf("got %s: %s", p.types(), p.messages())
	}
	viewer.renew("")
	s.whole(viewer)
	if viewer.messages() != s.truth("t") || viewer.cursor != p.cursor {
		t.Errorf("a page that only looks: %s: %s", viewer.types(), viewer.messages())
	}
	if again := s.whole(s.connects("t", viewer)); len(again.events) != len(viewer.events) {
		t.Errorf("afterwards: %s", again.types())
	}
}

// gone waits until a run is saved, and takes it out of the live log.
func (s *site) gone(id, run string, number uint64) {
	s.Helper()
	s.saved(id, run)
	s.must(s.live.Drop(s.Context(), thread.ID(id), number, 0))
}

func TestASnapshotThatBreaksOffIsGoneOnWith(t *testing.T) {
	agent := agenttest.New(long())
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("middle")
	first := s.opened(s.runs("t", "r1"))
	s.seen(first, 23)
	s.must(first.cut(within(t)))
	agent.Release("go")
	s.gone("t", "r1", 1)
	for n := 24; n < 28; n++ { // after each event of the snapshot
		p := s.runs("t", "r1")
		for _, event := range first.events {
			s.must(p.apply([]byte(event)))
		}
		p.renew("")
		c, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: p.path(), Dial: s.dial, Mute: true})
		s.must(err)
		p.client = c
		s.must(p.rejoin(within(t)))
		s.seen(p, n)
		c.Drop()
		s.whole(p)
		if p.messages() != s.truth("t") {
			t.Errorf("after %d events: %s: %s", n, p.types(), p.messages())
		}
	}
}

func TestAPositionThatMeansNothingGetsASnapshot(t *testing.T) {
	for _, text := range []string{"rubbish", "9-9", "1-3", "1767225600000-3", "1-0+77", "0-0~0", strings.Repeat("x", 10_000)} {
		t.Run(fmt.Sprintf("%.20s", text), func(t *testing.T) {
			agent := agenttest.New(said(30, 0), held(5), said(3, 0))
			s := open(t, plan{agent: agent})
			s.start("t", "r1")
			s.gone("t", "r1", 1)
			s.start("t", "r2")
			<-agent.Mark("held")
			p := s.connects("t", nil)
			p.cursor = text
			p.renew("")
			s.opened(p)
			s.must(p.follow(within(t), func() bool { return p.replayed }))
			if text != "1-3" && p.types() != "MESSAGES_SNAPSHOT STATE_SNAPSHOT" && !strings.HasPrefix(p.types(), "MESSAGES_SNAPSHOT STATE_SNAPSHOT TEXT") {
				t.Errorf("got %s", p.types())
			}
			agent.Release("go")
			s.must(p.finish(within(t)))
			if p.messages() != s.truth("t") {
				t.Errorf("the page has %s after %s", p.messages(), p.types())
			}
		})
	}
}

func TestAReplacedRunVanishesFromPages(t *testing.T) {
	agent := agenttest.New(said(3, 0), said(3, 0), held(5))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.finish("t", "r2")
	s.start("t", "r3")
	<-agent.Mark("held")
	viewer := s.opened(s.connects("t", nil))
	s.must(viewer.follow(within(t), func() bool { return strings.Contains(viewer.messages(), "4 ") }))
	s.must(s.past.Discard(t.Context(), "t", "r2", nil))
	run, err := s.past.FindRun(t.Context(), "t", "r2")
	s.must(err)
	s.hub.Discarded("t", run)
	s.must(viewer.follow(within(t), func() bool { return !strings.Contains(viewer.messages(), "m-r2") }))
	agent.Release("go")
	s.must(viewer.finish(within(t)))
	if viewer.messages() != s.truth("t") {
		t.Errorf("who looked on: %s: %s", viewer.types(), viewer.messages())
	}
	if mine := s.whole(s.runs("t", "r2")); !strings.HasSuffix(mine.types(), "RUN_FINISHED") {
		t.Errorf("who began it, and comes late: %s", mine.types())
	}
}

func TestWhatClosesARunForWhoIsInItsMiddle(t *testing.T) {
	list := func(events ...string) (out []thread.Event) {
		seq := uint64(0)
		for _, e := range events {
			n := uint64(1 + strings.Count(e, "+"))
			out = append(out, thread.Event{First: seq + 1, Last: seq + n, Data: []byte(strings.ReplaceAll(e, "+", ""))})
			seq += n
		}
		return out
	}
	run := thread.Run{Thread: "t", ID: "r", Number: 1, LastSeq: 15, Events: list(
		`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,                 // 1
		`{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"sub"}`,      // 2
		`{"type":"STEP_STARTED","stepName":"s"}`,                            // 3
		`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`,  // 4
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"abcd"}+++`, // 5 to 8
		`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,                       // 9
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,    // 10
		`{"type":"TOOL_CALL_END","toolCallId":"c"}`,                         // 11
		`{"type":"STEP_FINISHED","stepName":"s"}`,                           // 12
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"a","result":"R"}`,     // 13
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,                // 14
	)}
	for seq, want := range map[uint64]string{
		1:  "RUN_FINISHED",
		3:  "STEP_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		4:  "TEXT_MESSAGE_END STEP_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		6:  "TEXT_MESSAGE_END STEP_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		9:  "STEP_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		10: "TOOL_CALL_END STEP_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		13: "RUN_FINISHED",
		14: "", // it has the end
		15: "",
		20: "RUN_FINISHED", // it has more than was left of the run
	} {
		var got []string
		for _, event := range web.ClosingOf(run, seq) {
			var e struct{ Type string }
			if err := json.Unmarshal(event, &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Type)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("after %d: %s, want %s", seq, text, want)
		}
	}
}

// Readers who take nothing of the answers that they asked for keep no page waiting.
func TestSnapshotsHavePlacesOfTheirOwn(t *testing.T) {
	big := `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"` + strings.Repeat("x", 64<<10) + `"}`
	s := open(t, plan{agent: agenttest.New([]agenttest.Step{
		agenttest.Emit(started), agenttest.Emit(begin), agenttest.Repeat(200, big, 0), agenttest.Emit(end), agenttest.Emit(finished),
	}, said(3, 0))})
	s.finish("large", "r1")
	s.finish("t", "r1")
	for range 4 { // all places
		if response, err := s.ask("GET", "/api/threads/large/messages", ""); err != nil || response.StatusCode != 200 {
			t.Fatalf("%v, %v", response, err)
		}
	}
	p := s.connects("t", nil)
	p.cursor = "rubbish"
	p.renew("")
	began := time.Now()
	s.whole(p)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if p.types() != "MESSAGES_SNAPSHOT STATE_SNAPSHOT" || p.messages() != `[{"id":"m-r1","role":"assistant","content":"0 1 2 "}]` {
		t.Errorf("the page has %s after %s", p.messages(), p.types())
	}
}
