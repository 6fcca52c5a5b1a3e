package historytest

import (
	"fmt"

	"github.com/threadcast/threadcast/persistence/thread"
)

// testOrder holds F124: neither clocks nor a chain of parents decide what a thread's history is.
func testOrder(b *bench) {
	const n = 100
	fill := func(b *bench) {
		for i := 1; i <= n; i++ {
			b.complete(newRun("t", thread.RunID(name("r", n-i))), fmt.Sprintf(`{"n":%d}`, i))
		}
	}
	b.run("100 runs of one millisecond keep their order", func(b *bench) {
		fill(b)
		runs := b.replay("t")
		b.same("runs", n, len(runs))
		for i, run := range runs {
			b.same("number", uint64(i+1), run.Number)
			b.same("id", thread.RunID(name("r", n-i-1)), run.ID)
			b.same("events", []string{fmt.Sprintf(`{"n":%d}`, i+1)}, texts(run))
		}
	})
	b.run("a run that is missing hides no other", func(b *bench) {
		fill(b)
		b.want(nil, b.Remove(b.Context(), "t", 50))
		runs := b.replay("t")
		b.same("runs", n-1, len(runs))
		b.same("run before it", uint64(49), runs[48].Number)
		b.same("run after it", uint64(51), runs[49].Number)
		b.same("next number", uint64(n+1), b.start(newRun("t", "more")).Number)
	})
	b.run("a missing latest run does not break the thread", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.complete(newRun("t", "r2"))
		b.want(nil, b.Remove(b.Context(), "t", 2))
		t := b.thread("t")
		b.same("last run", uint64(2), t.LastRun)
		b.same("latest", (*thread.Run)(nil), t.Latest)
		started := b.start(newRun("t", "r3"))
		b.same("number", uint64(3), started.Number)
		b.same("previous", thread.RunID("r1"), started.Previous)
	})
	b.run("a damaged run hides no other", func(b *bench) {
		for i := 1; i <= 3; i++ {
			b.complete(newRun("t", thread.RunID(name("r", i))), `{"type":"A"}`, `{"type":"B"}`)
		}
		b.want(nil, b.Damage(b.Context(), "t", 2))
		run, err := b.NextRun(b.Context(), "t", 1)
		b.want(thread.ErrCorrupt, err)
		b.same("damaged run", uint64(2), run.Number)
		b.same("its end", thread.OutcomeFinished, run.End.Outcome)
		b.same("its last seq", uint64(3), run.LastSeq)
		b.same("its events", []thread.Event(nil), run.Events)
		run, err = b.NextRun(b.Context(), "t", run.Number)
		b.want(nil, err)
		b.same("run after it", []string{`{"type":"A"}`, `{"type":"B"}`}, texts(run))
		b.same("found", thread.RunID(name("r", 2)), b.find("t", thread.RunID(name("r", 2))).ID)
	})
	b.run("threads do not mix", func(b *bench) {
		for i := range 10 {
			b.complete(newRun(thread.ID(name("t", i%2)), thread.RunID(name("r", i))))
		}
		b.same("runs", []thread.RunID{"r-0001", "r-0003", "r-0005", "r-0007", "r-0009"}, ids(b.replay("t-0001")))
	})
}
