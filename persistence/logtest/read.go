package logtest

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/persistence/thread"
)

var readChecks = []check{
	{"an unknown thread has no entries", func(t *testing.T, log Log) {
		holds(t, log, "nobody", nil)
	}},
	{"a thread that is only leased has no entries", func(t *testing.T, log Log) {
		begin(t, log, "t", 1)
		holds(t, log, "t", nil)
	}},
	{"pages of any size give the whole, across runs", readPages},
	{"after the head there is nothing", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 2)
		a.add(3)
		for _, c := range []thread.Cursor{{Run: 2, Seq: 3}, {Run: 2, Seq: 4}, {Run: 3}, {Run: 1 << 62, Seq: 1 << 62}} {
			if got, err := log.Read(t.Context(), "t", c, 10); err != nil || len(got) != 0 {
				t.Fatalf("Read after %s = %d entries, %v; want none", c, len(got), err)
			}
		}
	}},
	{"no more than the limit, and none for a limit of 0", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 1)
		a.add(5)
		for _, limit := range []int{0, -1} {
			if got, err := log.Read(t.Context(), "t", thread.Cursor{}, limit); err != nil || len(got) != 0 {
				t.Fatalf("Read with limit %d = %d entries, %v", limit, len(got), err)
			}
		}
	}},
	{"the head is the last entry of the latest run", func(t *testing.T, log Log) {
		a := begin(t, log, "t", 3)
		a.add(2)
		a.leave()
		wantHead(t, log, "t", thread.Cursor{Run: 3, Seq: 3})
		b := begin(t, log, "t", 5)
		wantHead(t, log, "t", thread.Cursor{Run: 3, Seq: 3})
		b.add(1)
		wantHead(t, log, "t", thread.Cursor{Run: 5, Seq: 1})
	}},
	{"what Append acknowledged is readable at once", readYourWrites},
}

func wantHead(t *testing.T, log Log, id thread.ID, want thread.Cursor) {
	t.Helper()
	if got, err := log.Head(t.Context(), id); err != nil || got != want {
		t.Fatalf("Head = %s, %v; want %s", got, err, want)
	}
}

func readPages(t *testing.T, log Log) {
	var all []thread.Entry
	for _, run := range []uint64{2, 3, 7} {
		a := begin(t, log, "t", run)
		a.add(6)
		a.leave()
		all = append(all, a.wrote...)
	}
	for _, limit := range []int{1, 2, 3, 7, 8, 20, 21, 22, 1000} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			var got []thread.Entry
			var after thread.Cursor
			for {
				page, err := log.Read(t.Context(), "t", after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if want := min(limit, len(all)-len(got)); len(page) != want {
					t.Fatalf("Read after %s = %d entries, want %d", after, len(page), want)
				}
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
				after = page[len(page)-1].Cursor()
			}
			sameEntries(t, got, all)
		})
	}
}

func readYourWrites(t *testing.T, log Log) {
	var group errgroup.Group
	for i := range 8 {
		id := thread.ID(fmt.Sprintf("thread %d", i))
		a := begin(t, log, id, 1)
		group.Go(func() error {
			for seq := uint64(1); seq <= 50; seq++ {
				if err := log.Append(t.Context(), a.lease, events(1, seq, seq)); err != nil {
					return err
				}
				got, err := log.Read(t.Context(), id, thread.Cursor{Run: 1, Seq: seq - 1}, 10)
				if err != nil || len(got) != 1 {
					return errors.Join(fmt.Errorf("entry %d of %s: read %d entries", seq, id, len(got)), err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
