package thread

import "time"

// Request asks for a run.
type Request struct {
	Thread ID
	RunID  RunID  // chosen by the runner if empty
	Agent  string // the default agent if empty
	User   User   // to whom the thread belongs, if the run begins it
	By     string // who asks, in records
	OnBusy OnBusy // what to do when a run is active
	// Input makes the RunAgentInput (AG-UI 1.0, section 6) for the run id that the run gets.
	Input func(RunID) ([]byte, error)
}

// OnBusy says what becomes of a [Request] for a thread on which a run is active.
type OnBusy string

// What can be done about an active run.
const (
	Reject    OnBusy = ""          // refuse the request, with a [RunningError]
	Enqueue   OnBusy = "enqueue"   // let it wait for its turn
	Interrupt OnBusy = "interrupt" // stop the active run, and keep what it said
	Replace   OnBusy = "replace"   // stop the active run, and discard it
)

// Accepted answers a [Request]: the run, or its place in the queue, is recorded.
type Accepted struct {
	RunID  RunID
	Cursor Cursor // from which the run's events follow
	Queued int    // its place in the queue, 1 for the next; 0 for a run that was started
}

// Queued is a request that waits for the active run of its thread to end.
type Queued struct {
	Thread ID
	RunID  RunID
	Agent  string
	Input  []byte // the whole RunAgentInput, as its author knew the conversation
	After  uint64 // number of the run that was active then
	Title  string // the beginning of its first user message
	By     string
	Since  time.Time
	Place  int // 1 for the next

	Front    bool     // it goes before those that are not
	Replaces RunID    // the run that is discarded when it starts; empty for none
	Answers  []Answer // what Input answers, which is reserved with its place
}

// Stopped answers a wish to stop.
type Stopped struct {
	Stopped bool // false when the thread is idle, another run is active, or the run ended by itself
	RunID   RunID
	Cursor  Cursor // the end of the run
}

// Status is how a thread stands.
type Status struct {
	Running   bool
	RunID     RunID // of the active run, or else of the latest
	Agent     string
	Cursor    Cursor
	LastEvent time.Time // of the active run; zero if unknown
	Started   time.Time
	Pending   []byte   // JSON array of the interrupts that wait for an answer; nil if none
	Calls     []byte   // JSON array of the tool calls that wait for the application; nil if none
	Queue     []Queued // what waits for its turn, without inputs
	Latest    *Run     // the latest finished run's particulars; nil if none
}
