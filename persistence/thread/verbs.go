package thread

import "time"

// Request asks for a run.
type Request struct {
	Thread ID
	RunID  RunID  // chosen by the runner if empty
	Agent  string // the default agent if empty
	// Input makes the RunAgentInput (AG-UI 1.0, section 6) for the run id that the run gets.
	Input func(RunID) ([]byte, error)
}

// Accepted answers a [Request]: the run is recorded.
type Accepted struct {
	RunID  RunID
	Cursor Cursor // from which the run's events follow
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
	Pending   []byte // JSON array of the interrupts that wait for an answer; nil if none
	Latest    *Run   // the latest finished run's particulars; nil if none
}
