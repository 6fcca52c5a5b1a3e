package historytest

import (
	"math"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testDeletion(b *bench) {
	b.run("nothing is left but the last run number and the revision", func(b *bench) {
		run := newRun("t", "r1")
		run.Title, run.Messages = "secret", []string{"m1"}
		b.complete(run, `{"n":1}`)
		b.complete(newRun("t", "r2"))
		b.complete(newRun("u", "r1"), `{"n":2}`)
		b.delete("t")
		b.same("tombstone", thread.Thread{ID: "t", LastRun: 2, Deleted: true, Revision: 5}, b.thread("t"))
		_, err := b.NextRun(b.Context(), "t", 0)
		b.want(thread.ErrNotFound, err)
		_, err = b.FindRun(b.Context(), "t", "r1")
		b.want(thread.ErrNotFound, err)
		runs, err := b.Runs(b.Context(), "t", 0, 10)
		b.want(nil, err)
		b.same("runs", 0, len(runs))
		known, err := b.Known(b.Context(), "t", []string{"m1"})
		b.want(nil, err)
		b.same("known messages", map[string]bool{}, known)
		b.same("other thread", []string{`{"n":2}`}, texts(b.replay("u")[0]))
	})
	b.run("a thread is deleted once", func(b *bench) {
		b.want(thread.ErrNotFound, b.DeleteThread(b.Context(), Holding("t")))
		b.complete(newRun("t", "r1"))
		b.delete("t")
		b.want(thread.ErrNotFound, b.DeleteThread(b.Context(), Holding("t")))
	})
	b.run("run numbers never restart", func(b *bench) {
		for round := range 3 {
			for i := range 4 {
				run := newRun("t", thread.RunID(name("r", i)))
				run.Accepted = at(100 * round)
				run.Title = name("round", round)
				started := b.start(run)
				b.same("number", uint64(round*4+i+1), started.Number)
				b.save(finished(started))
			}
			t := b.thread("t")
			b.same("created", at(100*round), t.Created)
			b.same("title", name("round", round), t.Title)
			b.same("deleted", false, t.Deleted)
			b.delete("t")
		}
	})
	b.run("a thread created anew has no past", func(b *bench) {
		run := newRun("t", "r1")
		run.Messages = []string{"m1"}
		run = finished(b.start(run))
		run.End.Outcome, run.Pending = thread.OutcomeWaiting, []byte(`[{"id":"i1"}]`)
		b.save(run)
		b.delete("t")
		again := b.start(newRun("t", "r1"))
		b.same("previous", thread.RunID(""), again.Previous)
		t := b.thread("t")
		b.same("title", "", t.Title)
		b.same("pending", []byte(nil), t.Pending)
		b.same("latest", uint64(2), t.Latest.Number)
	})
	b.run("a run whose thread was deleted cannot be saved", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		b.delete("t")
		b.want(thread.ErrNotFound, b.SaveRun(b.Context(), finished(run)))
		b.want(thread.ErrNotFound, b.TakeRun(b.Context(), run))
		b.same("deleted", true, b.thread("t").Deleted)
	})
	b.run("nor in the place of a later run of the same id", func(b *bench) {
		former := b.start(newRun("t", "r1"))
		b.delete("t")
		later := b.start(newRun("t", "r1"))
		b.want(thread.ErrNotFound, b.SaveRun(b.Context(), finished(former, `{"by":"former"}`)))
		b.want(thread.ErrNotFound, b.TakeRun(b.Context(), former))
		b.save(finished(later, `{"by":"later"}`))
		b.same("events", []string{`{"by":"later"}`}, texts(b.replay("t")[0]))
	})
	b.run("a deleted thread is not listed", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.complete(newRun("u", "r1"))
		b.delete("t")
		threads, next, err := b.Threads(b.Context(), thread.Page{})
		b.want(nil, err)
		b.same("next", "", next)
		b.same("threads", []thread.ID{"u"}, threadIDs(threads))
		open, err := b.Unfinished(b.Context(), "t", 0, 10)
		b.want(nil, err)
		b.same("unfinished", 0, len(open))
	})
}

// Holding is a lease that was given after all others.
func Holding(id thread.ID) thread.Lease {
	return thread.Lease{Claim: thread.Claim{Thread: id}, Token: math.MaxInt64}
}
