package historytest

import "github.com/threadcast/threadcast/persistence/thread"

func testFencing(b *bench) {
	b.run("the former owner is refused after a takeover", func(b *bench) {
		former := newRun("t", "r1")
		former.Token = 3
		former = b.start(former)
		taken := former
		taken.Owner, taken.Token = "node-b", 5
		b.want(nil, b.TakeRun(b.Context(), taken))
		found := b.find("t", "r1")
		b.same("owner", "node-b", found.Owner)
		b.same("token", uint64(5), found.Token)

		b.want(thread.ErrLeaseLost, b.SaveRun(b.Context(), finished(former, `{"by":"former"}`)))
		b.same("ended", true, b.find("t", "r1").Ended.IsZero())
		b.save(finished(taken, `{"by":"new"}`))
		b.want(thread.ErrLeaseLost, b.SaveRun(b.Context(), finished(former, `{"by":"former"}`)))
		b.same("events", []string{`{"by":"new"}`}, texts(b.replay("t")[0]))
	})
	b.run("an older token cannot take a run", func(b *bench) {
		run := newRun("t", "r1")
		run.Token = 5
		run = b.start(run)
		run.Owner, run.Token = "node-b", 4
		b.want(thread.ErrLeaseLost, b.TakeRun(b.Context(), run))
		b.same("owner", "node-a", b.find("t", "r1").Owner)
	})
	b.run("taking twice is taking once", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		run.Owner, run.Token = "node-b", 2
		b.want(nil, b.TakeRun(b.Context(), run))
		b.want(nil, b.TakeRun(b.Context(), run))
		b.save(finished(run))
	})
	b.run("a greater token saves without taking", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		former := run
		run.Token = 2
		b.save(finished(run))
		b.same("token", uint64(2), b.find("t", "r1").Token)
		b.want(thread.ErrLeaseLost, b.SaveRun(b.Context(), finished(former)))
	})
	b.run("who held the thread before its latest run does not delete it", func(b *bench) {
		first := b.complete(newRun("t", "r1"))
		second := newRun("t", "r2")
		second.Token = first.Token + 7
		b.start(second)
		former := Holding("t")
		former.Token = second.Token - 1
		b.want(thread.ErrLeaseLost, b.DeleteThread(b.Context(), former))
		b.same("runs", 2, int(b.find("t", "r2").Number))
		former.Token = second.Token
		b.want(nil, b.DeleteThread(b.Context(), former))
	})
	b.run("an ended run is not taken", func(b *bench) {
		run := b.complete(newRun("t", "r1"))
		taken := run
		taken.Owner, taken.Token = "node-b", 9
		b.want(nil, b.TakeRun(b.Context(), taken))
		b.same("owner", "node-a", b.find("t", "r1").Owner)
		b.save(run)
	})
	b.run("a run that is not there cannot be taken", func(b *bench) {
		b.want(thread.ErrNotFound, b.TakeRun(b.Context(), newRun("t", "r1")))
		b.complete(newRun("t", "r1"))
		b.want(thread.ErrNotFound, b.TakeRun(b.Context(), newRun("t", "r2")))
	})
}
