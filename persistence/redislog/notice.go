package redislog

import (
	"context"
	"strconv"
	"time"

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
func (l *Log) Changed(id thread.ID) { l.post(l.tellCall(newsChanged, id)) }

// Discarded tells the boards of all nodes that a run is no longer a part of its thread: its id, its number and the seq of
// its end. It does not block, as [Log.Changed] does not.
func (l *Log) Discarded(id thread.ID, run thread.Run) {
	l.post(l.tellCall(newsDiscarded, id, "run", run.Number, "id", string(run.ID), "last", run.LastSeq))
}

func (l *Log) tellCall(what string, id thread.ID, more ...any) call {
	group := groupOf(id)
	return call{
		script: l.scripts.tell, keys: []string{l.keys.counters(group), l.keys.news(group)},
		args: append([]any{what, string(id)}, more...),
	}
}

// postsKept is how many notices wait to be told at most.
const postsKept = 1024

func (l *Log) post(c call) {
	select {
	case l.posts <- c:
	default:
		l.opts.Logger.Warn("other nodes are not told of a change: too much waits to be told", "thread", c.args[1])
	}
}

// postAll tells what is to be told, in order, until the log is closed.
func (l *Log) postAll() {
	for {
		select {
		case <-l.stop:
			return
		case c := <-l.posts:
			l.tell(c)
		}
	}
}

// tell tells all nodes. While Redis cannot be reached it tries again; a minute later nobody needs to know any more, since
// viewers ask anew when they come back.
func (l *Log) tell(c call) {
	for began := time.Now(); time.Since(began) < time.Minute; {
		_, err := l.run(context.Background(), c)
		if err == nil || !l.pause(retryLanes) {
			return
		}
	}
	l.opts.Logger.Warn("other nodes were not told of a change", "thread", c.args[1])
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

// notice is something that a board is to be told.
type notice func(Board)

// tellBoard tells the board, outside of every lock.
func (l *Log) tellBoard(notices []notice) {
	board := l.board.Load()
	if board == nil {
		return
	}
	for _, tell := range notices {
		tell(*board)
	}
}
