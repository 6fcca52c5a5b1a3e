package thread

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Page asks for a part of a list of threads: up to Limit of them that follow the place Before, which is what the call
// for the page before it returned; empty for the beginning.
type Page struct {
	Before string
	Limit  int

	Owner    User   // whose threads
	Agent    string // those whose first run was one of this agent; empty for all
	Archived bool   // those that were archived, too
}

// MaxName is the greatest length of the name that a thread is given, in bytes.
const MaxName = 512

// Edit changes how a thread stands in lists. What is nil stays as it is.
type Edit struct {
	Name     *string // empty takes the name away
	Archived *bool
}

// Check tells whether the name can be one: at most [MaxName] bytes of valid UTF-8 without control characters. The error
// wraps [ErrBadInput].
func (e Edit) Check() error {
	if e.Name == nil {
		return nil
	}
	switch name := *e.Name; {
	case len(name) > MaxName:
		return fmt.Errorf("%w: name is %d bytes long; at most %d are allowed", ErrBadInput, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: name is not valid UTF-8", ErrBadInput)
	}
	for _, r := range *e.Name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: name holds a control character", ErrBadInput)
		}
	}
	return nil
}

// Happening says what a [Change] is. The texts are shown, and told from node to node; they never change.
type Happening string

// What happens to a thread in a list.
const (
	Created    Happening = "created" // it was begun, and with it its first run
	Renamed    Happening = "renamed"
	Archived   Happening = "archived"
	Unarchived Happening = "unarchived"
	Running    Happening = "running" // another run of it was accepted
	Waiting    Happening = "waiting" // its run has ended, and waits for an answer
	Ended      Happening = "ended"   // its run has ended otherwise
	Enqueued   Happening = "queued"  // how many runs wait for their turn is another number now
	Deleted    Happening = "deleted"
)

// Change is one change of what a list shows of a thread. The changes of a thread are numbered: each makes its
// [Thread.Revision] the next number, also when the thread is deleted and begun anew.
type Change struct {
	What Happening
	// Thread is as the change left it. Of one that was deleted there is nothing but ID, Owner, Agent, LastRun and Revision.
	Thread Thread
	At     time.Time
}
