//go:build integration

package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/thread"
)

// TestFourNodesFinishAndDeleteTheSameThreads lets four nodes run, queue, finish and delete on a few threads at the same time
// (F123). What was accepted after the last deletion of its thread began is there, whole; nothing fails, and nothing is left over.
func TestFourNodesFinishAndDeleteTheSameThreads(t *testing.T) {
	t.Parallel()
	const threads = 4
	d := time.Duration(sized(20, 4)) * time.Second
	o := newOrdeal(t, "--lease", "4s", "--retention", "2s")
	for range 4 {
		o.add()
	}
	until := time.Now().Add(d)
	all := make([]*contested, threads)
	var busy sync.WaitGroup
	for i := range all {
		c := &contested{o: o, id: fmt.Sprintf("contested %d", i), codes: map[string]int{}}
		all[i] = c
		for worker := range 4 {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(worker)))
			busy.Go(func() {
				for n := 0; time.Now().Before(until); n++ {
					c.run(fmt.Sprintf("r%d.%d", worker, n), rng)
				}
			})
		}
		busy.Go(func() { c.deleteNowAndThen(until) })
	}
	busy.Wait()
	past := o.history()
	eventually(t, patience, "all runs have ended", func() bool {
		left, err := past.Unfinished(t.Context(), "", 0, 10)
		waiting, errQueue := past.IdleQueues(t.Context(), 10)
		return err == nil && errQueue == nil && len(left)+len(waiting) == 0
	})
	accepted, kept, deletions, codes := 0, 0, 0, map[string]int{}
	for _, c := range all {
		kept += c.check(past)
		accepted += len(c.runs)
		deletions += c.deletions
		for code, n := range c.codes {
			codes[code] += n
		}
	}
	if kept == 0 || deletions < threads {
		t.Errorf("%d runs were kept, and %d deletions made", kept, deletions)
	}
	measured(t, "%s, %d threads: %d runs accepted, %d deletions, %d runs had to be there in the end, 0 lost; answers: %v",
		d, threads, accepted, deletions, kept, codes)
}

// contested is a thread that all nodes are at.
type contested struct {
	o  *ordeal
	id string

	mu        sync.Mutex
	runs      []claimed
	codes     map[string]int
	deletions int
	deleted   time.Time // when the last deletion had been made
}

// claimed is a run that was accepted, and when it was asked for.
type claimed struct {
	id    string
	asked time.Time
}

// run asks some node for a run, in some manner.
func (c *contested) run(id string, rng *rand.Rand) {
	n := c.o.nodes[rng.IntN(4)]
	req := runRequest{
		RunID: id, AgentID: "brief", Messages: json.RawMessage("[]"),
		OnBusy: []string{"", "enqueue", "enqueue", "interrupt"}[rng.IntN(4)],
	}
	asked := time.Now()
	status, data, err := n.request(http.MethodPost, threadPath(c.id)+"/runs", req)
	var p problem
	if err == nil && status != http.StatusAccepted {
		err = json.Unmarshal(data, &p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[fmt.Sprintf("%d %s", status, p.Code)]++
	switch {
	case err == nil && status == http.StatusAccepted:
		c.runs = append(c.runs, claimed{id, asked})
	case err != nil || !slices.Contains([]string{"thread_busy", "queue_full"}, p.Code):
		c.o.Errorf("run %s on %s was answered %d %s %v", id, c.id, status, data, err)
	}
}

func (c *contested) deleteNowAndThen(until time.Time) {
	rng := rand.New(rand.NewPCG(3, uint64(len(c.id))))
	for time.Now().Before(until.Add(-2 * time.Second)) {
		<-time.After(time.Duration(300+rng.IntN(700)) * time.Millisecond)
		status, data, err := c.o.nodes[rng.IntN(4)].request(http.MethodDelete, threadPath(c.id), nil)
		c.mu.Lock()
		if err == nil && status == http.StatusNoContent {
			c.deletions++
			c.deleted = time.Now()
		} else if err != nil || status != http.StatusNotFound {
			c.o.Errorf("the deletion of %s was answered %d %s %v", c.id, status, data, err)
		}
		c.mu.Unlock()
	}
}

// check looks for the runs that were asked for after the thread was deleted for the last time, and returns how many those are.
func (c *contested) check(past *history.History) (kept int) {
	c.o.Helper()
	found := map[string]thread.Run{}
	for after := uint64(0); ; {
		run, err := past.NextRun(c.o.Context(), thread.ID(c.id), after)
		if err != nil {
			break // there are no more
		}
		if _, again := found[string(run.ID)]; again || len(run.Events) == 0 || len(terminals(texts(run.Events))) != 1 {
			c.o.Errorf("run %s of %s is there twice, or has not ended once: %s", run.ID, c.id, texts(run.Events))
		}
		found[string(run.ID)], after = run, run.Number
	}
	for _, r := range c.runs {
		if !r.asked.After(c.deleted) {
			continue
		}
		kept++
		if run, ok := found[r.id]; !ok || run.Ended.IsZero() {
			c.o.Errorf("run %s of %s was accepted, and is not there", r.id, c.id)
		}
	}
	return kept
}

func texts(events []thread.Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.Data))
	}
	return all
}
