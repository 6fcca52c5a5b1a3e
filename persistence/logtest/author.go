package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/persistence/thread"
)

// patience is how long a test waits for a fact before it says that the fact does not come.
const patience = 20 * time.Second

// author writes a run.
type author struct {
	t     *testing.T
	log   Log
	lease thread.Lease
	run   uint64
	seq   uint64
	wrote []thread.Entry
}

// begin takes the thread's lease for run number run, whose id is "run-<number>".
func begin(t *testing.T, log Log, id thread.ID, run uint64) *author {
	t.Helper()
	return &author{t: t, log: log, lease: acquire(t, log, claim(id, run, "node-a"), time.Hour), run: run}
}

func claim(id thread.ID, run uint64, owner string) thread.Claim {
	return thread.Claim{Thread: id, RunID: runID(run), Owner: owner}
}

func runID(run uint64) thread.RunID { return thread.RunID(fmt.Sprintf("run-%d", run)) }

func acquire(t *testing.T, log Log, c thread.Claim, ttl time.Duration) thread.Lease {
	t.Helper()
	lease, err := log.Acquire(t.Context(), c, ttl)
	if err != nil {
		t.Fatalf("Acquire(%+v): %v", c, err)
	}
	return lease
}

// event makes an entry whose data tells where it belongs.
func event(run, seq uint64) thread.Entry {
	return thread.Entry{
		Run: run, RunID: runID(run), Seq: seq, Kind: thread.KindEvent,
		Data: fmt.Appendf(nil, `{"type":"CUSTOM","name":"n","value":"%d-%d"}`, run, seq),
	}
}

func endEntry(run, seq uint64) thread.Entry {
	return thread.Entry{
		Run: run, RunID: runID(run), Seq: seq, Kind: thread.KindEnd, Data: []byte(`{"outcome":"finished"}`),
	}
}

// events makes the entries first to last of a run.
func events(run, first, last uint64) []thread.Entry {
	var made []thread.Entry
	for seq := first; seq <= last; seq++ {
		made = append(made, event(run, seq))
	}
	return made
}

// add appends n events as one batch.
func (a *author) add(n int) {
	a.t.Helper()
	a.append(events(a.run, a.seq+1, a.seq+uint64(n))...)
}

// end appends the end of the run.
func (a *author) end() {
	a.t.Helper()
	a.append(endEntry(a.run, a.seq+1))
}

// leave ends the run and releases the lease.
func (a *author) leave() {
	a.t.Helper()
	a.end()
	if err := a.log.Release(a.t.Context(), a.lease); err != nil {
		a.t.Fatalf("Release: %v", err)
	}
}

func (a *author) append(entries ...thread.Entry) {
	a.t.Helper()
	if err := a.log.Append(a.t.Context(), a.lease, entries); err != nil {
		a.t.Fatalf("Append of entries %s to %s: %v", entries[0].Cursor(), entries[len(entries)-1].Cursor(), err)
	}
	a.wrote = append(a.wrote, entries...)
	a.seq = entries[len(entries)-1].Seq
}

// refused appends entries and expects the error.
func (a *author) refused(want error, entries ...thread.Entry) {
	a.t.Helper()
	if err := a.log.Append(a.t.Context(), a.lease, entries); !errors.Is(err, want) {
		a.t.Fatalf("Append of entries from %s: got error %v, want %v", entries[0].Cursor(), err, want)
	}
}

// holds expects the thread to have exactly these entries.
func holds(t *testing.T, log Log, id thread.ID, want []thread.Entry) {
	t.Helper()
	got := readAll(t, log, id)
	sameEntries(t, got, want)
	var head thread.Cursor
	if len(want) > 0 {
		head = want[len(want)-1].Cursor()
	}
	if at, err := log.Head(t.Context(), id); err != nil || at != head {
		t.Fatalf("Head = %s, %v; want %s", at, err, head)
	}
}

func readAll(t *testing.T, log Log, id thread.ID) []thread.Entry {
	t.Helper()
	var all []thread.Entry
	var after thread.Cursor
	for {
		page, err := log.Read(t.Context(), id, after, 1000)
		if err != nil {
			t.Fatalf("Read after %s: %v", after, err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Cursor()
	}
}

func sameEntries(t *testing.T, got, want []thread.Entry) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if len(got) != len(want) {
		t.Fatalf("got %d entries, want %d; they end at %v and %v", len(got), len(want), lastOf(got), lastOf(want))
	}
	for i := range got {
		if !sameEntry(got[i], want[i]) {
			t.Fatalf("entry %d of %d differs (-want +got):\n%s", i, len(got), cmp.Diff(want[i], got[i]))
		}
	}
}

func sameEntry(a, b thread.Entry) bool {
	return a.Cursor() == b.Cursor() && a.RunID == b.RunID && a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
}

func lastOf(entries []thread.Entry) thread.Cursor {
	if len(entries) == 0 {
		return thread.Cursor{}
	}
	return entries[len(entries)-1].Cursor()
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
