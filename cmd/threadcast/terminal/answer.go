package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/threadcast/threadcast/web/wire"
)

// resumeEntry is an answer to an interrupt (AG-UI 1.0, section 5.6).
type resumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload,omitempty"`
}

// errYesOrNo is for whoever answers a yes-or-no question otherwise.
var errYesOrNo = errors.New("the answer is yes or no")

// answerTo makes of what somebody typed an answer to an interrupt. What has expired can only be declined.
func answerTo(interrupt fields, typed string) (resumeEntry, error) {
	typed = strings.TrimSpace(typed)
	e := resumeEntry{InterruptID: interrupt.text("id"), Status: "resolved"}
	switch {
	case expired(interrupt):
		return resumeEntry{InterruptID: e.InterruptID, Status: "cancelled"}, nil
	case asksForInput(interrupt) && typed == "":
		e.Status = "cancelled"
	case asksForInput(interrupt):
		e.Payload = payload(interrupt.object("responseSchema"), typed)
	default:
		yes, err := yesOrNo(typed)
		if err != nil {
			return e, err
		}
		e.Payload = json.RawMessage(fmt.Sprintf(`{"approved":%t}`, yes))
	}
	return e, nil
}

func yesOrNo(typed string) (bool, error) {
	switch strings.ToLower(typed) {
	case "y", "yes", "ok", "approve", "approved", "true":
		return true, nil
	case "n", "no", "decline", "declined", "false":
		return false, nil
	}
	return false, errYesOrNo
}

// asksForInput tells whether an interrupt wants more than a yes or a no.
func asksForInput(interrupt fields) bool {
	schema := interrupt.object("responseSchema")
	if schema.object("properties")["approved"] != nil {
		return false
	}
	return schema != nil || interrupt.text("reason") == "input_required"
}

// payload is what was typed, in the form that a schema asks for: JSON where it is JSON and no plain string is wanted; the
// value of the only field, where the schema is an object with one.
func payload(schema fields, typed string) json.RawMessage {
	switch properties := schema.object("properties"); {
	case schema.text("type") != "string" && json.Valid([]byte(typed)):
		return json.RawMessage(typed)
	case len(properties) == 1:
		for name := range properties {
			return json.RawMessage("{" + string(quoted(name)) + ":" + string(quoted(typed)) + "}")
		}
	}
	return quoted(typed)
}

// expired tells whether the time for an answer is over.
func expired(interrupt fields) bool {
	at, err := time.Parse(time.RFC3339, interrupt.text("expiresAt"))
	return err == nil && !at.After(time.Now())
}

// firstAnswers answers what the thread waits for before anything else is said: with what was given on the command line,
// or by asking.
func (a *asking) firstAnswers(ctx context.Context) ([]resumeEntry, error) {
	pending := a.talk.pending
	switch {
	case len(pending) == 0 && len(a.q.Answers) > 0:
		return nil, sorry("thread %s waits for no answer", line(a.q.Thread))
	case len(pending) == 0:
		return nil, nil
	case len(a.q.Answers) == 0:
		for _, p := range pending {
			a.view.labelled("asks", yellow, question(p))
		}
		return a.prompt(ctx)
	case len(a.q.Answers) != len(pending):
		return nil, sorry("thread %s waits for %d answers, and %d are given", line(a.q.Thread), len(pending), len(a.q.Answers))
	}
	var entries []resumeEntry
	for i, p := range pending {
		e, err := answerTo(p, a.q.Answers[i])
		if err != nil {
			return nil, sorry("%q: %s", a.q.Answers[i], err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// prompt asks the person at the terminal what the thread waits for. Without one it says how to answer.
func (a *asking) prompt(ctx context.Context) ([]resumeEntry, error) {
	if a.In == nil {
		a.howToAnswer()
		return nil, said{ErrWaiting}
	}
	if a.typed == nil {
		a.typed = readLines(a.In, a.gone)
	}
	var entries []resumeEntry
	for len(entries) < len(a.talk.pending) {
		p := a.talk.pending[len(entries)]
		a.endLine(a.side)
		a.write(a.side, yellow, strings.Repeat(" ", labelled)+promptFor(p))
		if err := a.flush(); err != nil {
			return nil, err
		}
		typed, err := a.typedLine(ctx)
		if err != nil {
			return nil, err
		}
		if e, err := answerTo(p, typed); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// readLines reads what is typed, until that ends or nobody waits for it any more: then gone is closed, and the read that goes
// on ends with the process.
func readLines(in io.Reader, gone <-chan struct{}) <-chan string {
	typed := make(chan string)
	go func() {
		defer close(typed)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case typed <- scanner.Text():
			case <-gone:
				return
			}
		}
	}()
	return typed
}

func promptFor(p fields) string {
	switch {
	case expired(p):
		return "the time for an answer is over; Enter declines: "
	case asksForInput(p):
		return "your answer (nothing declines): "
	}
	return "approve? [y/n] "
}

// errElsewhere ends a prompt whose question has been answered elsewhere.
var errElsewhere = errors.New("answered elsewhere")

// typedLine waits for a line, or for somebody else's answer.
func (a *asking) typedLine(ctx context.Context) (string, error) {
	var facts <-chan fact
	if a.over != nil { // it follows already
		facts = a.follower.facts
	}
	for {
		select {
		case typed, ok := <-a.typed:
			*a.side.mid = !ok // the terminal showed the line break
			if !ok {
				a.endLine(a.side)
				a.howToAnswer()
				return "", said{ErrWaiting}
			}
			return typed, nil
		case f := <-facts:
			if f.event == wire.EventEvents && len(f.step.Events) > 0 && string(f.step.RunID) != a.run {
				a.adopt(string(f.step.RunID))
				if err := a.take(ctx, f); err != nil {
					return "", err
				}
				return "", errElsewhere
			}
			if f.event == eventLost {
				a.lost = true
			}
		case err := <-a.over:
			return "", err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// adopt makes somebody else's run, which brought the answer, the one that is shown.
func (a *asking) adopt(run string) {
	a.aside("Somebody else has answered.")
	a.run, a.began, a.end = run, false, nil
}

func (a *asking) howToAnswer() {
	answers := make([]string, len(a.talk.pending))
	for i, p := range a.talk.pending {
		answers[i] = " --answer yes"
		if asksForInput(p) {
			answers[i] = " --answer VALUE"
		}
	}
	a.aside("The thread waits for an answer.\n  answer it   threadcast ask --thread " + a.target() + strings.Join(answers, ""))
}
