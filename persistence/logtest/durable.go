package logtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Opener opens the log that is in a directory, an empty one if there is none yet. Closing the log closes
// everything that was opened with it.
type Opener func(dir string) (Log, error)

// durableCheck is one promise of logs that outlive their process.
type durableCheck struct {
	name string
	run  func(t *testing.T, d *disk)
}

// RunDurable tests the promises of logs that outlive their process. The driver's TestMain has to call [Child] first.
func RunDurable(t *testing.T, open Opener) {
	for _, c := range append(durableChecks, killChecks...) {
		t.Run(c.name, func(t *testing.T) { c.run(t, &disk{t: t, dir: t.TempDir(), open: open}) })
	}
}

// disk is a directory with a log in it.
type disk struct {
	t    *testing.T
	dir  string
	open Opener
	log  Log // the one that is open; nil if none is
}

// reopen closes the log, if it is open, and opens it again.
func (d *disk) reopen() Log {
	d.t.Helper()
	d.close()
	log, err := d.open(d.dir)
	if err != nil {
		d.t.Fatalf("opening the log: %v", err)
	}
	d.log = log
	d.t.Cleanup(d.close)
	return log
}

func (d *disk) close() {
	d.t.Helper()
	if d.log != nil {
		closeLog(d.t, d.log)
		d.log = nil
	}
}

