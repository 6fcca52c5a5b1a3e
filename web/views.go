package web

import (
	"encoding/json"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// threadView is a thread in a list.
type threadView struct {
	ID       thread.ID     `json:"id"`
	Title    string        `json:"title"`
	Name     string        `json:"name"` // that it was given in place of the title; may be empty
	State    string        `json:"state"`
	RunID    *thread.RunID `json:"runId"`
	AgentID  *string       `json:"agentId"`
	Created  time.Time     `json:"created"`
	Activity time.Time     `json:"activity"`
	Archived bool          `json:"archived"`
	Queued   int           `json:"queued"` // runs that wait for their turn
	Revision uint64        `json:"revision"`
}

func viewOf(t thread.Thread) threadView {
	v := threadView{
		ID: t.ID, Title: t.Title, Name: t.Name, State: "idle", Created: t.Created.UTC(), Activity: t.Activity.UTC(),
		Archived: !t.Archived.IsZero(), Queued: t.Queued, Revision: t.Revision,
	}
	if t.Latest != nil {
		v.RunID, v.AgentID = &t.Latest.ID, &t.Latest.Agent
		v.State = "running"
		if !t.Latest.Ended.IsZero() {
			v.State = string(t.Latest.End.Outcome)
		}
	}
	return v
}

// changeView is the payload that tells of a change of a thread.
func changeView(c thread.Change) []byte {
	var view any = viewOf(c.Thread)
	if c.What == thread.Deleted {
		view = struct {
			ID       thread.ID `json:"id"`
			Revision uint64    `json:"revision"`
		}{c.Thread.ID, c.Thread.Revision}
	}
	text, err := json.Marshal(struct {
		Change thread.Happening `json:"change"`
		Thread any              `json:"thread"`
	}{c.What, view})
	if err != nil {
		panic(err) // texts, times and numbers
	}
	return text
}

// runView is a run's particulars.
type runView struct {
	RunID       thread.RunID `json:"runId"`
	Number      uint64       `json:"number"`
	AgentID     string       `json:"agentId"`
	ParentRunID string       `json:"parentRunId,omitempty"`
	State       string       `json:"state"`
	StartedAt   time.Time    `json:"startedAt"`
	EndedAt     *time.Time   `json:"endedAt"`
	Code        string       `json:"code,omitempty"`
	Error       string       `json:"error,omitempty"`
	StoppedBy   string       `json:"stoppedBy,omitempty"`
	End         string       `json:"end,omitempty"`       // the position after its last entry
	Discarded   bool         `json:"discarded,omitempty"` // it was replaced, and is left out of replay
}

func runViewOf(r thread.Run) runView {
	v := runView{
		RunID: r.ID, Number: r.Number, AgentID: r.Agent, ParentRunID: r.Parent, State: "running",
		StartedAt: r.Accepted.UTC(), Discarded: r.Discarded,
	}
	if !r.Ended.IsZero() {
		ended := r.Ended.UTC()
		v.State, v.EndedAt, v.End = string(r.End.Outcome), &ended, r.Cursor().String()
		v.Code, v.Error, v.StoppedBy = r.End.Code, r.End.Message, r.End.By
	}
	return v
}
