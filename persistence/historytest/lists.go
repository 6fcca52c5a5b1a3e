package historytest

import (
	"slices"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
)

// pages reads the whole list of threads, limit at a time, and calls between before each page but the first.
func (b *bench) pages(limit int, between func(page int)) []thread.Thread {
	b.Helper()
	var all []thread.Thread
	page := thread.Page{Limit: limit}
	for n := 0; ; n++ {
		if n > 0 {
			between(n)
		}
		threads, next, err := b.Threads(b.Context(), page)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, threads...)
		if next == "" {
			return all
		}
		if len(threads) != limit {
			b.Fatalf("a page that is not the last has %d threads, want %d", len(threads), limit)
		}
		page.Before = next
	}
}

func testThreads(b *bench) {
	// fill makes 25 threads; five at a time are active in the same millisecond.
	fill := func(b *bench) (newestFirst []thread.ID) {
		for i := range 25 {
			run := newRun(thread.ID(name("t", i)), "r1")
			run.Accepted = at(i / 5)
			b.complete(run)
			newestFirst = append(newestFirst, run.Thread)
		}
		slices.Reverse(newestFirst)
		return newestFirst
	}
	nothing := func(int) {}
	b.run("every page size gives every thread once, newest first", func(b *bench) {
		want := fill(b)
		for _, limit := range []int{1, 2, 5, 7, 24, 25, 26} {
			b.same("threads", want, threadIDs(b.pages(limit, nothing)))
		}
	})
	b.run("a thread is listed as it is looked up", func(b *bench) {
		fill(b)
		run := newRun("t-0003", "r2")
		run.Title, run.Accepted, run.Input = "third", at(100), []byte(`{}`)
		b.start(run)
		for _, listed := range b.pages(10, nothing) {
			b.same("thread", b.thread(listed.ID), listed)
			b.same("latest", listed.LastRun, listed.Latest.Number)
			b.same("input of the latest", []byte(nil), listed.Latest.Input)
		}
	})
	b.run("pages hold while threads move and go", func(b *bench) {
		want := fill(b)
		got := threadIDs(b.pages(5, func(page int) {
			switch page {
			case 1:
				again := newRun(want[0], "r2") // a thread that was listed
				again.Accepted = at(1000)
				b.complete(again)
			case 2:
				b.delete(want[9])  // the one that the page begins behind
				b.delete(want[12]) // one that was not listed yet
			}
		}))
		b.same("threads", slices.Delete(slices.Clone(want), 12, 13), got)
	})
	b.run("ids with any characters do not break pages", func(b *bench) {
		var want []thread.ID
		for _, id := range []thread.ID{"!", ":", "a", "a:b", "é", "日本", "😀", thread.ID(strings.Repeat("x", thread.MaxID))} {
			b.complete(newRun(id, "r1"))
			want = append(want, id)
		}
		slices.Sort(want)
		slices.Reverse(want)
		b.same("threads", want, threadIDs(b.pages(1, nothing)))
	})
	b.run("activity does not go back", func(b *bench) {
		late := newRun("t", "r1")
		late.Accepted = at(100)
		b.complete(late)
		early := newRun("t", "r2")
		early.Accepted = at(50)
		b.complete(early)
		b.same("activity", at(101), b.thread("t").Activity)
	})
	b.run("a page that nobody gave is refused", func(b *bench) {
		for _, before := range []string{"x", "-", "MTIz", "MTIzOg", "OmE", "MTIzOmE=", strings.Repeat("A", 1000)} {
			_, _, err := b.Threads(b.Context(), thread.Page{Before: before})
			b.want(thread.ErrBadCursor, err)
		}
	})
	b.run("no limit is fifty and no limit is over 500", func(b *bench) {
		for i := range 502 {
			b.start(newRun(thread.ID(name("t", i)), "r1"))
		}
		for limit, want := range map[int]int{0: 50, -1: 50, 1000: 500, 500: 500} {
			threads, next, err := b.Threads(b.Context(), thread.Page{Limit: limit})
			b.want(nil, err)
			b.same("threads", want, len(threads))
			b.same("there is more", true, next != "")
		}
	})
}

func testRuns(b *bench) {
	b.run("particulars are listed by number", func(b *bench) {
		for i := range 9 {
			run := newRun("t", thread.RunID(name("r", 9-i)))
			run.Input = []byte(`{"n":1}`)
			b.complete(run, `{"n":2}`)
		}
		b.start(newRun("t", "open"))
		runs, err := b.Runs(b.Context(), "t", 3, 4)
		b.want(nil, err)
		b.same("runs", []thread.RunID{"r-0006", "r-0005", "r-0004", "r-0003"}, ids(runs))
		for _, run := range runs {
			want := b.find("t", run.ID)
			want.Input = nil
			b.same("run", want, run)
		}
		runs, err = b.Runs(b.Context(), "t", 8, 100)
		b.want(nil, err)
		b.same("last runs", []thread.RunID{"r-0001", "open"}, ids(runs))
	})
	b.run("none are none", func(b *bench) {
		b.complete(newRun("t", "r1"))
		for _, ask := range []struct {
			id    thread.ID
			after uint64
			limit int
		}{{"t", 1, 10}, {"t", 0, 0}, {"t", 0, -1}, {"u", 0, 10}} {
			runs, err := b.Runs(b.Context(), ask.id, ask.after, ask.limit)
			b.want(nil, err)
			b.same("runs", 0, len(runs))
		}
	})
	b.run("a damaged run is listed", func(b *bench) {
		b.complete(newRun("t", "r1"), `{"n":1}`)
		b.want(nil, b.Damage(b.Context(), "t", 1))
		runs, err := b.Runs(b.Context(), "t", 0, 10)
		b.want(nil, err)
		b.same("runs", []thread.RunID{"r1"}, ids(runs))
	})
}