var durableChecks = []durableCheck{
	{"entries, runs and heads are there again", func(t *testing.T, d *disk) {
		log := d.reopen()
		var want []thread.Entry
		for run := uint64(1); run <= 3; run++ {
			a := begin(t, log, "t", run)
			a.add(40)
			a.add(1)
			a.add(700)
			a.add(3)
			a.leave()
			want = append(want, a.wrote...)
		}
		live := begin(t, log, "t", 5)
		live.add(3)
		want = append(want, live.wrote...)
		for range 2 {
			log = d.reopen()
			holds(t, log, "t", want)
			rest := after(want, thread.Cursor{Run: 2, Seq: 30})
			sameEntries(t, follow(t, log, "t", thread.Cursor{Run: 2, Seq: 30}).await(len(rest)), rest)
		}
	}},
	{"bytes are there again as they were", func(t *testing.T, d *disk) {
		a := begin(t, d.reopen(), "t", 1)
		for _, data := range nastyBytes() {
			a.append(thread.Entry{Run: 1, RunID: runID(1), Seq: a.seq + 1, Kind: thread.KindEvent, Data: data})
		}
		sameBytes(t, readAll(t, d.reopen(), "t"), a.wrote)
	}},
	{"what was ended stays ended, what was not goes on", func(t *testing.T, d *disk) {
		log := d.reopen()
		ended, live := begin(t, log, "t", 1), begin(t, log, "u", 1)
		ended.add(2)
		ended.end()
		live.add(2)
		log = d.reopen()
		ended.again(log)
		live.again(log)
		ended.refused(thread.ErrEnded, event(1, 4))
		ended.repeat(events(1, 1, 2)...)
		live.repeat(events(1, 1, 2)...)
		live.refused(thread.ErrGap, event(1, 4))
		live.add(1)
		live.end()
		holds(t, log, "t", ended.wrote)
		holds(t, log, "u", live.wrote)
	}},
	{"leases of the former process are abandoned, and can be taken over at once", func(t *testing.T, d *disk) {
		log := d.reopen()
		lease, released := acquire(t, log, claim("t", 3, "node-a"), time.Hour), acquire(t, log, claim("u", 1, "node-a"), time.Hour)
		if err := log.Release(t.Context(), released); err != nil {
			t.Fatal(err)
		}
		log = d.reopen()
		wantNoHolder(t, log, "t")
		got, err := log.Abandoned(t.Context(), 10)
		if err != nil || len(got) != 1 || got[0].Claim != lease.Claim || got[0].Token != lease.Token {
			t.Fatalf("Abandoned = %+v, %v; want %+v", got, err, lease)
		}
		if got[0].Acquired.Sub(lease.Acquired).Abs() > time.Millisecond {
			t.Fatalf("acquired at %v, want %v", got[0].Acquired, lease.Acquired)
		}
		taken := acquire(t, log, claim("t", 3, "node-b"), time.Hour)
		if taken.Token <= released.Token {
			t.Fatalf("token %d after token %d", taken.Token, released.Token)
		}
		stale := author{t: t, log: log, lease: lease, run: 3}
		stale.refused(thread.ErrLeaseLost, event(3, 1))
		wantAbandoned(t, log)
	}},
	{"tokens grow for ever", func(t *testing.T, d *disk) {
		var token uint64
		for range 5 {
			log := d.reopen()
			lease := acquire(t, log, claim("t", 1, "node-a"), time.Hour)
			if lease.Token <= token {
				t.Fatalf("token %d after token %d", lease.Token, token)
			}
			token = lease.Token
			if err := log.Release(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"a wish to stop is there again", func(t *testing.T, d *disk) {
		log := d.reopen()
		acquire(t, log, claim("t", 1, "node-a"), time.Hour)
		if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		got, err := d.reopen().Abandoned(t.Context(), 10)
		if err != nil || len(got) != 1 || got[0].Stop == nil || *got[0].Stop != (thread.StopRequest{RunID: runID(1), By: "ann"}) {
			t.Fatalf("Abandoned = %+v, %v; want one with ann's wish", got, err)
		}
	}},
	{"what is to be dropped later is dropped later", durableDrop},
	{"what was dropped or forgotten stays away", func(t *testing.T, d *disk) {
		log := d.reopen()
		for i, id := range []thread.ID{"t", "u"} {
			a := begin(t, log, id, 1)
			a.add(3)
			a.add(2500 + i)
			a.leave()
		}
		drop(t, log, 1, 0)
		if err := Wipe(t.Context(), log, "u"); err != nil {
			t.Fatal(err)
		}
		log = d.reopen()
		holds(t, log, "t", nil)
		holds(t, log, "u", nil)
		b := begin(t, log, "u", 1)
		b.add(3)
		log = d.reopen()
		holds(t, log, "u", b.wrote)
	}},
	{"it is opened once at a time", func(t *testing.T, d *disk) {
		d.reopen()
		if log, err := d.open(d.dir); !errors.Is(err, thread.ErrUnavailable) {
			t.Fatalf("opening it twice gave %v, %v; want %v", log, err, thread.ErrUnavailable)
		}
	}},
}

// again gives the author a new lease in the log, in place of one that was lost.
func (a *author) again(log Log) {
	a.t.Helper()
	a.log = log
	a.lease = acquire(a.t, log, thread.Claim{Thread: a.lease.Thread, RunID: a.lease.RunID, Owner: "node-b"}, time.Hour)
}

// durableDrop drops runs at several times, some of which pass while the log is closed.
func durableDrop(t *testing.T, d *disk) {
	log := d.reopen()
	var late []thread.Entry
	for run, keep := range map[uint64]time.Duration{1: 30 * time.Millisecond, 2: 300 * time.Millisecond, 3: time.Hour} {
		id := thread.ID(fmt.Sprintf("thread %d", run))
		a := begin(t, log, id, run)
		a.add(1200)
		a.leave()
		if err := log.Drop(t.Context(), id, run, keep); err != nil {
			t.Fatal(err)
		}
		if run == 3 {
			late = a.wrote
		}
	}
	d.close()
	passed := time.Now().Add(50 * time.Millisecond)
	eventually(t, "the first time passes", func() bool { return time.Now().After(passed) })
	log = d.reopen()
	for _, id := range []thread.ID{"thread 1", "thread 2"} {
		eventually(t, string(id)+" goes", func() bool {
			head, err := log.Head(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return head == thread.Cursor{}
		})
		holds(t, log, id, nil)
	}
	holds(t, log, "thread 3", late)
}
