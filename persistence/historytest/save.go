package historytest

import (
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testSave(b *bench) {
	b.run("a finished run is read as it was saved", func(b *bench) {
		run := newRun("t", "r1")
		run.Input = []byte(`{"messages":[{"id":"m1"}]}`)
		run = finished(b.start(run))
		run.Ended = at(9).Add(7 * time.Millisecond)
		run.End = thread.End{Outcome: thread.OutcomeFailed, Code: "upstream", Message: "the model is away", By: "operator"}
		run.Events = []thread.Event{
			{First: 1, Last: 1, Data: []byte(`{"type":"RUN_STARTED"}`)},
			{First: 2, Last: 9, Data: []byte(`{"type":"TEXT_MESSAGE_CONTENT","delta":"abc"}`)},
			{First: 4, Last: 4, Data: []byte(`{"type":"CUSTOM"}`)},
		}
		run.LastSeq, run.Pending = 11, []byte(`[{"id":"i1"}]`)
		run.Usage = []byte(`[ {"provider":"p","inputTokens":12,"x":1.0} ]`)
		run = counted(run)
		b.save(run)
		next, err := b.NextRun(b.Context(), "t", 0)
		b.want(nil, err)
		b.same("next run", run, next)
		run.Events = nil
		b.same("found run", run, b.find("t", "r1"))
		run.Input = nil
		b.same("latest run", &run, b.thread("t").Latest)
		b.same("activity", run.Ended, b.thread("t").Activity)
	})
	b.run("after reopening everything is as it was saved", func(b *bench) {
		run := newRun("t", "r1")
		run.Input = []byte(`{"messages":[]}`)
		run = finished(b.start(run), `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`)
		run.End.Outcome, run.Pending = thread.OutcomeWaiting, []byte(`[{"id":"i1"}]`)
		run.Usage = []byte(`[{"inputTokens":9007199254740993}, {"model":"\ud800"}]`)
		b.save(run)
		open := b.start(newRun("t", "r2"))
		again, err := b.Reopen(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.History = again
		b.same("the run", []thread.Run{run}, b.replay("t"))
		b.same("the open run", open, b.find("t", "r2"))
		b.same("pending", string(run.Pending), string(b.thread("t").Pending))
		runs, err := b.Runs(b.Context(), "t", 0, 1)
		b.want(nil, err)
		run.Input, run.Events = nil, nil
		b.same("its particulars", []thread.Run{run}, runs)
	})
	b.run("a run that has not ended is not replayed", func(b *bench) {
		b.start(newRun("t", "r1"))
		_, err := b.NextRun(b.Context(), "t", 0)
		b.want(thread.ErrNotFound, err)
		b.same("ended", true, b.find("t", "r1").Ended.IsZero())
	})
	b.run("a run without events is replayed as such", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.same("events", []thread.Event{}, b.replay("t")[0].Events)
	})
	b.run("every outcome is told apart", func(b *bench) {
		outcomes := []thread.Outcome{thread.OutcomeFinished, thread.OutcomeWaiting, thread.OutcomeStopped,
			thread.OutcomeFailed, thread.OutcomeTimedOut, thread.OutcomeLost, thread.OutcomeShutDown}
		for i, outcome := range outcomes {
			run := finished(b.start(newRun("t", thread.RunID(name("r", i)))))
			run.End.Outcome = outcome
			b.save(run)
			b.same("outcome", outcome, b.find("t", run.ID).End.Outcome)
		}
	})
	b.run("saving again changes nothing", func(b *bench) {
		run := b.complete(newRun("t", "r1"), `{"n":1}`)
		b.save(run)
		other := finished(run, `{"n":2}`)
		other.Ended, other.End.Outcome = at(60), thread.OutcomeLost
		b.save(other)
		b.same("events", []string{`{"n":1}`}, texts(b.replay("t")[0]))
		b.same("outcome", thread.OutcomeFinished, b.find("t", "r1").End.Outcome)
		b.same("activity", run.Ended, b.thread("t").Activity)
	})
	b.run("saving an old run again leaves the run under way alone", func(b *bench) {
		old := b.complete(newRun("t", "r1"))
		b.start(newRun("t", "r2"))
		b.save(old)
		open, err := b.Unfinished(b.Context(), "t", 0, 10)
		b.want(nil, err)
		b.same("unfinished", []thread.RunID{"r2"}, ids(open))
	})
	b.run("what cannot be kept is refused and the run stays open", func(b *bench) {
		run := b.start(newRun("t", "r1"))
		noOutcome := finished(run)
		noOutcome.End.Outcome = ""
		badPending := finished(run)
		badPending.Pending = []byte(`[`)
		badUsage := finished(run)
		badUsage.Usage = []byte("[\"\xff\"]")
		for what, bad := range map[string]thread.Run{
			"half an event": finished(run, `{"a":1}`, `{"a":`),
			"two values":    finished(run, `{"a":1}, {"b":2}`),
			"no event":      finished(run, ``),
			"not UTF-8":     finished(run, "{\"a\":\"\xed\xa0\x80\"}"),
			"no outcome":    noOutcome,
			"bad pending":   badPending,
			"bad usage":     badUsage,
		} {
			b.Log(what)
			b.want(thread.ErrBadInput, b.SaveRun(b.Context(), bad))
		}
		b.same("ended", true, b.find("t", "r1").Ended.IsZero())
	})
	b.run("a run that was never accepted is not found", func(b *bench) {
		b.want(thread.ErrNotFound, b.SaveRun(b.Context(), finished(newRun("t", "r1"))))
		b.complete(newRun("t", "r1"))
		b.want(thread.ErrNotFound, b.SaveRun(b.Context(), finished(newRun("t", "r2"))))
	})
}
