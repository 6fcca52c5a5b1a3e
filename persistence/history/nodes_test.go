package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/historytest"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// expected are the refusals that nodes meet when they are at the same thread.
var expected = []error{
	thread.ErrUnfinished, thread.ErrNotFound, thread.ErrQueued, thread.ErrQueueFull, thread.ErrRunIDUsed, thread.ErrLeaseLost,
}

// TestFourNodesLoseNothing holds F123: nodes that accept, take over, save, discard, queue and delete on the same threads at
// the same time neither fail nor lose a run.
func TestFourNodesLoseNothing(t *testing.T) {
	const nodes, threads, rounds = 4, 3, 40
	url := pgtest.Database(t)
	histories := make([]*history.History, nodes)
	for i := range histories {
		histories[i], _, _ = openPostgres(t, url, history.Options{})
	}
	counts := newCounts()
	var all sync.WaitGroup
	for n, h := range histories {
		for i := range threads {
			id := thread.ID(fmt.Sprint("t", i))
			all.Go(func() {
				for round := range rounds {
					if err := counts.play(h, id, fmt.Sprintf("%d-%d", n, round)); err != nil {
						t.Errorf("node %d: %v", n, err)
					}
				}
			})
			all.Go(func() {
				for round := range rounds {
					if err := meddle(h, id, fmt.Sprintf("%d-%d", n, round)); err != nil {
						t.Errorf("node %d: %v", n, err)
					}
				}
			})
		}
	}
	all.Wait()
	for i := range threads {
		counts.check(t, histories[i], thread.ID(fmt.Sprint("t", i)))
	}
}

// meddle does to a thread what is not a part of a run's life.
func meddle(h *history.History, id thread.ID, name string) error {
	ctx := context.Background()
	_, enqueue := h.Enqueue(ctx, thread.Queued{Thread: id, RunID: thread.RunID("q" + name), Input: []byte(`{}`)}, 3)
	var dequeue, discard error
	if waiting, err := h.Queue(ctx, id); err == nil && len(waiting) > 0 {
		dequeue = h.Dequeue(ctx, id, waiting[0].RunID)
	}
	if runs, err := h.Runs(ctx, id, 0, 1); err == nil && len(runs) > 0 {
		discard = h.Discard(ctx, id, runs[0].ID, []string{"m", "a", "z"})
	}
	_, _, list := h.Threads(ctx, thread.Page{})
	return unexpected(enqueue, dequeue, discard, list)
}

// unexpected joins the errors that are not refusals.
func unexpected(errs ...error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return slices.ContainsFunc(expected, func(want error) bool { return errors.Is(err, want) })
	})...)
}

// counts are what the nodes were told.
type counts struct {
	sync.Mutex
	accepted map[thread.ID][]uint64
	saved    map[thread.ID]map[uint64]string // since the latest deletion, or before it
	deleted  map[thread.ID]uint64            // the greatest number that may be gone
}

func newCounts() *counts {
	return &counts{
		accepted: map[thread.ID][]uint64{}, saved: map[thread.ID]map[uint64]string{}, deleted: map[thread.ID]uint64{},
	}
}

// play accepts a run if it can, has it taken over, and saves it; some rounds delete the thread.
func (c *counts) play(h *history.History, id thread.ID, name string) error {
	ctx := context.Background()
	asked := thread.Run{
		Thread: id, ID: thread.RunID(name), Token: 1, Messages: []string{"z" + name, "a" + name, "m"}, Input: []byte(`{}`),
	}
	run, err := h.StartRun(ctx, asked)
	if errors.Is(err, thread.ErrQueued) {
		var next thread.Queued
		if next, err = h.NextQueued(ctx, id); err == nil {
			asked.ID, asked.Queued = next.RunID, true
			run, err = h.StartRun(ctx, asked)
		}
	}
	if err != nil {
		return unexpected(err)
	}
	c.Lock()
	c.accepted[id] = append(c.accepted[id], run.Number)
	c.Unlock()
	if run.Number%7 == 0 {
		err := h.DeleteThread(ctx, historytest.Holding(id))
		c.Lock()
		c.deleted[id] = max(c.deleted[id], run.Number)
		c.Unlock()
		return unexpected(err)
	}
	text := fmt.Sprintf(`{"n":%d}`, run.Number)
	former := run
	run.Token = 2
	run.End.Outcome, run.LastSeq = thread.OutcomeFinished, 2
	run.Events = []thread.Event{{First: 1, Last: 1, Data: []byte(text)}}
	run.Messages = []string{"m", "b" + name}
	if err := h.TakeRun(ctx, run); err != nil {
		return unexpected(err)
	}
	former.End.Outcome = thread.OutcomeLost
	if err := h.SaveRun(ctx, former); !errors.Is(err, thread.ErrLeaseLost) && !errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("the former owner saved: %w", err)
	}
	if err := h.SaveRun(ctx, run); err != nil {
		return unexpected(err)
	}
	c.Lock()
	defer c.Unlock()
	if c.saved[id] == nil {
		c.saved[id] = map[uint64]string{}
	}
	c.saved[id][run.Number] = text
	return nil
}

// check compares a thread with what the nodes were told of it.
func (c *counts) check(t *testing.T, h *history.History, id thread.ID) {
	t.Helper()
	numbers := c.accepted[id]
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != uint64(i+1) {
			t.Fatalf("%s: the numbers of the accepted runs are %v", id, numbers)
		}
	}
	if len(numbers) < 10 || c.deleted[id] == 0 {
		t.Errorf("%s: only %d runs were accepted, deleted up to %d", id, len(numbers), c.deleted[id])
	}
	found := map[uint64]string{}
	for after := uint64(0); ; {
		run, err := h.NextRun(t.Context(), id, after)
		if errors.Is(err, thread.ErrNotFound) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[run.Number], after = string(run.Events[0].Data), run.Number
	}
	for number, text := range c.saved[id] {
		if number > c.deleted[id] && found[number] != text {
			t.Errorf("%s: run %d was saved, and is %q", id, number, found[number])
		}
	}
	for number := range found {
		if c.saved[id][number] == "" {
			t.Errorf("%s: run %d was never saved, and is there", id, number)
		}
	}
}
