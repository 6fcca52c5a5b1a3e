package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// answers are what the order says to what may wait on its thread. A tool message that the thread has seen, and that
// others follow, is a part of the story so far.
func (o order) answers(seen func(id string) bool) []thread.Answer {
	if o.queue {
		return nil
	}
	var answers []thread.Answer
	for _, a := range o.in.Resume {
		answers = append(answers, thread.Answer{Kind: thread.AnswerInterrupt, ID: a.InterruptID})
	}
	for _, r := range o.in.Results {
		if fresh := !seen(r.MessageID); fresh || r.Last {
			answers = append(answers, thread.Answer{
				Kind: thread.AnswerCall, ID: r.ToolCallID, Digest: r.Digest, New: fresh, Last: r.Last,
			})
		}
	}
	return answers
}

// checkExpiry refuses to resolve what may only be cancelled by now (AG-UI 1.0, section 9).
func (r acceptor) checkExpiry(ctx context.Context, o order) error {
	if len(o.in.Resume) == 0 || o.queue {
		return nil
	}
	th, err := r.Records.Thread(ctx, o.Thread)
	if errors.Is(err, thread.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up what waits on thread %s: %w", o.Thread, err)
	}
	now := time.Now()
	for _, a := range o.in.Resume {
		at, found := expiry(th.Pending, a.InterruptID)
		if found && a.Status == "resolved" && !at.After(now) {
			return fmt.Errorf("%w: interrupt %s expired at %s; it can only be cancelled",
				thread.ErrBadInput, a.InterruptID, at.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// expiry reads when an interrupt expires; found is false if it does not, or not at a time that can be read.
func expiry(pending []byte, id string) (at time.Time, found bool) {
	var interrupts []map[string]json.RawMessage
	if json.Unmarshal(pending, &interrupts) != nil {
		return at, false
	}
	for _, i := range interrupts {
		var name, text string
		if json.Unmarshal(i["id"], &name) != nil || name != id || json.Unmarshal(i["expiresAt"], &text) != nil {
			continue
		}
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02"} {
			if at, err := time.Parse(layout, text); err == nil {
				return at, true
			}
		}
	}
	return at, false
}
