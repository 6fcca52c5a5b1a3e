package logtest

import (
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

var dropChecks = []check{
	{"without keep the run is gone at once", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(5)
		a.leave()
		drop(t, log, 1, 0)
		holds(t, log, "t", nil)
	}},
	{"only that run goes", func(t *testing.T, log Log) {
		var kept []thread.Entry
		for run := uint64(1); run <= 3; run++ {
			a := begin(t, log, "t", run)
			a.add(4)
			a.leave()
			if run != 2 {
				kept = append(kept, a.wrote...)
			}
		}
		drop(t, log, 2, 0)
		holds(t, log, "t", kept)
		sameEntries(t, follow(t, log, "t", thread.Cursor{}).await(len(kept)), kept)
		sameEntries(t, follow(t, log, "t", thread.Cursor{Run: 2, Seq: 2}).await(5), kept[5:])
	}},
	{"a great run goes as well", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		for range 5 {
			a.add(3000)
		}
		a.leave()
		drop(t, log, 1, 0)
		holds(t, log, "t", nil)
		b := begin(t, log, "t", 2)
		b.add(3)
		holds(t, log, "t", b.wrote)
	}},
	{"with keep it stays that long", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.leave()
		dropped := time.Now()
		drop(t, log, 1, 60*time.Millisecond)
		eventually(t, "the run goes", func() bool {
			head, err := log.Head(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			return head == thread.Cursor{}
		})
		if kept := time.Since(dropped); kept < 55*time.Millisecond {
			t.Fatalf("the run was gone after %v, want 60 ms", kept)
		}
		holds(t, log, "t", nil)
	}},
	{"the later call decides", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.leave()
		drop(t, log, 1, time.Hour)
		drop(t, log, 1, 0)
		holds(t, log, "t", nil)
	}},
	{"a kept run is still read, and passes repeats over", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(3)
		a.end()
		drop(t, log, 1, time.Hour)
		a.repeat(events(1, 1, 3)...)
		holds(t, log, "t", a.wrote)
		sameEntries(t, follow(t, log, "t", thread.Cursor{Run: 1, Seq: 1}).await(3), a.wrote[1:])
	}},
	{"what is not there is dropped without error", func(t *testing.T, log Log) {
		drop(t, log, 1, 0)
		drop(t, log, 1, time.Hour)
		a := begin(t, log, "t", 2)
		a.add(1)
		drop(t, log, 1, 0)
		drop(t, log, 3, time.Hour)
		holds(t, log, "t", a.wrote)
	}},
	{"a run that was lost can be appended again", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(2000)
		drop(t, log, 1, 0)
		a.refused(thread.ErrGap, event(1, 2001))
		holds(t, log, "t", nil)
		a.repeat(events(1, 1, 700)...)
		holds(t, log, "t", events(1, 1, 700))
		a.repeat(events(1, 1, 2500)...)
		holds(t, log, "t", events(1, 1, 2500))
	}},
	{"a tail goes on with the next run", func(t *testing.T, log Log) {
		f := follow(t, log, "t", thread.Cursor{})
		a := begin(t, log, "t", 1)
		a.add(3)
		a.leave()
		f.reach(4)
		drop(t, log, 1, 0)
		b := begin(t, log, "t", 2)
		b.add(2)
		sameEntries(t, f.await(6), append(a.wrote, b.wrote...))
	}},
}

// drop drops a run of thread "t".
func drop(t *testing.T, log Log, run uint64, keep time.Duration) {
	t.Helper()
	if err := log.Drop(t.Context(), "t", run, keep); err != nil {
		t.Fatalf("Drop(run %d, keep %v): %v", run, keep, err)
	}
}
