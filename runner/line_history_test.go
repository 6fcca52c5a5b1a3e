package runner_test

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// said is an answer that an archive holds.
type said struct {
	run    thread.RunID
	digest string
}

func answerKey(a thread.Answer) string { return string(a.Kind) + ":" + a.ID }

// waits tells whether an archive's list of what waits has an object with that id.
func waits(list []byte, member, id string) bool {
	var objects []map[string]any
	_ = json.Unmarshal(list, &objects)
	return slices.ContainsFunc(objects, func(o map[string]any) bool { return o[member] == id })
}

// without is the list without that object.
func without(list []byte, member, id string) []byte {
	var objects []map[string]any
	_ = json.Unmarshal(list, &objects)
	objects = slices.DeleteFunc(objects, func(o map[string]any) bool { return o[member] == id })
	if len(objects) == 0 {
		return nil
	}
	out, _ := json.Marshal(objects)
	return out
}

// answer records what a run answers, or refuses it.
func (s *shelf) answer(run thread.Run) error {
	for _, a := range run.Answers {
		list, member := s.pending, "id"
		if a.Kind == thread.AnswerCall {
			list, member = s.calls, "toolCallId"
		}
		if !waits(list, member, a.ID) {
			if old, ok := s.answers[answerKey(a)]; ok && a.Late(old.digest) {
				return &thread.AnsweredError{Answer: a, RunID: old.run}
			}
			continue
		}
		s.answers[answerKey(a)] = said{run.ID, a.Digest}
		if a.Kind == thread.AnswerCall {
			s.calls = without(s.calls, member, a.ID)
		}
	}
	return nil
}

// settle notes what waits once a run has ended.
func (s *shelf) settle(run thread.Run) {
	if run.End.Finished() {
		s.pending, s.calls = run.Pending, run.Calls
		return
	}
	for key, old := range s.answers {
		if old.run == run.ID && key[0] == 'i' {
			delete(s.answers, key)
		}
	}
}

// open is what waits and is not answered by the active run.
func (s *shelf) waiting() []byte {
	pending := s.pending
	if active := s.open(); active != nil {
		for key, a := range s.answers {
			if id, ok := cutPrefix(key, string(thread.AnswerInterrupt)+":"); ok && a.run == active.ID {
				pending = without(pending, "id", id)
			}
		}
	}
	return pending
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return "", false
	}
	return s[len(prefix):], true
}

func (a *archive) Answered(ctx context.Context, id thread.ID, answers []thread.Answer) error {
	return a.call(ctx, "Answered", func() error {
		s := a.threads[id]
		for _, answer := range answers {
			if s == nil {
				return nil
			}
			if old, ok := s.answers[answerKey(answer)]; ok && (answer.Late(old.digest) || answer.Last) {
				return &thread.AnsweredError{Answer: answer, RunID: old.run}
			}
		}
		return nil
	})
}

func (a *archive) NextRun(ctx context.Context, id thread.ID, after uint64) (next thread.Run, err error) {
	err = a.call(ctx, "NextRun", func() error {
		if s := a.threads[id]; s != nil {
			for _, v := range s.runs {
				if v.Number > after && !v.Ended.IsZero() {
					next = v.Run
					return nil
				}
			}
		}
		return thread.ErrNotFound
	})
	return next, err
}

func (a *archive) Discard(ctx context.Context, id thread.ID, run thread.RunID, messages []string) error {
	return a.call(ctx, "Discard", func() error {
		v, err := a.threads[id].find(run)
		if err != nil {
			return err
		}
		if v.Ended.IsZero() {
			return thread.ErrUnfinished
		}
		v.Discarded = true
		for _, m := range messages {
			delete(a.threads[id].seen, m)
		}
		a.threads[id].pending, a.threads[id].calls = nil, nil
		return nil
	})
}

func (a *archive) Enqueue(ctx context.Context, q thread.Queued, limit int) (thread.Queued, error) {
	err := a.call(ctx, "Enqueue", func() error {
		s := a.threads[q.Thread]
		if s == nil {
			return thread.ErrNotFound
		}
		if _, err := s.find(q.RunID); err == nil {
			return thread.ErrRunIDUsed
		}
		for i, w := range s.queue {
			if w.RunID == q.RunID {
				q, q.Place = w, i+1
				return nil
			}
		}
		if len(s.queue) >= limit {
			return thread.ErrQueueFull
		}
		q.After, q.Since, q.Place = s.last, time.Now(), len(s.queue)+1
		s.queue = append(s.queue, q)
		return nil
	})
	return q, err
}

func (a *archive) NextQueued(ctx context.Context, id thread.ID) (next thread.Queued, err error) {
	err = a.call(ctx, "NextQueued", func() error {
		if s := a.threads[id]; s != nil && len(s.queue) > 0 {
			next = s.queue[0]
			return nil
		}
		return thread.ErrNotFound
	})
	return next, err
}

func (a *archive) Queue(ctx context.Context, id thread.ID) (list []thread.Queued, err error) {
	err = a.call(ctx, "Queue", func() error {
		if s := a.threads[id]; s != nil {
			list = slices.Clone(s.queue)
		}
		return nil
	})
	return list, err
}

func (a *archive) Dequeue(ctx context.Context, id thread.ID, run thread.RunID) error {
	return a.call(ctx, "Dequeue", func() error {
		if !a.threads[id].leave(run) {
			return thread.ErrNotFound
		}
		return nil
	})
}

// leave takes a run out of the queue and tells whether it was there.
func (s *shelf) leave(run thread.RunID) bool {
	if s == nil {
		return false
	}
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(q thread.Queued) bool { return q.RunID == run })
	return len(s.queue) < before
}

func (a *archive) IdleQueues(ctx context.Context, limit int) (ids []thread.ID, err error) {
	err = a.call(ctx, "IdleQueues", func() error {
		for id, s := range a.threads {
			if len(s.queue) > 0 && s.open() == nil && len(ids) < limit {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids, err
}

// rename gives a queued run another agent.
func (a *archive) rename(id thread.ID, run thread.RunID, agent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, q := range a.threads[id].queue {
		if q.RunID == run {
			a.threads[id].queue[i].Agent = agent
		}
	}
}
