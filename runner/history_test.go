package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// archive is a history in memory, true to the contracts of runner.History, Records, Backlog, Line and Story. Its methods can be made
// to fail. It is safe for concurrent use.
type archive struct {
	mu      sync.Mutex
	threads map[thread.ID]*shelf
	started int // runs, of all threads
	writes  int // SaveRun calls that recorded something

	calls  map[string]int
	faults map[string]map[int]fault
	down   error
}

// shelf is what an archive holds of one thread.
type shelf struct {
	last    uint64
	deleted bool
	runs    []*volume
	seen    map[string]bool
	pending []byte
	calls   []byte
	answers map[string]said
	queue   []thread.Queued
}

type volume struct {
	thread.Run
	order int
}

// fault is what happens to one call of an archive.
type fault struct {
	wait <-chan struct{} // holds the call back until it is closed or the call's context is done
	err  error           // is returned instead of making the call
	cut  bool            // makes the call, and returns err all the same
}

func newArchive() *archive {
	return &archive{
		threads: map[thread.ID]*shelf{}, calls: map[string]int{}, faults: map[string]map[int]fault{},
	}
}

// inject makes the nth call of a method from now on meet a fault.
func (a *archive) inject(method string, nth int, f fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faults[method] == nil {
		a.faults[method] = map[int]fault{}
	}
	a.faults[method][a.calls[method]+nth] = f
}

// fail makes every call fail with err from now on; nil ends that.
func (a *archive) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = err
}

// count tells how often a method was called.
func (a *archive) count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[method]
}

// call makes a call under the lock, unless it meets a fault.
func (a *archive) call(ctx context.Context, method string, do func() error) error {
	a.mu.Lock()
	a.calls[method]++
	f := a.faults[method][a.calls[method]]
	if a.down != nil {
		f = fault{err: a.down}
	}
	a.mu.Unlock()
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", thread.ErrUnavailable, err)
	}
	if f.err != nil && !f.cut {
		return f.err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return cmp.Or(do(), f.err)
}

func (s *shelf) find(id thread.RunID) (*volume, error) {
	if s != nil {
		for _, v := range s.runs {
			if v.ID == id {
				return v, nil
			}
		}
	}
	return nil, thread.ErrNotFound
}

func (s *shelf) open() *volume {
	for _, v := range s.runs {
		if v.Ended.IsZero() {
			return v
		}
	}
	return nil
}

func (a *archive) Known(ctx context.Context, id thread.ID, messages []string) (map[string]bool, error) {
	known := map[string]bool{}
	return known, a.call(ctx, "Known", func() error {
		if s := a.threads[id]; s != nil {
			for _, m := range messages {
				if s.seen[m] {
					known[m] = true
				}
			}
		}
		return nil
	})
}

func (a *archive) StartRun(ctx context.Context, run thread.Run) (thread.Run, error) {
	err := a.call(ctx, "StartRun", func() error {
		s := a.threads[run.Thread]
		if s == nil {
			s = &shelf{seen: map[string]bool{}, answers: map[string]said{}}
			a.threads[run.Thread] = s
		}
		if _, err := s.find(run.ID); err == nil {
			return thread.ErrRunIDUsed
		}
		if left := s.open(); left != nil {
			return &thread.UnfinishedError{Run: left.Run}
		}
		if err := s.answer(thread.Queued{RunID: run.ID, Answers: run.Answers}); err != nil {
			return err
		}
		there := slices.ContainsFunc(s.queue, func(q thread.Queued) bool { return q.RunID == run.ID })
		switch {
		case run.Follows != 0 && s.last != run.Follows:
			return thread.ErrGap
		case !there && run.Queued:
			return thread.ErrNotFound
		case len(s.queue) > 0 && s.queue[0].RunID != run.ID:
			return thread.ErrQueued
		}
		s.leave(run.ID)
		s.deleted = false
		s.last++
		run.Number = s.last
		if len(s.runs) > 0 {
			run.Previous = s.runs[len(s.runs)-1].ID
		}
		for _, m := range run.Messages {
			s.seen[m] = true
		}
		a.started++
		s.runs = append(s.runs, &volume{Run: run, order: a.started})
		return nil
	})
	if err != nil {
		return thread.Run{}, err
	}
	return run, nil
}

