package historytest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
)

// of is a run that begins a thread of a user.
func of(user thread.User, id thread.ID, agent string) thread.Run {
	run := newRun(id, "r1")
	run.User, run.Agent = user, agent
	return run
}

// listed returns the ids of one page.
func (b *bench) listed(page thread.Page) []thread.ID {
	b.Helper()
	threads, _, err := b.Threads(b.Context(), page)
	b.want(nil, err)
	return threadIDs(threads)
}

func (b *bench) edit(id thread.ID, edit thread.Edit) thread.Thread {
	b.Helper()
	t, err := b.Edit(b.Context(), id, edit)
	b.want(nil, err)
	return t
}

// named and archived are edits.
func named(name string) thread.Edit { return thread.Edit{Name: &name} }

func archived(is bool) thread.Edit { return thread.Edit{Archived: &is} }

func testOwners(b *bench) {
	b.run("a list has the threads of its user and no others", func(b *bench) {
		for i, user := range []thread.User{"", "alice", "bob", `"a"`, "ünï"} {
			for k := range 3 {
				run := of(user, thread.ID(fmt.Sprintf("%d-%d", i, k)), []string{"demo", "other"}[k%2])
				run.Accepted = at(k)
				b.start(run)
			}
		}
		for i, user := range []thread.User{"", "alice", "bob", `"a"`, "ünï"} {
			id := func(k int) thread.ID { return thread.ID(fmt.Sprintf("%d-%d", i, k)) }
			b.same("threads", []thread.ID{id(2), id(1), id(0)}, b.listed(thread.Page{Owner: user}))
			b.same("of an agent", []thread.ID{id(2), id(0)}, b.listed(thread.Page{Owner: user, Agent: "demo"}))
			b.same("owner", user, b.thread(id(0)).Owner)
		}
		b.same("of nobody", []thread.ID{}, b.listed(thread.Page{Owner: "carol"}))
	})
	b.run("a thread stays with who began it, and with its first agent", func(b *bench) {
		b.complete(of("alice", "t", "demo"))
		again := of("bob", "t", "other")
		again.ID = "r2"
		b.complete(again)
		t := b.thread("t")
		b.same("owner", thread.User("alice"), t.Owner)
		b.same("agent", "demo", t.Agent)
	})
	b.run("one that is begun anew is of who begins it anew", func(b *bench) {
		b.complete(of("alice", "t", "demo"))
		b.edit("t", named("hers"))
		b.edit("t", archived(true))
		b.delete("t")
		b.complete(of("bob", "t", "other"))
		t := b.thread("t")
		b.same("owner", thread.User("bob"), t.Owner)
		b.same("agent", "other", t.Agent)
		b.same("name", "", t.Name)
		b.same("archived", true, t.Archived.IsZero())
		b.same("hers", []thread.ID{}, b.listed(thread.Page{Owner: "alice", Archived: true}))
		b.same("his", []thread.ID{"t"}, b.listed(thread.Page{Owner: "bob"}))
	})
	b.run("what names nobody is refused", func(b *bench) {
		_, err := b.StartRun(b.Context(), of("a\nb", "t", "demo"))
		b.want(thread.ErrBadInput, err)
	})
	b.run("archived threads are left out unless they are asked for", func(b *bench) {
		for i := range 6 {
			run := newRun(thread.ID(name("t", i)), "r1")
			run.Accepted = at(i)
			b.start(run)
			if i%2 == 0 {
				b.edit(run.Thread, archived(true))
			}
		}
		b.same("threads", []thread.ID{"t-0005", "t-0003", "t-0001"}, b.listed(thread.Page{}))
		b.same("all", 6, len(b.listed(thread.Page{Archived: true, Agent: "demo"})))
		first, next, err := b.Threads(b.Context(), thread.Page{Limit: 2})
		b.want(nil, err)
		b.same("first page", []thread.ID{"t-0005", "t-0003"}, threadIDs(first))
		b.same("second page", []thread.ID{"t-0001"}, b.listed(thread.Page{Limit: 2, Before: next}))
	})
}

