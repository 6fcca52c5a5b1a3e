package historytest

import (
	"errors"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testRunIDs(b *bench) {
	b.run("an id is used once in a thread", func(b *bench) {
		b.complete(newRun("t", "r1"), `{"n":1}`)
		_, err := b.StartRun(b.Context(), newRun("t", "r1"))
		b.want(thread.ErrRunIDUsed, err)
		b.same("last run", uint64(1), b.thread("t").LastRun)
		b.same("events", []string{`{"n":1}`}, texts(b.replay("t")[0]))
	})
	b.run("the id of the run under way is used as well", func(b *bench) {
		b.start(newRun("t", "r1"))
		_, err := b.StartRun(b.Context(), newRun("t", "r1"))
		b.want(thread.ErrRunIDUsed, err)
		b.same("unfinished", false, errors.Is(err, thread.ErrUnfinished))
	})
	b.run("another thread may use the id", func(b *bench) {
		b.complete(newRun("t", "r1"), `{"n":1}`)
		b.complete(newRun("u", "r1"), `{"n":2}`)
		b.same("events of t", []string{`{"n":1}`}, texts(b.replay("t")[0]))
		b.same("events of u", []string{`{"n":2}`}, texts(b.replay("u")[0]))
	})
	b.run("ids are compared by bytes", func(b *bench) {
		run := []thread.RunID{"r", "R", "r ", " r", "é", "e\u0301", "r%", "r_", "'", "\\", "😀", `"r"`}
		for _, id := range run {
			b.complete(newRun("t", id))
		}
		for i, id := range run {
			b.same("number", uint64(i+1), b.find("t", id).Number)
		}
		b.same("replayed", run, ids(b.replay("t")))
	})
	b.run("an id that is none is not found", func(b *bench) {
		for _, id := range []string{"", "a\x00b", "\xff", "no such"} {
			_, err := b.FindRun(b.Context(), thread.ID(id), thread.RunID(id))
			b.want(thread.ErrNotFound, err)
			_, err = b.Thread(b.Context(), thread.ID(id))
			b.want(thread.ErrNotFound, err)
			_, err = b.NextRun(b.Context(), thread.ID(id), 0)
			b.want(thread.ErrNotFound, err)
			b.want(thread.ErrNotFound, b.DeleteThread(b.Context(), Holding(thread.ID(id))))
		}
	})
}

func testUnfinished(b *bench) {
	b.run("a thread with an open run takes no other", func(b *bench) {
		run := newRun("t", "r1")
		run.Input = []byte(`{"state":1}`)
		open := b.start(run)
		_, err := b.StartRun(b.Context(), newRun("t", "r2"))
		b.want(thread.ErrUnfinished, err)
		unfinished, ok := errors.AsType[*thread.UnfinishedError](err)
		if !ok {
			b.Fatalf("error is %v, want an UnfinishedError", err)
		}
		b.same("the open run", open, unfinished.Run)
		_, err = b.FindRun(b.Context(), "t", "r2")
		b.want(thread.ErrNotFound, err)
		b.same("last run", uint64(1), b.thread("t").LastRun)
		b.save(finished(open))
		b.same("next", uint64(2), b.start(newRun("t", "r2")).Number)
	})
	b.run("open runs are listed in the order of acceptance", func(b *bench) {
		for i := range 20 {
			run := newRun(thread.ID(name("t", 19-i)), thread.RunID(name("r", i)))
			run.Accepted = at(-i)
			run = b.start(run)
			if i%3 == 0 {
				b.save(finished(run))
			}
		}
		want := []thread.RunID{"r-0001", "r-0002", "r-0004", "r-0005"}
		open, err := b.Unfinished(b.Context(), "", 0, 4)
		b.want(nil, err)
		b.same("first four", want, ids(open))
		open, err = b.Unfinished(b.Context(), "", 0, 100)
		b.want(nil, err)
		b.same("all", 13, len(open))
		open, err = b.Unfinished(b.Context(), "", 3, 2)
		b.want(nil, err)
		b.same("a page further on", []thread.RunID{"r-0005", "r-0007"}, ids(open))
		open, err = b.Unfinished(b.Context(), "", 0, 0)
		b.want(nil, err)
		b.same("none asked for", 0, len(open))
		open, err = b.Unfinished(b.Context(), "t-0018", 0, 100)
		b.want(nil, err)
		b.same("of one thread", []thread.RunID{"r-0001"}, ids(open))
	})
	b.run("an open run is listed whole", func(b *bench) {
		run := newRun("t", "r1")
		run.Input, run.Parent = []byte(`{"messages":[]}`), "p"
		run = b.start(run)
		open, err := b.Unfinished(b.Context(), "", 0, 1)
		b.want(nil, err)
		b.same("open runs", []thread.Run{run}, open)
	})
}
