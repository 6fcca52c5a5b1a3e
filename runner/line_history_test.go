package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// answer records what a run, or a request that waits, answers, or refuses it.
func (s *shelf) answer(q thread.Queued) error {
	for _, a := range q.Answers {
		list, member := s.pending, "id"
		if a.Kind == thread.AnswerCall {
			list, member = s.calls, "toolCallId"
		}
		old, there := s.answers[answerKey(a)]
		switch {
		case !there && !waits(list, member, a.ID), there && old.run == q.RunID:
			continue
		case there && (q.Replaces == "" || old.run != q.Replaces):
			if a.Late(old.digest) {
				return &thread.AnsweredError{Answer: a, RunID: old.run}
			}
			continue
		}
		s.answers[answerKey(a)] = said{q.RunID, a.Digest}
	}
	return nil
}

// each calls fn with the keys of what a list of what waits has.
func each(kind thread.AnswerKind, member string, list []byte, fn func(key string)) {
	var objects []map[string]any
	_ = json.Unmarshal(list, &objects)
	for _, o := range objects {
		fn(answerKey(thread.Answer{Kind: kind, ID: fmt.Sprint(o[member])}))
	}
}

// settle notes what waits once a run has ended.
func (s *shelf) settle(run thread.Run) {
	if !run.End.Finished() {
		s.withdraw(run.ID, "i")
		return
	}
	past := func(key string) {
		if _, there := s.answers[key]; !there {
			s.answers[key] = said{run: run.ID}
		}
	}
	each(thread.AnswerInterrupt, "id", s.pending, past)
	each(thread.AnswerCall, "toolCallId", s.calls, past)
	s.pending, s.calls = run.Pending, run.Calls
	raised := func(key string) { delete(s.answers, key) }
	each(thread.AnswerInterrupt, "id", s.pending, raised)
	each(thread.AnswerCall, "toolCallId", s.calls, raised)
}

// withdraw forgets the answers of a run whose keys begin so.
func (s *shelf) withdraw(run thread.RunID, prefix string) {
	for key, old := range s.answers {
		if old.run == run && strings.HasPrefix(key, prefix) {
			delete(s.answers, key)
		}
	}
}

// unanswered is what of a list has no answer.
func (s *shelf) unanswered(kind thread.AnswerKind, member string, list []byte) []byte {
	each(kind, member, list, func(key string) {
		if _, there := s.answers[key]; there {
			id, _ := strings.CutPrefix(key, string(kind)+":")
			list = without(list, member, id)
		}
	})
	return list
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
		s := a.threads[id]
		s.withdraw(run, "")
		s.pending, s.calls = nil, nil
		for _, before := range s.runs {
			if !before.Discarded && before.End.Finished() {
				s.pending, s.calls = before.Pending, before.Calls
			}
		}
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
				if q.Replaces != "" {
					s.queue[i].Replaces = q.Replaces
				}
				q, q.Place = s.queue[i], i+1
				return nil
			}
		}
		if len(s.queue) >= limit && !q.Front {
			return thread.ErrQueueFull
		}
		if err := s.answer(q); err != nil {
			return err
		}
		at := len(s.queue)
		if q.Front {
			at = 0
			for at < len(s.queue) && s.queue[at].Front {
				at++
			}
		}
		q.After, q.Since, q.Place = s.last, time.Now(), at+1
		s.queue = slices.Insert(s.queue, at, q)
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
		a.threads[id].withdraw(run, "")
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
