package copilotkit

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The pushes on the topic of a user's threads.
const (
	PushMetadata    = "thread_metadata"
	PushRunActivity = "thread_run_activity"
)

// What stands for a user that nobody named, and for the organization, of which there is one.
const (
	nobody       = "local"
	organization = "default"
)

// moment is a point in time as these clients take it: they compare them as texts.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// user names a user.
func user(u thread.User) string { return cmp.Or(string(u), nobody) }

// Thread is a thread in a list.
type Thread struct {
	ID           thread.ID `json:"id"`
	Organization string    `json:"organizationId"`
	AgentID      string    `json:"agentId"`
	CreatedBy    string    `json:"createdById"`
	Name         *string   `json:"name"`
	Archived     bool      `json:"archived"`
	CreatedAt    string    `json:"createdAt"`
	UpdatedAt    string    `json:"updatedAt"`
	LastRunAt    string    `json:"lastRunAt,omitempty"`
}

// NewThread describes a thread. It is called by the name that it was given, or else by its title. These clients sort by
// lastRunAt, so it is the last activity, by which lists are in order.
func NewThread(t thread.Thread) Thread {
	v := Thread{
		ID: t.ID, Organization: organization, AgentID: t.Agent, CreatedBy: user(t.Owner), Archived: !t.Archived.IsZero(),
		CreatedAt: moment(t.Created), UpdatedAt: moment(t.Activity), LastRunAt: moment(t.Activity),
	}
	if name := cmp.Or(t.Name, t.Title); name != "" {
		v.Name = &name
	}
	return v
}

// Threads is a page of a list.
type Threads struct {
	Threads  []Thread `json:"threads"`
	JoinCode string   `json:"joinCode,omitempty"` // of the topic on which changes come; empty for none
	Next     *string  `json:"nextCursor"`
}

// NewThreads describes a page. An empty next is the end of the list.
func NewThreads(threads []thread.Thread, joinCode, next string) Threads {
	page := Threads{Threads: make([]Thread, len(threads)), JoinCode: joinCode}
	for i, t := range threads {
		page.Threads[i] = NewThread(t)
	}
	if next != "" {
		page.Next = &next
	}
	return page
}

// metadata is the payload of [PushMetadata].
type metadata struct {
	Operation    string    `json:"operation"`
	ThreadID     thread.ID `json:"threadId"`
	UserID       string    `json:"userId"`
	Organization string    `json:"organizationId"`
	OccurredAt   string    `json:"occurredAt"`
	Thread       *Thread   `json:"thread,omitempty"`
	Deleted      *gone     `json:"deleted,omitempty"`
}

type gone struct {
	ID thread.ID `json:"id"`
}

// Metadata returns the payload of [PushMetadata] for a change.
func Metadata(c thread.Change) []byte {
	m := metadata{
		Operation: operation(c), ThreadID: c.Thread.ID, UserID: user(c.Thread.Owner), Organization: organization, OccurredAt: moment(c.At),
	}
	if c.What == thread.Deleted {
		m.Deleted = &gone{c.Thread.ID}
	} else {
		t := NewThread(c.Thread)
		m.Thread = &t
	}
	return text(m)
}

// operation is what these clients call a change. Whatever happens to an archived thread is told as its archiving, since only
// that keeps it out of the lists that do not show such threads.
func operation(c thread.Change) string {
	switch {
	case c.What == thread.Deleted:
		return "deleted"
	case !c.Thread.Archived.IsZero():
		return "archived"
	case c.What == thread.Created, c.What == thread.Renamed, c.What == thread.Unarchived:
		return string(c.What)
	}
	return "updated"
}

// activity is the payload of [PushRunActivity].
type activity struct {
	ThreadID thread.ID    `json:"threadId"`
	AgentID  string       `json:"agentId"`
	RunID    thread.RunID `json:"runId"`
	Event    string       `json:"eventType"`
	Latest   string       `json:"latestEventId"`
}

// RunActivity returns the payload of [PushRunActivity] for a change that is the beginning or the end of a run; nil for any
// other.
func RunActivity(c thread.Change) []byte {
	run := c.Thread.Latest
	if run == nil {
		return nil
	}
	a := activity{ThreadID: c.Thread.ID, AgentID: run.Agent, RunID: run.ID}
	switch c.What {
	case thread.Created, thread.Running:
		a.Event, a.Latest = "RUN_STARTED", thread.Cursor{Run: run.Number}.String()
	case thread.Waiting, thread.Ended:
		a.Event, a.Latest = "RUN_ERROR", run.Cursor().String()
		if run.End.Finished() {
			a.Event = "RUN_FINISHED"
		}
	case thread.Renamed, thread.Archived, thread.Unarchived, thread.Enqueued, thread.Deleted:
		return nil
	}
	return text(a)
}

// text is v as JSON.
func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and flags
	}
	return b
}
