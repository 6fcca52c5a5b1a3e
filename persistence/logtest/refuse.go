package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
)

var refuseChecks = []check{
	{"a run that does not begin with 1 is a gap", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.refused(thread.ErrGap, event(1, 2))
		holds(t, log, "t", nil)
		a.add(1)
		holds(t, log, "t", a.wrote)
	}},
	{"an entry that does not follow is a gap", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.refused(thread.ErrGap, event(1, 5))
		a.refused(thread.ErrGap, events(1, 5, 20)...)
		a.refused(thread.ErrGap, endEntry(1, 5))
		holds(t, log, "t", a.wrote)
		a.add(1)
		holds(t, log, "t", a.wrote)
	}},
	{"a gap within a batch: none of it is added", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.refused(thread.ErrGap, event(1, 4), event(1, 6))
		a.refused(thread.ErrGap, event(1, 4), event(1, 4))
		a.refused(thread.ErrGap, event(1, 5), event(1, 4))
		holds(t, log, "t", a.wrote)
	}},
	{"nothing follows the end", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(1)
		a.end()
		a.refused(thread.ErrEnded, event(1, 3))
		a.refused(thread.ErrEnded, endEntry(1, 3))
		a.refused(thread.ErrEnded, endEntry(1, 2), event(1, 3))
		a.refused(thread.ErrEnded, event(1, 7))
		holds(t, log, "t", a.wrote)
	}},
	{"an end within a batch: none of it is added", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.refused(thread.ErrEnded, event(1, 1), endEntry(1, 2), event(1, 3))
		holds(t, log, "t", nil)
	}},
	{"nothing is added to a run before the latest", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 3)
		a.add(2)
		a.leave()
		b := begin(t, log, "t", 4)
		b.add(1)
		b.refused(thread.ErrEnded, event(2, 1))
		b.refused(thread.ErrEnded, event(3, 4))
		holds(t, log, "t", append(a.wrote, b.wrote...))
	}},
	{"entries of several runs are bad input", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.refused(thread.ErrBadInput, event(1, 1), event(2, 2))
		renamed := event(1, 2)
		renamed.RunID = "another"
		a.refused(thread.ErrBadInput, event(1, 1), renamed)
		a.add(1)
		a.refused(thread.ErrBadInput, renamed)
		holds(t, log, "t", a.wrote)
	}},
	{"number 0 and unknown kinds are bad input", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.refused(thread.ErrBadInput, event(0, 1))
		a.refused(thread.ErrBadInput, event(1, 0))
		strange := event(1, 1)
		strange.Kind = 0
		a.refused(thread.ErrBadInput, strange)
		strange.Kind = 77
		a.refused(thread.ErrBadInput, strange)
		holds(t, log, "t", nil)
	}},
	{"a context that is done adds nothing", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		if err := log.Append(ctx, a.lease, events(1, 1, 1)); !errors.Is(err, errEnough) {
			t.Fatalf("Append: got error %v, want the cause of its context", err)
		}
		holds(t, log, "t", nil)
	}},
}
