package historytest

import "github.com/threadcast/threadcast/persistence/thread"

func queued(run thread.RunID) thread.Queued {
	return thread.Queued{
		Thread: "t", RunID: run, Agent: "demo", By: "me", Title: `"a" title`,
		Input: []byte(`{"messages":[],"n":1e400,"s":"\ud800\u0000"}`),
	}
}

func (b *bench) enqueue(run thread.RunID) thread.Queued {
	b.Helper()
	q, err := b.Enqueue(b.Context(), queued(run), 3)
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// waits wants these runs to wait on thread t, in this order.
func (b *bench) waits(want ...thread.RunID) {
	b.Helper()
	list, err := b.Queue(b.Context(), "t")
	b.want(nil, err)
	got := []thread.RunID{}
	for i, q := range list {
		b.same("place", i+1, q.Place)
		got = append(got, q.RunID)
	}
	if want == nil {
		want = []thread.RunID{}
	}
	b.same("queue", want, got)
	b.same("number", len(want), b.thread("t").Queued)
}

func testQueue(b *bench) {
	b.run("runs wait in the order of asking", func(b *bench) {
		b.complete(newRun("t", "r1"))
		active := b.start(newRun("t", "r2"))
		for i, run := range []thread.RunID{"q1", "q2", "q1", "q3"} {
			q := b.enqueue(run)
			b.same("place", []int{1, 2, 1, 3}[i], q.Place)
			b.same("after", active.Number, q.After)
		}
		b.waits("q1", "q2", "q3")
		_, err := b.Enqueue(b.Context(), queued("q4"), 3)
		b.want(thread.ErrQueueFull, err)
		_, err = b.Enqueue(b.Context(), queued("r2"), 10)
		b.want(thread.ErrRunIDUsed, err)
		b.want(nil, b.Dequeue(b.Context(), "t", "q2"))
		b.want(thread.ErrNotFound, b.Dequeue(b.Context(), "t", "q2"))
		b.waits("q1", "q3")
		next, err := b.NextQueued(b.Context(), "t")
		b.want(nil, err)
		want := queued("q1")
		want.After, want.Place, want.Since = active.Number, 1, next.Since
		b.same("next", want, next)
		b.save(finished(active))
		b.save(finished(b.start(newRun("t", "q1"))))
		b.waits("q3")
	})
	b.run("a thread that is idle is found", func(b *bench) {
		idle := func(want ...thread.ID) {
			b.Helper()
			got, err := b.IdleQueues(b.Context(), 10)
			b.want(nil, err)
			b.same("idle", append([]thread.ID{}, want...), got)
		}
		active := b.start(newRun("t", "r1"))
		idle()
		b.enqueue("q1")
		idle()
		b.save(finished(active))
		idle("t")
		b.save(finished(b.start(newRun("t", "q1"))))
		idle()
	})
	b.run("deletion empties it", func(b *bench) {
		_, err := b.Enqueue(b.Context(), queued("q1"), 3)
		b.want(thread.ErrNotFound, err)
		b.complete(newRun("t", "r1"))
		b.enqueue("q1")
		b.delete("t")
		_, err = b.NextQueued(b.Context(), "t")
		b.want(thread.ErrNotFound, err)
		_, err = b.Enqueue(b.Context(), queued("q1"), 3)
		b.want(thread.ErrNotFound, err)
	})
	b.run("bad input is refused", func(b *bench) {
		b.complete(newRun("t", "r1"))
		for _, bad := range []thread.Queued{
			{Thread: "t", RunID: "", Input: []byte("{}")},
			{Thread: "t", RunID: "q", Input: []byte("{")},
			{Thread: "t", RunID: "q", Input: []byte("\"\xff\"")},
		} {
			_, err := b.Enqueue(b.Context(), bad, 3)
			b.want(thread.ErrBadInput, err)
		}
	})
}

func testDiscard(b *bench) {
	b.run("a discarded run is marked, and its messages are forgotten", func(b *bench) {
		first := newRun("t", "r1")
		first.Messages = []string{"m1"}
		b.complete(first, `{}`)
		run := newRun("t", "r2")
		run.Messages = []string{"m2"}
		run = b.start(run)
		b.want(thread.ErrUnfinished, b.Discard(b.Context(), "t", "r2", nil))
		run = finished(run, `{"n":1}`)
		run.End.Outcome, run.Pending = thread.OutcomeWaiting, []byte(`[{"id":"i1"}]`)
		run.Messages = []string{"m3"}
		b.save(run)
		for range 2 {
			b.want(nil, b.Discard(b.Context(), "t", "r2", []string{"m2", "m3"}))
		}
		known, err := b.Known(b.Context(), "t", []string{"m1", "m2", "m3"})
		b.want(nil, err)
		b.same("known", map[string]bool{"m1": true}, known)
		b.same("pending", "", string(b.thread("t").Pending))
		for _, r := range b.replay("t") {
			b.same("discarded "+string(r.ID), r.ID == "r2", r.Discarded)
		}
		b.same("found", true, b.find("t", "r2").Discarded)
	})
	b.run("what a later run asked stays", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.asks("r2", `[{"id":"i1"}]`, "")
		b.want(nil, b.Discard(b.Context(), "t", "r1", nil))
		b.same("pending", `[{"id":"i1"}]`, string(b.thread("t").Pending))
	})
	b.run("what is not there cannot be discarded", func(b *bench) {
		b.want(thread.ErrNotFound, b.Discard(b.Context(), "t", "r1", nil))
		b.complete(newRun("t", "r1"))
		b.want(thread.ErrNotFound, b.Discard(b.Context(), "t", "r2", nil))
	})
}
