package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// emits is a run of these events.
func emits(events ...string) []agenttest.Step {
	steps := make([]agenttest.Step, len(events))
	for i, e := range events {
		steps[i] = agenttest.Emit(e)
	}
	return steps
}

const asksFor = `{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}","outcome":{"type":"interrupt",` +
	`"interrupts":[ {"id":"i1","reason":"sure?","n":1e400} ]}}`

// The texts are those of the events: numbers of any size, halves of surrogate pairs, NUL, and members that nobody knows.
func TestMessagesAndStateAreAsTheEventsHaveThem(t *testing.T) {
	s := open(t, plan{agent: agenttest.New(emits(started,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"a\u0000b","x":{"n":123456789012345678901234567890}}]}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude80 \udc00 </script>"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"big":9007199254740993,"huge":1e400,"null":null,"s":"\ud800\u0000"}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/zero","value":-0.0}]}`,
		asksFor))})
	s.finish("t", "r1")
	want := map[string]string{
		"messages": `{"messages":[{"id":"u","role":"user","content":"a\u0000b","x":{"n":123456789012345678901234567890}},` +
			`{"id":"m","role":"assistant","content":"\ud83d\ude80 \udc00 </script>"}],"cursor":"1-10","running":false,` +
			`"pending":[ {"id":"i1","reason":"sure?","n":1e400} ]}`,
		"state": `{"state":{"big":9007199254740993,"huge":1e400,"null":null,"s":"\ud800\u0000","zero":-0.0},"cursor":"1-10"}`,
	}
	for what, text := range want {
		response, body := s.request("GET", "/api/threads/t/"+what, "")
		if body != text || response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", what, response.StatusCode, response.Header, body, text)
		}
	}
}

type messagesAnswer struct {
	Messages []struct{ ID, Content string }
	Cursor   string
	Running  bool
	Pending  []any
}

func TestMessagesFollowARunningRun(t *testing.T) {
	agent := agenttest.New(emits(started, asksFor), said(3, 0), held(4))
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.finish("t", "r2")
	s.start("t", "r3")
	<-agent.Mark("held")
	s.logged("t", "3-6")
	read := func() messagesAnswer {
		_, body := s.request("GET", "/api/threads/t/messages", "")
		return decode[messagesAnswer](t, []byte(body))
	}
	got := read()
	if !got.Running || got.Cursor != "3-6" || len(got.Messages) != 2 || got.Messages[1].Content != "0 1 2 3 " || len(got.Pending) != 0 {
		t.Errorf("while it runs: %+v", got)
	}
	// A client can go on from the cursor.
	v := webtest.NewViewer("t", nil)
	v.Cursor = got.Cursor
	if err := v.Join(within(t), s.client(webtest.Options{})); err != nil {
		t.Fatal(err)
	}
	agent.Release("go")
	s.until(v, webtest.Ended("r3"))
	s.saved("t", "r3")
	if v.Resets != 0 || len(v.Events()) != 2 {
		t.Errorf("after the cursor came %d resets and %d events", v.Resets, len(v.Events()))
	}
	if got := read(); got.Running || got.Cursor != "3-9" {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestARunWithoutEventsIsRunning(t *testing.T) {
	agent := agenttest.New(emits(started, finished), []agenttest.Step{agenttest.Mark("held"), agenttest.WaitFor("go")})
	s := open(t, plan{agent: agent})
	s.finish("t", "r1")
	s.start("t", "r2")
	<-agent.Mark("held")
	_, body := s.request("GET", "/api/threads/t/messages", "")
	if body != `{"messages":[],"cursor":"1-3","running":true,"pending":[]}` {
		t.Errorf("got %s", body)
	}
}

func TestAViewIsBoundedAndSaysSo(t *testing.T) {
	copies := []string{started, `{"type":"STATE_SNAPSHOT","snapshot":{"a":"` + strings.Repeat("x", 1000) + `"}}`}
	for i := range 40 {
		copies = append(copies, fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"copy","from":"","path":"/b%d"}]}`, i))
	}
	copies = append(copies, begin, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"`+strings.Repeat("y", 20_000)+`"}`, end, finished)
	s := open(t, plan{agent: agenttest.New(emits(copies...)), cfg: web.Config{ViewBytes: 10_000}})
	s.finish("t", "r1")
	for _, what := range []string{"messages", "state"} {
		_, body := s.request("GET", "/api/threads/t/"+what, "")
		if !strings.HasSuffix(body, `,"truncated":true}`) || len(body) > 11_000 || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d bytes: %.200s", what, len(body), body)
		}
	}
}

// hooked calls a function before each read of the log.
type hooked struct {
	hub.Log
	before func()
}

func (h hooked) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	h.before()
	return h.Log.Read(ctx, id, after, limit)
}

// A run that ends, is compacted and leaves the log while its events are read must not show twice or in part.
func TestMessagesWhileTheirRunIsCompacted(t *testing.T) {
	agent := agenttest.New(held(100))
	var reads atomic.Int32
	meanwhile := make(chan func(), 1)
	s := open(t, plan{
		agent: agent, hub: hub.Config{Page: 10, BatchEvents: 10}, runner: runner.Config{Retention: time.Nanosecond},
		log: func(l hub.Log) hub.Log {
			return hooked{l, func() {
				if reads.Add(1) == 3 {
					(<-meanwhile)()
				}
			}}
		},
	})
	s.start("t", "r1")
	<-agent.Mark("held")
	s.logged("t", "1-102")
	meanwhile <- func() {
		agent.Release("go")
		s.saved("t", "r1")
		for head := (thread.Cursor{Run: 1}); head != (thread.Cursor{}); { // a moment later it leaves the log
			var err error
			if head, err = s.live.Head(within(t), "t"); err != nil {
				t.Error(err)
				return
			}
		}
	}
	_, body := s.request("GET", "/api/threads/t/messages", "")
	got := decode[messagesAnswer](t, []byte(body))
	if len(got.Messages) != 1 || strings.Count(got.Messages[0].Content, " ") != 100 || got.Running || got.Cursor != "1-105" {
		t.Errorf("got %s", body)
	}
	if reads.Load() < 4 {
		t.Errorf("the run ended after the %d. read", reads.Load())
	}
}

func TestMessagesLeaveOutWhatWasReplaced(t *testing.T) {
	agent := agenttest.New(held(3), said(2, 0))
	s := open(t, plan{agent: agent})
	s.start("t", "r1")
	<-agent.Mark("held")
	response, body := s.request("POST", "/api/threads/t/runs", `{"runId":"r2","onBusy":"replace","messages":[]}`)
	if response.StatusCode != 202 {
		t.Fatalf("%s %s", response.Status, body)
	}
	s.saved("t", "r2")
	_, body = s.request("GET", "/api/threads/t/messages", "")
	if got := decode[messagesAnswer](t, []byte(body)); len(got.Messages) != 1 || got.Messages[0].ID != "m-r2" || got.Cursor != "2-7" {
		t.Errorf("got %s", body)
	}
	for run, discarded := range map[string]bool{"r1": true, "r2": false} {
		_, body := s.request("GET", "/api/threads/t/runs/"+run, "")
		if decode[struct{ Discarded bool }](t, []byte(body)).Discarded != discarded {
			t.Errorf("run %s: %s", run, body)
		}
	}
}
