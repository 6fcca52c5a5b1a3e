package historytest

import (
	"strings"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

func testStart(b *bench) {
	b.run("a run is numbered, chained and found", func(b *bench) {
		first := b.complete(newRun("t", "r1"))
		run := thread.Run{
			Thread: "t", ID: "r2", Agent: "demo", Parent: "a run of the client's", Owner: "node-b", Token: 7,
			Input: []byte(`{"messages":[]}`), Accepted: at(5).Add(123 * time.Millisecond),
		}
		got := b.start(run)
		want := run
		want.Number, want.Previous = 2, "r1"
		b.same("started run", want, got)
		b.same("found run", want, b.find("t", "r2"))
		b.same("first number", uint64(1), first.Number)
		b.same("first previous", thread.RunID(""), first.Previous)
	})
	b.run("the thread is there from its first run on", func(b *bench) {
		_, err := b.Thread(b.Context(), "t")
		b.want(thread.ErrNotFound, err)
		run := newRun("t", "r1")
		run.Title = "Hello"
		run = b.start(run)
		latest := b.find("t", "r1")
		b.same("thread", thread.Thread{
			ID: "t", LastRun: 1, Created: epoch, Activity: epoch, Title: "Hello", Latest: &latest,
			Agent: "demo", Revision: 1,
		}, b.thread("t"))
		b.same("latest", run.ID, latest.ID)
	})
	b.run("the first title stays", func(b *bench) {
		for i, title := range []string{"", "first", "second"} {
			run := newRun("t", thread.RunID(name("r", i)))
			run.Title = title
			b.complete(run)
		}
		b.same("title", "first", b.thread("t").Title)
	})
	b.run("times are kept to the millisecond and a missing one is now", func(b *bench) {
		run := newRun("t", "r1")
		run.Accepted = epoch.Add(1234567 * time.Nanosecond)
		b.same("accepted", epoch.Add(time.Millisecond), b.start(run).Accepted)
		run = newRun("t2", "r1")
		run.Accepted = time.Time{}
		before := time.Now()
		started := b.start(run)
		if d := started.Accepted.Sub(before); d < -time.Second || d > time.Minute {
			b.Errorf("accepted at %v, want about %v", started.Accepted, before)
		}
		b.same("found", started.Accepted, b.find("t2", "r1").Accepted)
	})
	b.run("what cannot be kept is refused", func(b *bench) {
		for what, run := range map[string]thread.Run{
			"no thread id":       {ID: "r"},
			"no run id":          {Thread: "t"},
			"long thread id":     {Thread: thread.ID(strings.Repeat("t", thread.MaxID+1)), ID: "r"},
			"control character":  {Thread: "t", ID: "r\x00"},
			"input is not JSON":  {Thread: "t", ID: "r", Input: []byte(`{`)},
			"input is not UTF-8": {Thread: "t", ID: "r", Input: []byte("\"\xff\"")},
		} {
			_, err := b.StartRun(b.Context(), run)
			b.Log(what)
			b.want(thread.ErrBadInput, err)
		}
		_, err := b.Thread(b.Context(), "t")
		b.want(thread.ErrNotFound, err)
	})
}
