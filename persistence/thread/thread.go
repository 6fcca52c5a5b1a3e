package thread

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// ID names a thread. Clients choose it; it is opaque.
type ID string

// RunID names a run within its thread. Clients choose it, or the runner does; it is opaque.
type RunID string

// User names who calls, as the way into the server tells it; empty where nobody has to say who they are. A thread belongs to the
// user who began it.
type User string

// MaxID is the greatest length of an [ID] or a [RunID], in bytes.
const MaxID = 256

// CheckID tells whether s can name a thread or a run: 1 to [MaxID] bytes of valid UTF-8 without control
// characters and without U+FFFD, which is what becomes of texts that are not Unicode. The error wraps [ErrBadInput] and names the field.
func CheckID(field, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: %s is missing or empty", ErrBadInput, field)
	case len(s) > MaxID:
		return fmt.Errorf("%w: %s is %d bytes long; at most %d are allowed", ErrBadInput, field, len(s), MaxID)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrBadInput, field)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %s holds a control character", ErrBadInput, field)
		}
		if r == utf8.RuneError {
			return fmt.Errorf("%w: %s holds U+FFFD, or half of a surrogate pair", ErrBadInput, field)
		}
	}
	return nil
}

// Kind tells entries apart.
type Kind uint8

// The kinds of an entry. The values are stored; they never change.
const (
	KindEvent Kind = 1 // one AG-UI event, as the agent sent it
	KindEnd   Kind = 2 // the last entry of a run; Data is the JSON of an [End]
)

// Entry is an event, or the end of a run, as the live log keeps it.
// Data is shared between everybody who reads the entry: it is never changed.
type Entry struct {
	Run   uint64
	RunID RunID
	Seq   uint64
	Kind  Kind
	Data  []byte
}

// Cursor is the position right after e.
func (e Entry) Cursor() Cursor { return Cursor{Run: e.Run, Seq: e.Seq} }

// Outcome says how a run ended.
type Outcome string

// The outcomes. The texts are stored and shown; they never change.
const (
	OutcomeFinished Outcome = "finished"  // the agent finished
	OutcomeWaiting  Outcome = "waiting"   // the agent finished with an interrupt: it waits for an answer
	OutcomeStopped  Outcome = "stopped"   // somebody stopped it
	OutcomeFailed   Outcome = "failed"    // the agent failed, or sent what cannot be recorded
	OutcomeTimedOut Outcome = "timed_out" // it ran, or was silent, for longer than allowed
	OutcomeLost     Outcome = "lost"      // its owner went away
	OutcomeShutDown Outcome = "shut_down" // the node shut down before it ended
)

// End is what the last entry of a run says.
type End struct {
	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`    // of RUN_ERROR, if that is how the run ended
	Message string  `json:"message,omitempty"` // of RUN_ERROR; written for people
	By      string  `json:"by,omitempty"`      // who stopped it
}

// Finished tells whether RUN_FINISHED ended the run, rather than RUN_ERROR: it settles what waits for an answer (AG-UI
// 1.0, section 9).
func (e End) Finished() bool {
	switch e.Outcome {
	case OutcomeFinished, OutcomeWaiting:
		return true
	case OutcomeStopped, OutcomeTimedOut:
		return e.Code == ""
	case OutcomeFailed, OutcomeLost, OutcomeShutDown:
	}
	return false
}

// Event is one event of a finished run, as history keeps it: after compaction it stands for the entries
// First to Last of the live log, both included.
type Event struct {
	First uint64
	Last  uint64
	Data  []byte
}

// Run is one run, as history knows it. Ended is zero while it has not ended. EventCount and Bytes are history's to fill in.
type Run struct {
	Thread   ID
	ID       RunID
	Number   uint64 // 1, 2, 3... within the thread, given by history when the run is accepted
	Agent    string
	Parent   string // parentRunId as the client sent it
	Previous RunID  // the thread's run before this one
	Owner    string // the node that runs it
	Token    uint64 // the lease's, as of the last write
	Input    []byte // RunAgentInput, its messages reduced to those new to the thread
	Title    string // what to call the thread, if it has no title yet
	Accepted time.Time

	// For the run's acceptance only:
	User    User     // to whom the thread belongs, if the run begins it
	Answers []Answer // what Input answers
	Queued  bool     // it comes from the queue, and has to be there still
	Follows uint64   // the number that the thread's last run has to have; 0 for any

	Ended     time.Time
	End       End
	Discarded bool     // it was replaced, and is left out of replay
	LastSeq   uint64   // seq of the end entry
	Events    []Event  // compacted; nil where only the run's particulars were asked for
	Messages  []string // ids of the messages that the run created, for [Run.Input] of later runs
	Pending   []byte   // JSON array of the interrupts that wait for an answer; nil if none
	Calls     []byte   // JSON array of the tool calls that wait for the application; nil if none
	Usage     []byte   // JSON array of the tokens used, as RUN_FINISHED or RUN_ERROR had it; nil if none

	EventCount int   // how many Events history has of the run
	Bytes      int64 // of their data together
}

// Cursor is the position right after the last entry of a finished run.
func (r Run) Cursor() Cursor { return Cursor{Run: r.Number, Seq: r.LastSeq} }

// Result is what a tool answered, where that is too large for the live log.
type Result struct {
	Thread  ID
	RunID   RunID
	Run     uint64
	Token   uint64 // of the lease under which it is stored
	Place   int    // 1 for the first of the run
	Content []byte // the JSON of TOOL_CALL_RESULT.content, as the agent sent it
}

// Thread is one thread, as history knows it.
type Thread struct {
	ID       ID
	LastRun  uint64 // number of the latest run accepted; outlives deletion
	Created  time.Time
	Activity time.Time // of the last acceptance or end
	Deleted  bool      // nothing is left but LastRun and Revision
	Latest   *Run      // the latest run's particulars, without input and events; nil if there is none
	Title    string    // the beginning of the first user message; may be empty
	Pending  []byte    // JSON array of the interrupts that wait for an answer; nil if none
	Calls    []byte    // JSON array of the tool calls that wait for the application; nil if none
	Queued   int       // how many runs wait for their turn

	Owner    User      // who began it
	Agent    string    // of its first run
	Name     string    // that it was given in place of the title; empty if none
	Archived time.Time // zero if it is not
	Revision uint64    // grows by one with each [Change]; outlives deletion
}
