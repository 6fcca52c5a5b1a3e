package historytest

import "github.com/threadcast/threadcast/persistence/thread"

// testPending holds AG-UI 1.0, section 9: an interrupt waits until the next RUN_FINISHED with another outcome;
// RUN_ERROR leaves it untouched.
func testPending(b *bench) {
	const first, second = `[{"id":"i1"}]`, `[{"id":"i2"}]`
	for _, c := range []struct {
		name    string
		end     thread.End
		pending string
		want    string
	}{
		{"finished clears", thread.End{Outcome: thread.OutcomeFinished}, "", ""},
		{"waiting replaces", thread.End{Outcome: thread.OutcomeWaiting}, second, second},
		{"stopped by RUN_FINISHED clears", thread.End{Outcome: thread.OutcomeStopped, By: "me"}, "", ""},
		{"stopped by RUN_ERROR leaves", thread.End{Outcome: thread.OutcomeStopped, Code: "stopped"}, "", first},
		{"failed leaves", thread.End{Outcome: thread.OutcomeFailed, Code: "x"}, "", first},
		{"timed out by RUN_FINISHED clears", thread.End{Outcome: thread.OutcomeTimedOut, Message: "too long"}, "", ""},
		{"timed out leaves", thread.End{Outcome: thread.OutcomeTimedOut, Code: "x"}, "", first},
		{"lost leaves", thread.End{Outcome: thread.OutcomeLost, Code: "x"}, "", first},
		{"shut down leaves", thread.End{Outcome: thread.OutcomeShutDown, Code: "x"}, "", first},
		{"failed with interrupts replaces", thread.End{Outcome: thread.OutcomeFailed, Code: "x"}, second, second},
	} {
		b.run(c.name, func(b *bench) {
			asks := finished(b.start(newRun("t", "r1")))
			asks.End.Outcome, asks.Pending = thread.OutcomeWaiting, []byte(first)
			b.save(asks)
			b.same("after the interrupt", first, string(b.thread("t").Pending))
			next := b.start(newRun("t", "r2"))
			b.same("during the next run", first, string(b.thread("t").Pending))
			next = finished(next)
			next.End, next.Pending = c.end, []byte(c.pending)
			b.save(next)
			b.same("after the next run", c.want, string(b.thread("t").Pending))
			b.save(asks)
			b.same("after a repeated save", c.want, string(b.thread("t").Pending))
			b.same("of the first run", first, string(b.find("t", "r1").Pending))
		})
	}
}
