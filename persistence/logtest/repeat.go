package logtest

import (
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
)

var repeatChecks = []check{
	{"a repeated batch is passed over", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(5)
		for range 3 {
			a.repeat(events(1, 1, 5)...)
			a.repeat(events(1, 2, 3)...)
		}
		holds(t, log, "t", a.wrote)
	}},
	{"of an overlapping batch only the rest is added", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(5)
		a.repeat(events(1, 3, 9)...)
		holds(t, log, "t", events(1, 1, 9))
		a.repeat(events(1, 9, 10)...)
		holds(t, log, "t", events(1, 1, 10))
	}},
	{"a repeated entry keeps its first bytes", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2)
		other := event(1, 2)
		other.Data = []byte("other")
		a.repeat(other, event(1, 3))
		holds(t, log, "t", events(1, 1, 3))
	}},
	{"entries of an ended run are passed over", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.end()
		a.repeat(events(1, 1, 3)...)
		a.repeat(event(1, 3), endEntry(1, 4))
		holds(t, log, "t", a.wrote)
	}},
	{"entries of an earlier run are passed over", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.leave()
		b := begin(t, log, "t", 2)
		b.add(2)
		b.repeat(append(events(1, 1, 3), endEntry(1, 4))...)
		holds(t, log, "t", append(a.wrote, b.wrote...))
	}},
	{"a tail sees a repeated entry once", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		f := follow(t, log, "t", thread.Cursor{})
		for last := uint64(3); last <= 60; last += 3 {
			a.repeat(events(1, 1, last)...)
			a.repeat(events(1, last-2, last)...)
		}
		a.seq = 60
		a.end()
		sameEntries(t, f.await(61), append(events(1, 1, 60), endEntry(1, 61)))
	}},
}

// repeat appends entries some of which are there, without noting them.
func (a *author) repeat(entries ...thread.Entry) {
	a.t.Helper()
	if err := a.log.Append(a.t.Context(), a.lease, entries); err != nil {
		a.t.Fatalf("repeated Append of entries from %s: %v", entries[0].Cursor(), err)
	}
}
