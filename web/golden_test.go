package web

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/wire"
)

func golden(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("wire/testdata", path+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

func TestRepliesAreWrittenAsInTheGoldenFrames(t *testing.T) {
	morning := time.Date(2026, 8, 1, 9, 30, 0, 0, time.UTC)
	idle := thread.Status{RunID: "r3", Agent: "demo", Cursor: thread.Cursor{Run: 3, Seq: 122}, Started: morning,
		Latest: &thread.Run{End: thread.End{Outcome: thread.OutcomeFinished}}}
	waiting := idle
	waiting.Latest = &thread.Run{End: thread.End{Outcome: thread.OutcomeWaiting}}
	waiting.Pending = []byte(`[{"id":"i1","reason":"approval"}]`)
	busy := replyOf(thread.Status{Running: true, RunID: "r4", Agent: "demo", Cursor: thread.Cursor{Run: 4, Seq: 17},
		Started: morning.Add(time.Minute)})
	age := int64(40)
	busy.LastEventAgeMs = &age
	request := func(ref string) wire.Frame { return wire.Frame{JoinRef: "1", Ref: ref, Topic: "thread:t1"} }
	tests := map[string]goldenReply{
		"reply_join":           {request("1"), joinReply{Cursor: "0-0", statusReply: replyOf(thread.Status{}), Role: "owner"}},
		"reply_join_after":     {request("1"), joinReply{Cursor: "3-120", Resumed: true, statusReply: busy, Role: "owner"}},
		"reply_heartbeat":      {wire.Frame{Ref: "2", Topic: "phoenix"}, struct{}{}},
		"reply_leave":          {request("3"), struct{}{}},
		"reply_run":            {request("4"), runReply{RunID: "r4", Cursor: "4-0"}},
		"reply_run_queued":     {request("4"), runReply{RunID: "r5", Cursor: "4-0", Queued: 1}},
		"reply_stop":           {request("5"), stopReply{Stopped: true, RunID: "r4", Cursor: "4-18"}},
		"reply_stop_idle":      {request("5"), stopReply{}},
		"reply_status":         {request("6"), busy},
		"reply_status_idle":    {request("6"), replyOf(idle)},
		"reply_status_waiting": {request("6"), replyOf(waiting)},
		"reply_sync":           {request("7"), struct{}{}},
	}
	for name, tt := range goldenLists() {
		tests[name] = tt
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(tt.response)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(wire.AppendReply(nil, tt.to, "ok", text)), golden(t, "server/"+name); got != want {
				t.Fatalf("written as\n%s\nwant\n%s", got, want)
			}
		})
	}
	queued := busy
	queued.Queue = []queuedView{{RunID: "r5", AgentID: "demo", Title: "And then?", QueuedAt: morning.Add(65 * time.Second)}}
	text, err := json.Marshal(queued)
	if err != nil {
		t.Fatal(err)
	}
	got := string(wire.AppendPush(nil, "1", "thread:t1", wire.EventStatus, text))
	if want := golden(t, "server/status"); got != want {
		t.Errorf("the push of a status is written as\n%s\nwant\n%s", got, want)
	}
	files, err := filepath.Glob("wire/testdata/server/reply_*.json")
	if err != nil || len(files) != len(tests) {
		t.Errorf("%d files, %d tests, %v", len(files), len(tests), err)
	}
}

func TestAPageIsWrittenAsInTheGoldenFile(t *testing.T) {
	at := func(run, seq uint64) thread.Cursor { return thread.Cursor{Run: run, Seq: seq} }
	batches := []hub.Batch{
		{Kind: hub.Reset, RunID: "r3", From: at(3, 0), To: at(3, 0)},
		{RunID: "r3", From: at(3, 0), To: at(3, 122), Events: [][]byte{
			[]byte(`{"type":"RUN_STARTED","threadId":"t1","runId":"r3"}`),
			[]byte(`{"type":"RUN_FINISHED","threadId":"t1","runId":"r3"}`)}},
	}
	if got, want := string(appendPage(nil, at(3, 60), batches, true)), golden(t, "http/events"); got != want {
		t.Fatalf("written as\n%s\nwant\n%s", got, want)
	}
	if got := string(appendPage(nil, at(4, 2), nil, false)); got != `{"batches":[],"cursor":"4-2","more":false}` {
		t.Fatalf("an empty page is written as %s", got)
	}
}

func TestViewsAreWrittenAsInTheGoldenFiles(t *testing.T) {
	var r agui.Reducer
	for _, event := range []string{
		`{"type":"RUN_STARTED","threadId":"t1","runId":"r3","input":{"messages":[{"id":"m7","role":"user","content":"Hello"}]}}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"step":2}}`, `{"type":"TEXT_MESSAGE_START","messageId":"m8"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m8","delta":"May I?"}`,
		`{"type":"RUN_FINISHED","threadId":"t1","runId":"r3","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval"}]}}`,
	} {
		if err := r.Apply([]byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	at := thread.Cursor{Run: 3, Seq: 122}
	morning := time.Date(2026, 8, 1, 9, 30, 0, 0, time.UTC)
	past := thread.Run{ID: "r3", Number: 3, Agent: "demo", Previous: "r2", Accepted: morning, Ended: morning.Add(4200 * time.Millisecond),
		End: thread.End{Outcome: thread.OutcomeWaiting}, LastSeq: 122, EventCount: 7, Bytes: 5120,
		Usage:   []byte(`[{"provider":"openai","model":"m","inputTokens":310,"outputTokens":42,"totalTokens":352}]`),
		Pending: []byte(`[{"id":"i1","reason":"approval"}]`)}
	live := thread.Run{ID: "r4", Number: 4, Agent: "demo", Previous: "r3", Accepted: morning.Add(time.Minute)}
	st := thread.Status{Running: true, RunID: "r4", Cursor: thread.Cursor{Run: 4, Seq: 17}, LastEvent: morning.Add(62 * time.Second)}
	run, err := appendRun(nil, recordOf(past, st, morning), past)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := runsView([]thread.Run{live}, st, morning.Add(63*time.Second), true)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{
		"messages": bytes.Join(messagesView(&r, at, false), nil),
		"state":    bytes.Join(stateView(&r, at), nil),
		"run":      run,
		"runs":     runs,
	} {
		if want := golden(t, "http/"+name); string(got) != want {
			t.Errorf("%s is written as\n%s\nwant\n%s", name, got, want)
		}
	}
}

// example is an example in docs/protocol.md: the name of a golden file in a comment, and its text in a block.
var example = regexp.MustCompile("(?m)^<!-- golden: (\\S+) -->\n```json\n(.*)\n```$")

func TestTheExamplesOfTheDocumentationAreTheGoldenFrames(t *testing.T) {
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, m := range example.FindAllSubmatch(doc, -1) {
		name := string(m[1])
		if want := golden(t, name); string(m[2]) != want {
			t.Errorf("the example %s is\n%s\nand the file\n%s", name, m[2], want)
		}
		shown[name] = true
	}
	if n := bytes.Count(doc, []byte("<!-- golden:")); n != len(shown) {
		t.Errorf("%d examples are announced, %d found", n, len(shown))
	}
	files, err := filepath.Glob("wire/testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "wire/testdata/"), ".json")
		if !shown[name] && !strings.HasPrefix(name, "errors/") {
			t.Errorf("docs/protocol.md does not show %s", name)
		}
	}
}
