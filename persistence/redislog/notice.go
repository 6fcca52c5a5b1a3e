package redislog

import (
	"strconv"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Board is told, on every node, what [Log.Changed] and [Log.Discarded] are called with on any node. Its methods must not
// block.
type Board interface {
	Changed(id thread.ID)
	Discarded(id thread.ID, run thread.Run)
	// Missed tells that this node may have missed what happened to a thread, whole runs included.
	Missed(id thread.ID)
}

// Listen has a board told from now on. Of several the last one is.
func (l *Log) Listen(b Board) { l.board.Store(&b) }

// Changed tells the boards of all nodes that what waits on a thread is not what it was. It does not block: what cannot be
// told at once is told later, and what cannot be told for a while not at all.
func (l *Log) Changed(id thread.ID) { l.post(post{call: l.tellCall(newsChanged, id)}) }

// Discarded tells the boards of all nodes that a run is no longer a part of its thread: its id, its number and the seq of
// its end. It does not block, as [Log.Changed] does not.
func (l *Log) Discarded(id thread.ID, run thread.Run) {
	l.post(post{call: l.tellCall(newsDiscarded, id, "run", run.Number, "id", string(run.ID), "last", run.LastSeq)})
}

func (l *Log) tellCall(what string, id thread.ID, more ...any) call {
	group := groupOf(id)
	return call{
		script: l.scripts.tell, keys: []string{l.keys.counters(group), l.keys.news(group)},
		args: append([]any{what, string(id)}, more...),
	}
}

// discarded reads a run from what is told of it.
func discarded(id thread.ID, f []string) (run thread.Run, ok bool) {
	if len(f) != 8 {
		return run, false
	}
	number, err := strconv.ParseUint(f[3], 10, 64)
	last, errLast := strconv.ParseUint(f[7], 10, 64)
	return thread.Run{Thread: id, Number: number, ID: thread.RunID(f[5]), LastSeq: last}, err == nil && errLast == nil
}

// notice tells a board something.
type notice func()
