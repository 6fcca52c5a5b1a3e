package thread

import "time"

// Claim is what a node asks for when it wants to run something on a thread.
type Claim struct {
	Thread ID
	RunID  RunID  // the run it is for
	Owner  string // the node, with its incarnation: a restarted node is another owner
}

// Lease is the right to append to a thread's run until Deadline. Its Token only grows: who holds an older
// one is refused wherever it writes.
type Lease struct {
	Claim
	Token    uint64
	Acquired time.Time
	Deadline time.Time // by the log's clock; a holder trusts its own count from before it asked

	// Asked receives when somebody asked the run to stop, so that its holder need not wait for the next
	// renewal to learn of it. It may be nil, and may receive without cause: [Lease.Stop] of a renewal decides.
	Asked <-chan struct{}
	// Seen is when the holder's last entry came, for who asks of the lease of another node; zero if that is not known.
	Seen time.Time
	// Stop is the wish to stop the run, as of the last renewal; nil if there is none.
	Stop *StopRequest
}

// StopRequest is somebody's wish that a run ends.
type StopRequest struct {
	RunID RunID
	By    string
}
