package redislog

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// position is a place in the news of a group: the number of a line, and when the data began in which it was counted.
type position struct{ first, number uint64 }

func readPosition(id string) position {
	first, number, _ := strings.Cut(id, "-")
	var p position
	p.first, _ = strconv.ParseUint(first, 10, 64)
	p.number, _ = strconv.ParseUint(number, 10, 64)
	return p
}

func (p position) String() string {
	return strconv.FormatUint(p.first, 10) + "-" + strconv.FormatUint(p.number, 10)
}

func (p position) before(q position) bool {
	return cmp.Or(cmp.Compare(p.first, q.first), cmp.Compare(p.number, q.number)) < 0
}

// What the news tell.
const (
	newsBegun     = "begun"     // a run has begun
	newsGone      = "gone"      // a thread was deleted
	newsAsked     = "asked"     // the holder of a thread should look at its lease
	newsChanged   = "changed"   // what waits on a thread has changed
	newsDiscarded = "discarded" // a run is no longer a part of its thread
	newsListed    = "listed"    // what lists show of a thread has changed
	newsMissed    = "missed"    // such changes were not told
)

// line is one of the news.
type line struct {
	at     position
	what   string
	thread thread.ID
	run    member      // of newsBegun
	gone   thread.Run  // of newsDiscarded
	owner  thread.User // of newsListed
	row    string      // of newsListed: what writeChange makes
}

// readLine reads a line as it is in a reply.
func readLine(one any) (line, bool) {
	id, what, about, ok := readRaw(one)
	if !ok {
		return line{}, false
	}
	n := line{at: readPosition(id), what: what, thread: thread.ID(about)}
	switch what {
	case newsDiscarded:
		n.gone, ok = discarded(n.thread, fields(one.([]any)[1].([]any)))
	case newsBegun:
		f := fields(one.([]any)[1].([]any))
		if len(f) != 6 {
			return line{}, false
		}
		number, err := strconv.ParseUint(f[3], 10, 64)
		n.run, ok = member{number: number, id: thread.RunID(f[5])}, err == nil
	case newsListed:
		f := fields(one.([]any)[1].([]any))
		if len(f) != 6 {
			return line{}, false
		}
		n.owner, n.row = thread.User(f[3]), f[5]
	}
	return n, ok
}

// hear does what a line of the news calls for. The lane is locked.
func (ln *lane) hear(n line) {
	switch n.what {
	case newsAsked:
		ln.log.holders.wake(n.thread)
		if w := ln.watches[n.thread]; w != nil {
			w.home = false // it may have been taken over
		}
	case newsGone:
		if w := ln.watches[n.thread]; w != nil {
			w.live, w.home = false, false
			for t := range w.tails {
				t.deleted(n.at)
			}
		}
	case newsBegun:
		if w := ln.watches[n.thread]; w != nil {
			w.begin(n.run)
		}
	case newsChanged, newsDiscarded:
		// Whoever watches the thread is told, once nothing is locked.
		if ln.watches[n.thread] != nil {
			ln.toBoard(func(b Board) {
				if n.what == newsDiscarded {
					b.Discarded(n.thread, n.gone)
				} else {
					b.Changed(n.thread)
				}
			})
		}
	case newsListed:
		ln.notify(ln.log.hearListed(n))
	case newsMissed:
		ln.notify(ln.log.missedLists())
	}
}