// fenced finds the row of a run for a writer with run.Token.
func (a *archive) fenced(run thread.Run) (*shelf, *volume, error) {
	s := a.threads[run.Thread]
	v, err := s.find(run.ID)
	switch {
	case err != nil:
		return nil, nil, err
	case v.Number != run.Number:
		return nil, nil, thread.ErrNotFound
	case v.Token > run.Token:
		return nil, nil, thread.ErrLeaseLost
	}
	return s, v, nil
}

func (a *archive) TakeRun(ctx context.Context, run thread.Run) error {
	return a.call(ctx, "TakeRun", func() error {
		_, v, err := a.fenced(run)
		if err == nil && v.Ended.IsZero() {
			v.Owner, v.Token = run.Owner, run.Token
		}
		return err
	})
}

func (a *archive) SaveRun(ctx context.Context, run thread.Run) error {
	return a.call(ctx, "SaveRun", func() error {
		s, v, err := a.fenced(run)
		if err != nil || !v.Ended.IsZero() {
			return err
		}
		if run.End.Outcome == "" || run.Ended.IsZero() {
			return thread.ErrBadInput
		}
		for _, m := range run.Messages {
			s.seen[m] = true
		}
		s.settle(run)
		a.writes++
		v.Run = run
		return nil
	})
}

func (a *archive) FindRun(ctx context.Context, id thread.ID, run thread.RunID) (found thread.Run, err error) {
	err = a.call(ctx, "FindRun", func() error {
		v, err := a.threads[id].find(run)
		if err == nil {
			found = v.Run
			found.Events = nil
		}
		return err
	})
	return found, err
}

func (a *archive) Unfinished(ctx context.Context, id thread.ID, skip, limit int) (runs []thread.Run, err error) {
	err = a.call(ctx, "Unfinished", func() error {
		var open []*volume
		for name, s := range a.threads {
			if v := s.open(); v != nil && (id == "" || id == name) {
				open = append(open, v)
			}
		}
		slices.SortFunc(open, func(v, w *volume) int { return cmp.Compare(v.order, w.order) })
		open = open[min(skip, len(open)):]
		for _, v := range open[:min(limit, len(open))] {
			runs = append(runs, v.Run)
		}
		return nil
	})
	return runs, err
}

func (a *archive) DeleteThread(ctx context.Context, lease thread.Lease) error {
	id := lease.Thread
	return a.call(ctx, "DeleteThread", func() error {
		s := a.threads[id]
		if s == nil || s.deleted {
			return thread.ErrNotFound
		}
		for _, v := range s.runs {
			if v.Token > lease.Token {
				return thread.ErrLeaseLost
			}
		}
		*s = shelf{last: s.last, deleted: true, seen: map[string]bool{}, answers: map[string]said{}}
		return nil
	})
}

func (a *archive) Thread(ctx context.Context, id thread.ID) (found thread.Thread, err error) {
	err = a.call(ctx, "Thread", func() error {
		s := a.threads[id]
		if s == nil {
			return thread.ErrNotFound
		}
		found = thread.Thread{ID: id, LastRun: s.last, Deleted: s.deleted, Pending: s.unanswered(thread.AnswerInterrupt, "id", s.pending),
			Calls: s.unanswered(thread.AnswerCall, "toolCallId", s.calls), Queued: len(s.queue), Activity: time.Now()}
		if len(s.runs) > 0 {
			latest := s.runs[len(s.runs)-1].Run
			latest.Input, latest.Events = nil, nil
			found.Latest = &latest
		}
		return nil
	})
	return found, err
}

// saved returns how many runs were recorded as finished.
func (a *archive) saved() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

// run returns a run whole.
func (a *archive) run(id thread.ID, run thread.RunID) (thread.Run, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, err := a.threads[id].find(run)
	if err != nil {
		return thread.Run{}, false
	}
	return v.Run, true
}
