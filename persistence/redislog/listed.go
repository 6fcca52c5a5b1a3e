package redislog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// ListBoard is told, on every node, of the changes that [Log.Listed] is called with on any node. Its methods must not
// block.
type ListBoard interface {
	// Listing tells whether anybody on this node wants the changes of a user's threads.
	Listing(user thread.User) bool
	// Listed tells of a change. It may be told twice, and before one that was made earlier by another node.
	Listed(c thread.Change)
	// MissedLists tells that this node may have missed changes.
	MissedLists()
}

// ListenLists has a board told from now on. Of several the last one is.
func (l *Log) ListenLists(b ListBoard) { l.lists.Store(&b) }

// Listed tells the boards of all nodes of a change. It does not block: what cannot be told at once is told later, and if it
// cannot be told for a while, the boards are told later that they missed something.
func (l *Log) Listed(c thread.Change) {
	told := l.tellCall(newsListed, c.Thread.ID, "user", string(c.Thread.Owner), "row", writeChange(c))
	l.post(post{call: told, lists: true})
}

// missedCall tells all nodes that changes of lists were not told.
func (l *Log) missedCall() call { return l.tellCall(newsMissed, "") }

// listRow is a change as it is told, without what a list does not show. Times are Unix milliseconds.
type listRow struct {
	What     thread.Happening `json:"w"`
	At       int64            `json:"t"`
	Revision uint64           `json:"v"`
	LastRun  uint64           `json:"n"`
	Agent    string           `json:"a,omitempty"`
	Title    []byte           `json:"ti,omitempty"` // any bytes
	Name     string           `json:"na,omitempty"`
	Created  int64            `json:"c,omitempty"`
	Activity int64            `json:"ac,omitempty"`
	Archived int64            `json:"ar,omitempty"`
	Queued   int              `json:"q,omitempty"`
	Run      *listRun         `json:"r,omitempty"`
}

// listRun is the latest run of a thread.
type listRun struct {
	ID       thread.RunID   `json:"id"`
	Number   uint64         `json:"n"`
	Agent    string         `json:"a,omitempty"`
	Accepted int64          `json:"b,omitempty"`
	Ended    int64          `json:"e,omitempty"`
	Outcome  thread.Outcome `json:"o,omitempty"`
	Code     string         `json:"x,omitempty"`
	LastSeq  uint64         `json:"s,omitempty"`
}

func writeChange(c thread.Change) string {
	t := c.Thread
	row := listRow{
		What: c.What, At: toMillis(c.At), Revision: t.Revision, LastRun: t.LastRun, Agent: t.Agent, Title: []byte(t.Title), Name: t.Name,
		Created: toMillis(t.Created), Activity: toMillis(t.Activity), Archived: toMillis(t.Archived), Queued: t.Queued,
	}
	if r := t.Latest; r != nil {
		row.Run = &listRun{
			ID: r.ID, Number: r.Number, Agent: r.Agent, Accepted: toMillis(r.Accepted), Ended: toMillis(r.Ended),
			Outcome: r.End.Outcome, Code: r.End.Code, LastSeq: r.LastSeq,
		}
	}
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

func readChange(id thread.ID, owner thread.User, text string) (thread.Change, error) {
	var row listRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return thread.Change{}, fmt.Errorf("read what was told of thread %s: %w", id, err)
	}
	t := thread.Thread{
		ID: id, Owner: owner, Revision: row.Revision, LastRun: row.LastRun, Agent: row.Agent, Title: string(row.Title), Name: row.Name,
		Created: fromMillis(row.Created), Activity: fromMillis(row.Activity), Archived: fromMillis(row.Archived), Queued: row.Queued,
		Deleted: row.What == thread.Deleted,
	}
	if r := row.Run; r != nil {
		t.Latest = &thread.Run{
			Thread: id, ID: r.ID, Number: r.Number, Agent: r.Agent, Accepted: fromMillis(r.Accepted), Ended: fromMillis(r.Ended),
			End: thread.End{Outcome: r.Outcome, Code: r.Code}, LastSeq: r.LastSeq,
		}
	}
	return thread.Change{What: row.What, Thread: t, At: fromMillis(row.At)}, nil
}

// toMillis is a point in time as it is told; the zero time is 0.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// hearListed returns what the board is to be told of a change that came as a line of the news, if somebody there wants it.
func (l *Log) hearListed(n line) notice {
	board := l.lists.Load()
	if board == nil || !(*board).Listing(n.owner) {
		return nil
	}
	return func() {
		change, err := readChange(n.thread, n.owner, n.row)
		if err != nil {
			l.opts.Logger.Warn("a change of a list was not understood; lists begin anew", "err", err)
			(*board).MissedLists()
			return
		}
		(*board).Listed(change)
	}
}

// missedLists returns that changes may have been missed, if there is anybody to tell.
func (l *Log) missedLists() notice {
	board := l.lists.Load()
	if board == nil {
		return nil
	}
	return (*board).MissedLists
}
