package copilotkit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

var morning = time.Date(2026, 8, 1, 11, 30, 0, 120_000_000, time.FixedZone("CEST", 2*60*60))

// chat is a thread whose second run has ended.
func chat() thread.Thread {
	return thread.Thread{
		ID: "t1", LastRun: 2, Created: morning, Activity: morning.Add(time.Hour), Title: "Hello", Owner: "alice", Agent: "demo", Revision: 4,
		Latest: &thread.Run{Thread: "t1", ID: "r2", Number: 2, Agent: "other", Accepted: morning, Ended: morning.Add(time.Hour),
			End: thread.End{Outcome: thread.OutcomeFinished}, LastSeq: 17},
	}
}

const chatForm = `{"id":"t1","organizationId":"default","agentId":"demo","createdById":"alice","name":"Hello","archived":false,` +
	`"createdAt":"2026-08-01T09:30:00.120Z","updatedAt":"2026-08-01T10:30:00.120Z","lastRunAt":"2026-08-01T10:30:00.120Z"}`

func TestThreadsAreWrittenAsClientsReadThem(t *testing.T) {
	named, bare := chat(), chat()
	named.Name, named.Archived = "Mine", morning
	bare.Title, bare.Owner = "", ""
	for name, tt := range map[string]struct {
		page copilotkit.Threads
		want string
	}{
		"none":         {copilotkit.NewThreads(nil, "", ""), `{"threads":[],"nextCursor":null}`},
		"with a topic": {copilotkit.NewThreads([]thread.Thread{chat()}, "c1", "n1"), `{"threads":[` + chatForm + `],"joinCode":"c1","nextCursor":"n1"}`},
		"named and archived": {copilotkit.NewThreads([]thread.Thread{named}, "", ""), `{"threads":[{"id":"t1","organizationId":"default",` +
			`"agentId":"demo","createdById":"alice","name":"Mine","archived":true,"createdAt":"2026-08-01T09:30:00.120Z",` +
			`"updatedAt":"2026-08-01T10:30:00.120Z","lastRunAt":"2026-08-01T10:30:00.120Z"}],"nextCursor":null}`},
		"of nobody in particular": {copilotkit.NewThreads([]thread.Thread{bare}, "", ""), `{"threads":[{"id":"t1","organizationId":"default",` +
			`"agentId":"demo","createdById":"local","name":null,"archived":false,"createdAt":"2026-08-01T09:30:00.120Z",` +
			`"updatedAt":"2026-08-01T10:30:00.120Z","lastRunAt":"2026-08-01T10:30:00.120Z"}],"nextCursor":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tt.page)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestChangesAreWrittenAsClientsReadThem(t *testing.T) {
	ended := func(end thread.End) func(*thread.Thread) {
		return func(t *thread.Thread) { t.Latest.End = end }
	}
	const finished = `{"threadId":"t1","agentId":"other","runId":"r2","eventType":"RUN_FINISHED","latestEventId":"2-17"}`
	const failed = `{"threadId":"t1","agentId":"other","runId":"r2","eventType":"RUN_ERROR","latestEventId":"2-17"}`
	const begun = `{"threadId":"t1","agentId":"other","runId":"r2","eventType":"RUN_STARTED","latestEventId":"2-0"}`
	for name, tt := range map[string]struct {
		what      thread.Happening
		change    func(*thread.Thread)
		operation string
		run       string
	}{
		"created":    {thread.Created, nil, "created", begun},
		"running":    {thread.Running, nil, "updated", begun},
		"ended":      {thread.Ended, nil, "updated", finished},
		"failed":     {thread.Ended, ended(thread.End{Outcome: thread.OutcomeFailed, Code: "x"}), "updated", failed},
		"stopped":    {thread.Ended, ended(thread.End{Outcome: thread.OutcomeStopped}), "updated", finished},
		"waiting":    {thread.Waiting, ended(thread.End{Outcome: thread.OutcomeWaiting}), "updated", finished},
		"lost":       {thread.Ended, ended(thread.End{Outcome: thread.OutcomeLost, Code: "lost"}), "updated", failed},
		"renamed":    {thread.Renamed, nil, "renamed", ""},
		"unarchived": {thread.Unarchived, nil, "unarchived", ""},
		"queued":     {thread.Enqueued, nil, "updated", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := thread.Change{What: tt.what, Thread: chat(), At: morning}
			if tt.change != nil {
				tt.change(&c.Thread)
			}
			want := `{"operation":"` + tt.operation + `","threadId":"t1","userId":"alice","organizationId":"default",` +
				`"occurredAt":"2026-08-01T09:30:00.120Z","thread":` + chatForm + `}`
			if got := string(copilotkit.Metadata(c)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if got := string(copilotkit.RunActivity(c)); got != tt.run {
				t.Errorf("got\n%s\nwant\n%s", got, tt.run)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		c := thread.Change{What: thread.Deleted, Thread: thread.Thread{ID: "t1", Deleted: true}, At: morning}
		want := `{"operation":"deleted","threadId":"t1","userId":"local","organizationId":"default",` +
			`"occurredAt":"2026-08-01T09:30:00.120Z","deleted":{"id":"t1"}}`
		if got := string(copilotkit.Metadata(c)); got != want || copilotkit.RunActivity(c) != nil {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("of an archived thread", func(t *testing.T) {
		for _, what := range []thread.Happening{thread.Archived, thread.Renamed, thread.Ended, thread.Running} {
			c := thread.Change{What: what, Thread: chat(), At: morning}
			c.Thread.Archived = morning
			var got struct{ Operation string }
			if err := json.Unmarshal(copilotkit.Metadata(c), &got); err != nil || got.Operation != "archived" {
				t.Errorf("%s: got %+v, %v", what, got, err)
			}
		}
	})
}

func TestMessagesForTheInspector(t *testing.T) {
	const messages = `[{"id":"u","role":"user","content":[{"type":"text","text":"Hi"}],"metadata":{"x":1}},` +
		`{"id":"a","role":"assistant","toolCalls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{\"n\":1e400}"}}]},` +
		`{"id":"r","role":"tool","content":"done","toolCallId":"k"},{"id":"v","role":"activity","activityType":"PLAN","content":{"a":1}},` +
		`{"id":"o","role":"assistant","content":"odd","toolCalls":"none"},7]`
	const want = `{"messages":[{"id":"u","role":"user","content":[{"type":"text","text":"Hi"}]},` +
		`{"id":"a","role":"assistant","toolCalls":[{"id":"k","name":"f","args":"{\"n\":1e400}"}]},` +
		`{"id":"r","role":"tool","content":"done","toolCallId":"k"},{"id":"v","role":"activity","content":{"a":1},"activityType":"PLAN"},` +
		`{"id":"o","role":"assistant","content":"odd"}]}`
	if got := `{"messages":` + string(copilotkit.InspectedMessages([]byte(messages))) + `}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(copilotkit.InspectedMessages(nil)); got != "[]" {
		t.Errorf("got %s", got)
	}
}
