package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Answered returns a [thread.AnsweredError] for the first of answers that comes too late by what is recorded, and nil
// if none does.
func (h *History) Answered(ctx context.Context, id thread.ID, answers []thread.Answer) error {
	for _, a := range answers {
		row, err := findAnswer(h.read(ctx), id, a)
		if err != nil {
			return fmt.Errorf("look up answers of thread %q: %w", id, meaning(ctx, err))
		}
		if row != nil && (a.Late(row.Digest) || a.Last) {
			return &thread.AnsweredError{Answer: a, RunID: thread.RunID(row.RunID)}
		}
	}
	return nil
}

// findAnswer returns the answer that counts, or nil.
func findAnswer(db *gorm.DB, id thread.ID, a thread.Answer) (*ThreadAnswer, error) {
	var rows []ThreadAnswer
	err := db.Where("thread_id = ? AND kind = ? AND answer_key = ?", Text(id), string(a.Kind), messageKey(plain(a.ID))).
		Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// takeAnswers records what a run, or a request that waits, answers of what waits on its thread, which is locked, and
// refuses what is settled. An answer to what never waited is nobody's loss (AG-UI 1.0, section 9).
func takeAnswers(tx *gorm.DB, q thread.Queued) error {
	if len(q.Answers) == 0 {
		return nil
	}
	state, err := stateOf(tx, q.Thread)
	if err != nil {
		return err
	}
	for _, a := range q.Answers {
		row, err := findAnswer(tx, q.Thread, a)
		if err != nil {
			return err
		}
		switch {
		case row == nil && !state.waits(a), row != nil && row.RunID == Text(q.RunID):
			continue
		case row != nil && (q.Replaces == "" || row.RunID != Text(q.Replaces)):
			if a.Late(row.Digest) {
				return &thread.AnsweredError{Answer: a, RunID: thread.RunID(row.RunID)}
			}
			continue
		}
		if err := noteAnswer(tx, q.Thread, q.RunID, a); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is the thread's run_state, the zero one if there is none.
func stateOf(tx *gorm.DB, id thread.ID) (state RunState, err error) {
	var rows []RunState
	err = tx.Where("thread_id = ?", Text(id)).Limit(1).Find(&rows).Error
	if len(rows) > 0 {
		state = rows[0]
	}
	return state, err
}

// waits tells whether what a answers waits, whether it has an answer or not.
func (s RunState) waits(a thread.Answer) bool {
	if a.Kind == thread.AnswerCall {
		return waiting(s.PendingCalls, callID, a.ID)
	}
	return waiting(s.Pending, interruptID, a.ID)
}

// The members that name what waits.
const (
	interruptID = "id"
	callID      = "toolCallId"
)

func noteAnswer(tx *gorm.DB, id thread.ID, run thread.RunID, a thread.Answer) error {
	row := ThreadAnswer{
		ThreadID: Text(id), Kind: string(a.Kind), AnswerKey: messageKey(plain(a.ID)), RunID: Text(run), Digest: a.Digest,
	}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// settle notes that what waited, and has no answer, waits no more, now that RUN_FINISHED has come; and that what it
// raises has no answer yet.
func settle(tx *gorm.DB, run thread.Run) error {
	state, err := stateOf(tx, run.Thread)
	if err != nil {
		return err
	}
	for _, k := range []struct {
		kind             thread.AnswerKind
		member, old, now string
	}{
		{thread.AnswerInterrupt, interruptID, state.Pending, string(run.Pending)},
		{thread.AnswerCall, callID, state.PendingCalls, string(run.Calls)},
	} {
		for _, o := range elements(k.old) {
			past := ThreadAnswer{
				ThreadID: Text(run.Thread), Kind: string(k.kind), AnswerKey: messageKey(named(o, k.member)), RunID: Text(run.ID),
			}
			if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&past).Error; err != nil {
				return err
			}
		}
		for _, o := range elements(k.now) {
			err := tx.Where("thread_id = ? AND kind = ? AND answer_key = ?",
				Text(run.Thread), string(k.kind), messageKey(named(o, k.member))).Delete(&ThreadAnswer{}).Error
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// withdrawAnswers lets the interrupts that a run answered wait again, as it came to nothing. What it said to tool calls
// stays said: its messages are a part of the thread.
func withdrawAnswers(tx *gorm.DB, run thread.Run) error {
	return tx.Where("thread_id = ? AND kind = ? AND run_id = ?", Text(run.Thread), string(thread.AnswerInterrupt), Text(run.ID)).
		Delete(&ThreadAnswer{}).Error
}

// withoutAnswered takes out of what waits on a thread what has its answer: from the active run, or from a request that
// waits for its turn.
func (h directory) withoutAnswered(ctx context.Context, row *threadRow) (err error) {
	row.Pending, err = h.unanswered(ctx, row.ID, thread.AnswerInterrupt, row.Pending)
	if err == nil {
		row.PendingCalls, err = h.unanswered(ctx, row.ID, thread.AnswerCall, row.PendingCalls)
	}
	return err
}

func (h directory) unanswered(ctx context.Context, id Text, kind thread.AnswerKind, list string) (string, error) {
	member := interruptID
	if kind == thread.AnswerCall {
		member = callID
	}
	var ids []string
	for _, o := range elements(list) {
		ids = append(ids, named(o, member))
	}
	answered := map[string]bool{}
	for keys := range slices.Chunk(messageKeys(ids), chunk) {
		var found []string
		err := h.read(ctx).Model(&ThreadAnswer{}).
			Where("thread_id = ? AND kind = ? AND answer_key IN ?", id, string(kind), keys).Pluck("answer_key", &found).Error
		if err != nil {
			return list, err
		}
		for _, key := range found {
			answered[key] = true
		}
	}
	if len(answered) == 0 {
		return list, nil
	}
	return without(list, member, func(id string) bool { return answered[messageKey(id)] }), nil
}

// elements are the values of a JSON array, as they are.
func elements(list string) []json.RawMessage {
	var values []json.RawMessage
	if list == "" || json.Unmarshal([]byte(list), &values) != nil {
		return nil
	}
	return values
}

// named is the text of an object's member of exactly that name; half of a surrogate pair is U+FFFD in it.
func named(object json.RawMessage, name string) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

// waiting tells whether the list has an object whose member name is id.
func waiting(list, name, id string) bool {
	return slices.ContainsFunc(elements(list), func(o json.RawMessage) bool { return named(o, name) == plain(id) })
}

// without is the list without the objects whose member name is one of those; empty if none is left.
func without(list, name string, those func(id string) bool) string {
	left := slices.DeleteFunc(elements(list), func(o json.RawMessage) bool { return those(named(o, name)) })
	if len(left) == 0 {
		return ""
	}
	texts := make([][]byte, len(left))
	for i, o := range left {
		texts[i] = o
	}
	return "[" + string(bytes.Join(texts, []byte(","))) + "]"
}

// plain is an id as encoding/json reads it.
func plain(id string) string {
	return string([]rune(id))
}
