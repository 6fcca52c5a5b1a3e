package history

import (
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The values of [Ending.Status].
const (
	statusRunning = "running"
	statusEnded   = "ended"
)

// AgentRun is a row of agent_runs: one run, from its acceptance on.
type AgentRun struct {
	Particulars `gorm:"embedded"`
	Input       string // RunAgentInput as JSON; empty if there is none
	Events      string // what encodeEvents makes; empty while the run has not ended
}

// TableName is the table of an [AgentRun].
func (AgentRun) TableName() string { return "agent_runs" }

// Particulars are what is known of a run without its input and events.
type Particulars struct {
	ID            int64 `gorm:"primaryKey;autoIncrement"` // grows in the order of acceptance
	ThreadID      Text
	RunID         Text
	Number        uint64
	ParentRunID   Text // as the client sent it
	PreviousRunID Text // the thread's run before this one
	AgentID       Text
	Owner         Text
	Token         uint64
	Accepted      int64 `gorm:"column:created_at"` // Unix milliseconds
	Version       int   // of the form of Events
	Discarded     int   // 1 if the run was replaced, else 0
	Ending        `gorm:"embedded"`
}

// Ending is the part of a run's row that its end fills in.
type Ending struct {
	Status       string // running or ended
	Outcome      string
	Code         Text
	Error        Text
	StoppedBy    Text
	EndedAt      int64 // Unix milliseconds; 0 while the run has not ended
	LastSeq      uint64
	EventCount   int
	Bytes        int64 // of all events together
	Checksum     int64 // CRC-32C of Events
	Pending      string
	PendingCalls string // JSON array of the tool calls that waited for the application after it; empty if there are none
	Usage        string // JSON array of the tokens used, as it came; empty if there is none
}

// RunState is a row of run_state: what runs on a thread, and what its last interrupt waits for.
type RunState struct {
	ThreadID     Text `gorm:"primaryKey"`
	IsRunning    int  // 1 or 0
	CurrentRunID Text
	ServerID     Text   // the owner of the current run
	Updated      int64  `gorm:"column:updated_at"` // Unix milliseconds
	Pending      string // JSON array of interrupts; empty if there are none
	PendingCalls string // JSON array of tool calls; empty if there are none
}

// TableName is the table of a [RunState].
func (RunState) TableName() string { return "run_state" }

// SchemaVersion is a row of schema_version: one migration that was applied.
type SchemaVersion struct {
	Version   int   `gorm:"primaryKey;autoIncrement:false"`
	AppliedAt int64 // Unix milliseconds
}

// TableName is the table of a [SchemaVersion].
func (SchemaVersion) TableName() string { return "schema_version" }

// Thread is a row of threads. The row of a deleted thread stays, with its last run number, its revision and nothing else.
type Thread struct {
	ID       Text `gorm:"primaryKey"`
	LastRun  uint64
	Title    Text
	Created  int64  `gorm:"column:created_at"`  // Unix milliseconds
	Activity int64  `gorm:"column:activity_at"` // Unix milliseconds
	Deleted  int64  `gorm:"column:deleted_at"`  // Unix milliseconds; 0 if it is not deleted
	Owner    Text   // the user who began it
	AgentID  string // what messageKey makes of the agent of its first run
	Name     Text
	Archived int64  `gorm:"column:archived_at"` // Unix milliseconds; 0 if it is not archived
	Revision uint64 // grows with each change of what lists show of it
}

// TableName is the table of a [Thread].
func (Thread) TableName() string { return "threads" }

// ThreadMessage is a row of thread_messages: the id of a message that the thread has seen.
type ThreadMessage struct {
	ThreadID  Text   `gorm:"primaryKey"`
	MessageID string `gorm:"primaryKey"` // what messageKey makes of the id
}

// TableName is the table of a [ThreadMessage].
func (ThreadMessage) TableName() string { return "thread_messages" }

// ThreadAnswer is a row of thread_answers: an interrupt or a tool call that has its answer, and the run that brought it.
type ThreadAnswer struct {
	ThreadID  Text   `gorm:"primaryKey"`
	Kind      string `gorm:"primaryKey"` // a [thread.AnswerKind]
	AnswerKey string `gorm:"primaryKey"` // what messageKey makes of the id
	RunID     Text
	Digest    string
}

// TableName is the table of a [ThreadAnswer].
func (ThreadAnswer) TableName() string { return "thread_answers" }

// RunResult is a row of run_results: what a tool answered that is too large for the live log.
type RunResult struct {
	ThreadID Text   `gorm:"primaryKey"`
	Number   uint64 `gorm:"primaryKey;autoIncrement:false"` // of the run
	Place    int    `gorm:"primaryKey;autoIncrement:false"` // 1 for the first of the run
	Content  string // JSON
}

// TableName is the table of a [RunResult].
func (RunResult) TableName() string { return "run_results" }

// Installation is the one row that tells this database from all others.
type Installation struct {
	ID     Text   `gorm:"primaryKey"`
	Secret string // 32 bytes in hexadecimal digits
}

// TableName is the name of the table.
func (Installation) TableName() string { return "installation" }

// QueuedRun is a row of queued_runs: a request that waits for the active run of its thread to end.
type QueuedRun struct {
	ID       int64 `gorm:"primaryKey;autoIncrement"` // grows in the order of asking
	ThreadID Text
	RunID    Text
	AgentID  Text
	AfterRun uint64
	Title    Text
	QueuedBy Text
	Created  int64  `gorm:"column:created_at"` // Unix milliseconds
	Front    int    // 1 if it goes before those that are not
	Replaces Text   // the run that is discarded when it starts
	Input    string // RunAgentInput as JSON
}

// TableName is the table of a [QueuedRun].
func (QueuedRun) TableName() string { return "queued_runs" }

// run is r in the words of the project, without its events.
func (r AgentRun) run() thread.Run {
	run := r.Particulars.run()
	run.Input = jsonBytes(r.Input)
	return run
}

func (p Particulars) run() thread.Run {
	return thread.Run{
		Thread:    thread.ID(p.ThreadID),
		ID:        thread.RunID(p.RunID),
		Number:    p.Number,
		Agent:     string(p.AgentID),
		Parent:    string(p.ParentRunID),
		Previous:  thread.RunID(p.PreviousRunID),
		Owner:     string(p.Owner),
		Token:     p.Token,
		Accepted:  fromMillis(p.Accepted),
		Discarded: p.Discarded != 0,
		Ended:     fromMillis(p.EndedAt),
		End: thread.End{
			Outcome: thread.Outcome(p.Outcome),
			Code:    string(p.Code),
			Message: string(p.Error),
			By:      string(p.StoppedBy),
		},
		LastSeq:    p.LastSeq,
		Pending:    jsonBytes(p.Pending),
		Calls:      jsonBytes(p.PendingCalls),
		Usage:      jsonBytes(p.Usage),
		EventCount: p.EventCount,
		Bytes:      p.Bytes,
	}
}

// millis is the form of a time in the database.
func millis(t time.Time) int64 { return t.UnixMilli() }

// fromMillis is a time as the database has it; 0 is the zero time.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func jsonBytes(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
