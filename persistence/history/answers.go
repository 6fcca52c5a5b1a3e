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
	err := db.Where("thread_id = ? AND kind = ? AND answer_key = ?", Text(id), string(a.Kind), messageKey(a.ID)).
		Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// takeAnswers records what the run answers of what waits on its thread, which is locked, and refuses what has been
// answered. An answer to what never waited is nobody's loss (AG-UI 1.0, section 9).
func takeAnswers(tx *gorm.DB, run thread.Run) error {
	if len(run.Answers) == 0 {
		return nil
	}
	var states []RunState
	if err := tx.Where("thread_id = ?", Text(run.Thread)).Limit(1).Find(&states).Error; err != nil {
		return err
	}
	var state RunState
	if len(states) > 0 {
		state = states[0]
	}
	var calls []string
	for _, a := range run.Answers {
		waits := waiting(state.Pending, "id", a.ID)
		if a.Kind == thread.AnswerCall {
			waits = waiting(state.PendingCalls, "toolCallId", a.ID)
		}
		if !waits {
			if err := refuseLate(tx, run.Thread, a); err != nil {
				return err
			}
			continue
		}
		row := ThreadAnswer{
			ThreadID: Text(run.Thread), Kind: string(a.Kind), AnswerKey: messageKey(a.ID), RunID: Text(run.ID), Digest: a.Digest,
		}
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return err
		}
		if a.Kind == thread.AnswerCall {
			calls = append(calls, a.ID)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	left := without(state.PendingCalls, "toolCallId", func(id string) bool { return slices.Contains(calls, id) })
	return tx.Model(&RunState{ThreadID: Text(run.Thread)}).Update("pending_calls", left).Error
}

func refuseLate(tx *gorm.DB, id thread.ID, a thread.Answer) error {
	row, err := findAnswer(tx, id, a)
	if err == nil && row != nil && a.Late(row.Digest) {
		err = &thread.AnsweredError{Answer: a, RunID: thread.RunID(row.RunID)}
	}
	return err
}

// withdrawAnswers lets the interrupts that a run answered wait again, as it came to nothing. What it said to tool calls
// stays said: its messages are a part of the thread.
func withdrawAnswers(tx *gorm.DB, run thread.Run) error {
	return tx.Where("thread_id = ? AND kind = ? AND run_id = ?", Text(run.Thread), string(thread.AnswerInterrupt), Text(run.ID)).
		Delete(&ThreadAnswer{}).Error
}

// withoutAnswered takes out of what waits on a thread what its active run answers.
func (h *History) withoutAnswered(ctx context.Context, row *threadRow) error {
	if row.Pending == "" || row.Latest.Status != statusRunning {
		return nil
	}
	var keys []string
	err := h.read(ctx).Model(&ThreadAnswer{}).
		Where("thread_id = ? AND kind = ? AND run_id = ?", row.ID, string(thread.AnswerInterrupt), row.Latest.RunID).
		Pluck("answer_key", &keys).Error
	if err == nil && len(keys) > 0 {
		row.Pending = without(row.Pending, "id", func(id string) bool { return slices.Contains(keys, messageKey(id)) })
	}
	return err
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