func testEdit(b *bench) {
	b.run("name and archive are kept, and taken back", func(b *bench) {
		b.complete(newRun("t", "r1"))
		before := b.thread("t")
		for _, want := range []string{"Mine", `"q" é 日本 \`, strings.Repeat("x", thread.MaxName), ""} {
			b.same("edited name", want, b.edit("t", named(want)).Name)
			b.same("name", want, b.thread("t").Name)
		}
		b.same("archived", false, b.edit("t", archived(true)).Archived.IsZero())
		both := archived(false)
		both.Name = new("both")
		t := b.edit("t", both)
		b.same("edited", b.thread("t"), t)
		b.same("archived", true, t.Archived.IsZero())
		b.same("name", "both", t.Name)
		b.same("revision", before.Revision+7, t.Revision)
		b.same("activity", before.Activity, t.Activity)
	})
	b.run("what is so already is no change", func(b *bench) {
		b.complete(newRun("t", "r1"))
		b.edit("t", named("Mine"))
		t := b.edit("t", archived(true))
		again := archived(true)
		again.Name = new("Mine")
		b.same("thread", t, b.edit("t", again))
		b.same("thread", t, b.edit("t", thread.Edit{}))
	})
	b.run("what is not there is not found", func(b *bench) {
		_, err := b.Edit(b.Context(), "t", named("x"))
		b.want(thread.ErrNotFound, err)
		b.complete(newRun("t", "r1"))
		b.delete("t")
		_, err = b.Edit(b.Context(), "t", named("x"))
		b.want(thread.ErrNotFound, err)
	})
	b.run("a bad name is refused", func(b *bench) {
		b.complete(newRun("t", "r1"))
		for _, bad := range []string{"a\nb", "\x00", "\xff", "\x7f", strings.Repeat("x", thread.MaxName+1)} {
			_, err := b.Edit(b.Context(), "t", named(bad))
			b.want(thread.ErrBadInput, err)
		}
		b.same("name", "", b.thread("t").Name)
	})
}

// ears keep what a history tells.
type ears struct {
	mu   sync.Mutex
	told []thread.Change
}

func (e *ears) hear(c thread.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, c)
}

// take returns what was told since the last call.
func (e *ears) take() []thread.Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := e.told
	e.told = nil
	return told
}

func (b *bench) listen() *ears {
	e := &ears{}
	b.Listen(e.hear)
	return e
}

// tells wants just these changes of a thread, each with the next revision, and the last of them to be the thread as it is.
func (b *bench) tells(e *ears, id thread.ID, want ...thread.Happening) {
	b.Helper()
	told := e.take()
	var what []thread.Happening
	last := b.thread(id)
	for i, c := range told {
		what = append(what, c.What)
		b.same("thread", id, c.Thread.ID)
		b.same("revision", last.Revision-uint64(len(told)-1-i), c.Thread.Revision)
		b.same("told when", false, c.At.IsZero())
	}
	b.same("what is told", want, what)
	if len(told) > 0 && !last.Deleted {
		last.Pending, last.Calls, told[len(told)-1].Thread.Pending, told[len(told)-1].Thread.Calls = nil, nil, nil, nil
		b.same("what is told of it", last, told[len(told)-1].Thread)
	}
}

func testChanges(b *bench) {
	b.run("each change is told once, as it left the thread", func(b *bench) {
		e := b.listen()
		run := of("alice", "t", "demo")
		run.Title = "Hello"
		run = b.start(run)
		b.tells(e, "t", thread.Created)
		b.enqueue("q1")
		b.tells(e, "t", thread.Enqueued)
		b.enqueue("q1")
		b.tells(e, "t")
		b.enqueue("q2")
		b.want(nil, b.Dequeue(b.Context(), "t", "q2"))
		b.tells(e, "t", thread.Enqueued, thread.Enqueued)
		b.save(finished(run))
		b.save(finished(run))
		b.tells(e, "t", thread.Ended)
		next := newRun("t", "q1")
		next.Queued = true
		next = finished(b.start(next))
		b.tells(e, "t", thread.Running)
		next.End.Outcome, next.Pending = thread.OutcomeWaiting, []byte(`[{"id":"i1"}]`)
		b.save(next)
		b.tells(e, "t", thread.Waiting)
		both := archived(true)
		both.Name = new("Mine")
		b.edit("t", both)
		b.tells(e, "t", thread.Renamed, thread.Archived)
		b.edit("t", both)
		b.tells(e, "t")
		b.edit("t", archived(false))
		b.tells(e, "t", thread.Unarchived)
		b.delete("t")
		b.same("deleted", thread.Thread{ID: "t", Owner: "alice", Agent: "demo", LastRun: 2, Revision: 11, Deleted: true}, e.told[0].Thread)
		b.tells(e, "t", thread.Deleted)
		b.start(of("bob", "t", "demo"))
		b.tells(e, "t", thread.Created)
		b.same("revision", uint64(12), b.thread("t").Revision)
	})
	b.run("what fails is not told", func(b *bench) {
		b.start(newRun("t", "r1"))
		e := b.listen()
		_, err := b.StartRun(b.Context(), newRun("t", "r2"))
		b.want(thread.ErrUnfinished, err)
		b.want(thread.ErrNotFound, b.Dequeue(b.Context(), "t", "q1"))
		b.want(thread.ErrNotFound, b.DeleteThread(b.Context(), Holding("u")))
		b.tells(e, "t")
	})
	b.run("a thread that many change at once has each revision once", func(b *bench) {
		b.start(newRun("t", "r1"))
		e := b.listen()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := b.Edit(b.Context(), "t", named(name("n", i))); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		seen := map[uint64]bool{}
		for _, c := range e.take() {
			seen[c.Thread.Revision] = true
		}
		b.same("revisions", 20, len(seen))
		b.same("revision", uint64(21), b.thread("t").Revision)
	})
}

func testSecret(b *bench) {
	b.run("a database has one of its own, for good", func(b *bench) {
		secret, err := b.Secret(b.Context())
		b.want(nil, err)
		b.same("bytes", true, len(secret) >= 32 && !bytes.Equal(secret, make([]byte, len(secret))))
		other, err := b.open(b.T).Secret(b.Context())
		b.want(nil, err)
		b.same("another database has the same", false, bytes.Equal(secret, other))
		again, err := b.Reopen(b.Context())
		b.want(nil, err)
		same, err := again.Secret(b.Context())
		b.want(nil, err)
		b.same("after it was opened again", secret, same)
	})
}
