package hub

import (
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// For how long, and of how many threads, it is known which changes were told: longer than anybody tries to tell one.
const (
	ledgerTime = 2 * time.Minute
	ledgerSize = 16384
)

// ledger knows which changes of a list were told lately, so that none is told twice.
type ledger struct {
	told  map[thread.ID]toldOf
	sweep time.Time // when old ones are forgotten
}

// toldOf is what was told of a thread.
type toldOf struct {
	last   uint64 // the latest revision
	before uint64 // bit n is set if revision last-1-n was told
	at     time.Time
}

// enter notes that a change is told. It tells whether that is the first time, and whether a later change was told before.
func (l *ledger) enter(id thread.ID, revision uint64, now time.Time) (first, late bool) {
	if l.told == nil {
		l.told = make(map[thread.ID]toldOf)
	}
	t, known := l.told[id]
	switch back := t.last - revision; {
	case !known:
		t.last = revision
	case revision == t.last:
		return false, false
	case revision > t.last:
		ahead := revision - t.last
		t.before = t.before<<ahead | 1<<(ahead-1) // a shift by 64 or more leaves nothing
		t.last = revision
	case back > 64 || t.before&(1<<(back-1)) != 0:
		return false, true
	default:
		t.before |= 1 << (back - 1)
		late = true
	}
	t.at = now
	l.told[id] = t
	l.forget(now)
	return true, late
}

// forget drops what is old, now and then.
func (l *ledger) forget(now time.Time) {
	full := len(l.told) > ledgerSize
	if now.Before(l.sweep) && !full {
		return
	}
	l.sweep = now.Add(ledgerTime / 4)
	keep := ledgerTime
	for {
		for id, t := range l.told {
			if now.Sub(t.at) > keep {
				delete(l.told, id)
			}
		}
		if len(l.told) <= ledgerSize*3/4 || keep < time.Millisecond {
			return
		}
		keep /= 2
	}
}
