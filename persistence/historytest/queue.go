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
	b.run("nobody passes who waits, and nobody starts who was taken out", func(b *bench) {
		active := b.start(newRun("t", "r1"))
		b.enqueue("q1")
		b.enqueue("q2")
		b.save(finished(active))
		_, err := b.StartRun(b.Context(), newRun("t", "r2"))
		b.want(thread.ErrQueued, err)
		gone := newRun("t", "q1")
		gone.Queued = true
		b.want(nil, b.Dequeue(b.Context(), "t", "q1"))
		_, err = b.StartRun(b.Context(), gone)
		b.want(thread.ErrNotFound, err)
		next := newRun("t", "q2")
		next.Queued = true
		b.save(finished(b.start(next)))
		b.waits()
		stale := newRun("t", "r3")
		stale.Follows = 1
		_, err = b.StartRun(b.Context(), stale)
		b.want(thread.ErrGap, err)
		stale.Follows = 2
		b.start(stale)
	})
	b.run("a deleted thread does not come back by its queue", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.enqueue("q1")
		b.delete("t")
		late := newRun("t", "q1")
		late.Queued = true
		_, err := b.StartRun(b.Context(), late)
		b.want(thread.ErrNotFound, err)
		b.same("deleted", true, b.thread("t").Deleted)
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

func testReserve(b *bench) {
	front := func(run, replaces thread.RunID) thread.Queued {
		q := queued(run)
		q.Front, q.Replaces = true, replaces
		return q
	}
	b.run("who goes before the others does so in the order of asking, whatever the bound", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.start(newRun("t", "r2"))
		for _, run := range []thread.RunID{"q1", "q2", "q3"} {
			b.enqueue(run)
		}
		for i, run := range []thread.RunID{"f1", "f2"} {
			q, err := b.Enqueue(b.Context(), front(run, ""), 3)
			b.want(nil, err)
			b.same("place", i+1, q.Place)
		}
		b.waits("f1", "f2", "q1", "q2", "q3")
		next, err := b.NextQueued(b.Context(), "t")
		b.want(nil, err)
		b.same("next", thread.RunID("f1"), next.RunID)
		b.save(finished(b.find("t", "r2")))
		early := newRun("t", "q1") // whoever looked before f1 came
		early.Queued = true
		_, err = b.StartRun(b.Context(), early)
		b.want(thread.ErrQueued, err)
		b.waits("f1", "f2", "q1", "q2", "q3")
	})
	b.run("what it replaces may change", func(b *bench) {
		b.start(newRun("t", "r1"))
		for _, gone := range []thread.RunID{"r1", "r9", ""} {
			_, err := b.Enqueue(b.Context(), front("f1", gone), 3)
			b.want(nil, err)
		}
		next, err := b.NextQueued(b.Context(), "t")
		b.want(nil, err)
		b.same("replaces", thread.RunID("r9"), next.Replaces)
	})
	b.run("an answer is reserved with its place, and given back with it", func(b *bench) {
		b.asks("r1", `[{"id":"i1"}]`, "")
		active := b.start(newRun("t", "r2"))
		q := queued("q1")
		q.Answers = []thread.Answer{interrupt("i1")}
		for range 2 {
			_, err := b.Enqueue(b.Context(), q, 3)
			b.want(nil, err)
			b.same("pending", "", string(b.thread("t").Pending))
			b.want(nil, b.Dequeue(b.Context(), "t", "q1"))
			b.same("pending", `[{"id":"i1"}]`, string(b.thread("t").Pending))
		}
		_, err := b.Enqueue(b.Context(), q, 3)
		b.want(nil, err)
		late := queued("q2")
		late.Answers = q.Answers
		_, err = b.Enqueue(b.Context(), late, 3)
		b.late(err, "q1")
		b.waits("q1")
		b.save(finished(active))
		run, err := b.answers("q1", interrupt("i1"))
		b.want(nil, err)
		b.save(finished(run))
		_, err = b.answers("r5", interrupt("i1"))
		b.late(err, "q1")
	})
	b.run("who replaces a run may give its answers anew", func(b *bench) {
		b.asks("r1", `[{"id":"i1"}]`, "")
		run, err := b.answers("r2", interrupt("i1"))
		b.want(nil, err)
		q := front("q1", "r2")
		q.Answers = []thread.Answer{interrupt("i1")}
		_, err = b.Enqueue(b.Context(), q, 3)
		b.want(nil, err)
		run = finished(run)
		run.End = thread.End{Outcome: thread.OutcomeStopped, By: "me"}
		b.save(run)
		b.want(nil, b.Discard(b.Context(), "t", "r2", nil))
		b.same("pending", "", string(b.thread("t").Pending))
		b.late(b.Answered(b.Context(), "t", []thread.Answer{interrupt("i1")}), "q1")
	})
	b.run("what is past is settled", func(b *bench) {
		b.asks("r1", `[{"id":"i1"}]`, `[{"toolCallId":"k1"}]`)
		b.complete(newRun("t", "r2"))
		_, err := b.answers("r3", interrupt("i1"))
		b.late(err, "r2")
		_, err = b.answers("r3", call("k1", "d"))
		b.late(err, "r2")
		b.want(nil, b.Discard(b.Context(), "t", "r2", nil))
		b.same("pending", `[{"id":"i1"}]`, string(b.thread("t").Pending))
		b.same("calls", `[{"toolCallId":"k1"}]`, string(b.thread("t").Calls))
	})
}
