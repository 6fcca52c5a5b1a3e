package historytest

import (
	"errors"

	"github.com/threadcast/threadcast/persistence/thread"
)

func interrupt(id string) thread.Answer { return thread.Answer{Kind: thread.AnswerInterrupt, ID: id} }

func call(id, digest string) thread.Answer {
	return thread.Answer{Kind: thread.AnswerCall, ID: id, Digest: digest, New: true, Last: true}
}

// asks is a finished run on thread t after which something waits.
func (b *bench) asks(run thread.RunID, interrupts, calls string) {
	b.Helper()
	asking := finished(b.start(newRun("t", run)))
	asking.Pending, asking.Calls = []byte(interrupts), []byte(calls)
	if interrupts != "" {
		asking.End.Outcome = thread.OutcomeWaiting
	}
	b.save(asking)
}

// answers starts a run that answers.
func (b *bench) answers(run thread.RunID, answers ...thread.Answer) (thread.Run, error) {
	answering := newRun("t", run)
	answering.Answers = answers
	return b.StartRun(b.Context(), answering)
}

// late wants err to say that a run has answered.
func (b *bench) late(err error, run thread.RunID) {
	b.Helper()
	var answered *thread.AnsweredError
	if !errors.As(err, &answered) || answered.RunID != run {
		b.Errorf("error is %v, want that run %s has answered", err, run)
	}
}

// testAnswers holds that what waits is answered once (AG-UI 1.0, section 9).
func testAnswers(b *bench) {
	const both = `[{"id":"i1"},{"id":"i2","x":1e400}]`
	b.run("an interrupt that is being answered does not wait", func(b *bench) {
		b.asks("r1", both, "")
		run, err := b.answers("r2", interrupt("i1"))
		b.want(nil, err)
		b.same("pending", `[{"id":"i2","x":1e400}]`, string(b.thread("t").Pending))
		b.late(b.Answered(b.Context(), "t", []thread.Answer{interrupt("i2"), interrupt("i1")}), "r2")
		b.want(nil, b.Answered(b.Context(), "t", []thread.Answer{interrupt("i2")}))
		b.save(finished(run))
		b.same("pending in the end", "", string(b.thread("t").Pending))
		_, err = b.answers("r3", interrupt("i1"))
		b.late(err, "r2")
		_, err = b.FindRun(b.Context(), "t", "r3")
		b.want(thread.ErrNotFound, err)
	})
	b.run("an answer that came to nothing is withdrawn", func(b *bench) {
		b.asks("r1", both, "")
		run, err := b.answers("r2", interrupt("i1"), interrupt("i2"))
		b.want(nil, err)
		b.same("pending", "", string(b.thread("t").Pending))
		run = finished(run)
		run.End = thread.End{Outcome: thread.OutcomeLost, Code: "lost"}
		b.save(run)
		b.same("pending", both, string(b.thread("t").Pending))
		_, err = b.answers("r3", interrupt("i1"))
		b.want(nil, err)
	})
	b.run("an id may be asked again", func(b *bench) {
		for round := range 3 {
			b.asks(thread.RunID(name("ask", round)), both, "")
			run, err := b.answers(thread.RunID(name("answer", round)), interrupt("i1"), interrupt("i2"))
			b.want(nil, err)
			b.save(finished(run))
		}
	})
	b.run("what never waited is nobody's loss", func(b *bench) {
		_, err := b.answers("r1", interrupt("i9"), call("k9", "d"))
		b.want(nil, err)
	})
	b.run("a tool call is answered once, and stays so", func(b *bench) {
		const calls = `[{"toolCallId":"k1","toolCallName":"f"},{"toolCallId":"k2","toolCallName":"f"}]`
		b.asks("r1", "", calls)
		b.same("waits", calls, string(b.thread("t").Calls))
		run, err := b.answers("r2", call("k1", "d1"))
		b.want(nil, err)
		b.same("waits", `[{"toolCallId":"k2","toolCallName":"f"}]`, string(b.thread("t").Calls))
		b.late(b.Answered(b.Context(), "t", []thread.Answer{call("k1", "d1")}), "r2")
		run = finished(run)
		run.End = thread.End{Outcome: thread.OutcomeFailed, Code: "x"}
		b.save(run)
		b.same("after the failure", `[{"toolCallId":"k2","toolCallName":"f"}]`, string(b.thread("t").Calls))
		_, err = b.answers("r3", call("k1", "d1"))
		b.late(err, "r2")
		_, err = b.answers("r4", thread.Answer{Kind: thread.AnswerCall, ID: "k1", Digest: "other", Last: true})
		b.late(err, "r2")
		again, err := b.answers("r5", thread.Answer{Kind: thread.AnswerCall, ID: "k1", Digest: "d1", Last: true})
		b.want(nil, err)
		b.save(finished(again))
		b.same("after the next", "", string(b.thread("t").Calls))
	})
	b.run("odd ids and kinds stay apart", func(b *bench) {
		const odd = "\"quoted\" \u2028 \U0001F600"
		b.asks("r1", `[{"id":"same"},{"id":"\"quoted\" \u2028 \ud83d\ude00"}]`, "")
		run, err := b.answers("r2", call("same", "d"), interrupt(odd))
		b.want(nil, err)
		b.same("pending", `[{"id":"same"}]`, string(b.thread("t").Pending))
		b.save(finished(run))
		_, err = b.answers("r3", interrupt(odd))
		b.late(err, "r2")
	})
	b.run("deletion forgets them", func(b *bench) {
		b.asks("r1", both, "")
		run, err := b.answers("r2", interrupt("i1"))
		b.want(nil, err)
		b.save(finished(run))
		b.delete("t")
		_, err = b.answers("r3", interrupt("i1"))
		b.want(nil, err)
	})
}
