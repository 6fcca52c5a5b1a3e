package historytest

import (
	"strings"

	"github.com/threadcast/threadcast/persistence/losslesstest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// nasty are JSON texts that a store may be tempted to change, or a database to refuse (F116, F118).
func nasty() []string {
	var all []string
	for _, text := range losslesstest.Texts() {
		all = append(all, text.JSON)
	}
	return all
}

func testLossless(b *bench) {
	b.run("events come out byte for byte", func(b *bench) {
		want := nasty()
		run := finished(b.start(newRun("t", "r1")), want...)
		run.Events[0].First, run.Events[0].Last = 1, 1<<63-1
		b.save(run)
		got := b.replay("t")[0]
		b.same("events", want, texts(got))
		b.same("ranges", run.Events[0].Last, got.Events[0].Last)
	})
	b.run("everything comes out byte for byte, also after reopening", func(b *bench) {
		for _, text := range losslesstest.Texts() {
			b.saveNasty(text)
			b.hasNasty(text)
		}
		again, err := b.Reopen(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.History = again
		for _, text := range losslesstest.Texts() {
			b.hasNasty(text)
		}
	})
	b.run("what is not UTF-8 is refused by its type, and nothing of it stays", func(b *bench) {
		for _, text := range losslesstest.NotUTF8() {
			id := thread.ID(text.Name)
			run := newRun(id, "r1")
			run.Input = []byte(text.JSON)
			_, err := b.StartRun(b.Context(), run)
			b.want(thread.ErrBadInput, err)
			run.Input = nil
			run = b.start(run)
			_, err = b.Enqueue(b.Context(), thread.Queued{Thread: id, RunID: "r2", Input: []byte(text.JSON)}, 1)
			b.want(thread.ErrBadInput, err)
			b.want(thread.ErrBadInput, b.SaveResult(b.Context(), thread.Result{
				Thread: id, RunID: "r1", Run: run.Number, Place: 1, Content: []byte(text.JSON),
			}))
			b.want(thread.ErrBadInput, b.SaveRun(b.Context(), finished(run, `{}`, text.JSON)))
			asks := finished(run)
			asks.End.Outcome, asks.Pending = thread.OutcomeWaiting, []byte(text.JSON)
			b.want(thread.ErrBadInput, b.SaveRun(b.Context(), asks))
			asks.Pending, asks.Usage = nil, []byte(text.JSON)
			b.want(thread.ErrBadInput, b.SaveRun(b.Context(), asks))
			b.same("ended", true, b.find(id, "r1").Ended.IsZero())
			b.save(finished(run, `{}`))
			b.same("runs", 1, len(b.replay(id)))
		}
	})
	b.run("other texts come out as they went in", func(b *bench) {
		long := strings.Repeat("long ", 2000)
		for i, text := range []string{"a\x00b", "\x00", "\xff\xfe", `"quoted"`, `"`, `\x00`, "e\u0301", "\u2028", "'; --", long, " "} {
			run := newRun(thread.ID(name("t", i)), "r1")
			run.Agent, run.Parent, run.Owner, run.Title = text, text, text, text
			run = finished(b.start(run))
			run.End = thread.End{Outcome: thread.OutcomeFailed, Code: text, Message: text, By: text}
			b.save(run)
			run.Events, run.Title = nil, ""
			b.same("run", run, b.find(run.Thread, "r1"))
			b.same("title", text, b.thread(run.Thread).Title)
			b.same("run of the thread", &run, b.thread(run.Thread).Latest)
		}
	})
	b.run("20,000 events are one run", func(b *bench) {
		events := make([]string, 20_000)
		for i := range events {
			events[i] = `{"type":"CUSTOM","name":"` + name("n", i) + `","value":{"text":"some text \u0000 \"quoted\""}}`
		}
		b.complete(newRun("t", "r1"), events...)
		b.same("events", events, texts(b.replay("t")[0]))
	})
}

// saveNasty saves a text wherever one can be: as an event among others, as input, usage, and what waits, as the input of
// a queued request, and as a result that is kept apart.
func (b *bench) saveNasty(text losslesstest.Text) {
	b.Helper()
	id, data := thread.ID(text.Name), []byte(text.JSON)
	run := newRun(id, "r1")
	run.Input = data
	run = b.start(run)
	_, err := b.Enqueue(b.Context(), thread.Queued{Thread: id, RunID: "r2", Agent: "demo", Input: data}, 1)
	b.want(nil, err)
	b.want(nil, b.SaveResult(b.Context(), thread.Result{Thread: id, RunID: "r1", Run: run.Number, Token: run.Token, Place: 1, Content: data}))
	run = finished(run, `{"before":1}`, text.JSON, `{"after":1}`)
	run.End.Outcome, run.Pending, run.Calls, run.Usage = thread.OutcomeWaiting, data, data, data
	b.save(run)
}

// hasNasty checks that the text of saveNasty comes out as it went in.
func (b *bench) hasNasty(text losslesstest.Text) {
	b.Helper()
	id := thread.ID(text.Name)
	b.same("events", []string{`{"before":1}`, text.JSON, `{"after":1}`}, texts(b.replay(id)[0]))
	run, th := b.find(id, "r1"), b.thread(id)
	next, err := b.NextQueued(b.Context(), id)
	b.want(nil, err)
	result, err := b.Result(b.Context(), id, "r1", 1)
	b.want(nil, err)
	for what, got := range map[string][]byte{
		"input": run.Input, "usage": run.Usage, "interrupts of the run": run.Pending,
		"interrupts of the thread": th.Pending, "calls of the thread": th.Calls, "queued input": next.Input, "result": result.Content,
	} {
		b.same(what, text.JSON, string(got))
	}
}
