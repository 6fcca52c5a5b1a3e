package agui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
)

// Input is what threadcast reads of a RunAgentInput, AG-UI 1.0, section 6.
type Input struct {
	ThreadID    string
	RunID       string
	ParentRunID string   // empty if absent
	MessageIDs  []string // of messages, in order
	Resume      []Answer // to the interrupts of the run that this one continues
	Results     []Result // the tool messages among messages, in order
	Tools       []string // the names of tools that the application executes

	title string
}

// Answer is one entry of an input's resume.
type Answer struct {
	InterruptID string
	Status      string // "resolved" or "cancelled"
}

// Result is a tool message of an input: what the application, or an agent before, answered to a tool call.
type Result struct {
	MessageID  string
	ToolCallID string
	Digest     string // of the content; results with equal texts have equal digests
	Last       bool   // only other tool messages follow it: it is news, rather than a part of the story so far
}

// Title returns the beginning of the first text of a user message, at most 80 characters on one line; empty
// if there is none. It is valid UTF-8 without control characters.
func (in Input) Title() string { return in.title }

// ParseInput reads a RunAgentInput and judges what threadcast relies on: one object with string threadId and runId;
// messages an array of objects with string id and string role, known or not; tools and context arrays of objects if
// present; resume, if present, an array of {interruptId, status} with status resolved or cancelled, and no interrupt
// twice (section 9). Unknown members are fine. The error is a [*MalformedError] that names the member, such as messages[3].id.
func ParseInput(raw []byte) (Input, error) {
	var in Input
	members := map[string][]byte{}
	w := walkObject(raw)
	for w.next() {
		members[text(w.key)] = w.value
	}
	if !w.ok {
		return Input{}, badInput("", "it is not one JSON object")
	}
	for _, m := range []struct {
		name     string
		into     *string
		optional bool
	}{
		{"threadId", &in.ThreadID, false}, {"runId", &in.RunID, false},
		{"parentRunId", &in.ParentRunID, true}, {"protocolVersion", new(string), true},
	} {
		value, present := members[m.name]
		if !present && m.optional {
			continue
		}
		if !isString(value) {
			return Input{}, badInput(m.name, "it must be a string")
		}
		*m.into = text(value)
	}
	for _, read := range []func(map[string][]byte) error{in.readMessages, in.readLists, in.readResume} {
		if err := read(members); err != nil {
			return Input{}, err
		}
	}
	return in, nil
}

func badInput(field, format string, args ...any) error {
	return &MalformedError{Field: field, Rule: inputRule, Reason: fmt.Sprintf(format, args...)}
}

func (in *Input) readMessages(members map[string][]byte) error {
	list, present := members["messages"]
	if !present || !isArray(list) {
		return badInput("messages", "it must be an array")
	}
	for w := walk(list); w.next(); {
		at := fmt.Sprintf("messages[%d]", len(in.MessageIDs))
		if !isObject(w.value) {
			return badInput(at, "it must be an object")
		}
		m := readMessage(w.value)
		if !isString(m.id) {
			return badInput(at+".id", "it must be a string")
		}
		if !isString(m.role) {
			return badInput(at+".role", "it must be a string")
		}
		in.MessageIDs = append(in.MessageIDs, text(m.id))
		in.readResult(w.value)
		if in.title == "" && text(m.role) == "user" {
			in.title = title(member(w.value, "content"))
		}
	}
	return nil
}

// readResult notes the message if it is a tool message, and that those before it are not the last if it is not.
func (in *Input) readResult(m []byte) {
	if text(member(m, "role")) != "tool" {
		for i := len(in.Results) - 1; i >= 0 && in.Results[i].Last; i-- {
			in.Results[i].Last = false
		}
		return
	}
	if call := member(m, "toolCallId"); isString(call) {
		sum := sha256.Sum256(compacted(member(m, "content")))
		in.Results = append(in.Results, Result{
			MessageID: text(member(m, "id")), ToolCallID: text(call), Digest: hex.EncodeToString(sum[:]), Last: true,
		})
	}
}

func (in *Input) readLists(members map[string][]byte) error {
	for _, name := range []string{"tools", "context"} {
		list, present := members[name]
		if !present {
			continue
		}
		if !isArray(list) {
			return badInput(name, "it must be an array")
		}
		i := 0
		for w := walk(list); w.next(); i++ {
			if !isObject(w.value) {
				return badInput(fmt.Sprintf("%s[%d]", name, i), "it must be an object")
			}
			if tool := member(w.value, "name"); name == "tools" && isString(tool) {
				in.Tools = append(in.Tools, text(tool))
			}
		}
	}
	return nil
}

func (in *Input) readResume(members map[string][]byte) error {
	list, present := members["resume"]
	if !present {
		return nil
	}
	if !isArray(list) {
		return badInput("resume", "it must be an array")
	}
	answers := map[string]bool{}
	for w := walk(list); w.next(); {
		at := fmt.Sprintf("resume[%d]", len(in.Resume))
		if !isObject(w.value) {
			return badInput(at, "it must be an object")
		}
		id, status := member(w.value, "interruptId"), member(w.value, "status")
		if !isString(id) {
			return badInput(at+".interruptId", "it must be a string")
		}
		if !isString(status) || text(status) != "resolved" && text(status) != "cancelled" {
			return badInput(at+".status", "it must be resolved or cancelled")
		}
		if answers[text(id)] {
			return badInput(at+".interruptId", "it is the second answer to interrupt %s", short(decode(id)))
		}
		answers[text(id)] = true
		in.Resume = append(in.Resume, Answer{InterruptID: text(id), Status: text(status)})
	}
	return nil
}

// maxTitle is the length of a title, in characters.
const maxTitle = 80

// title makes one line of a message's content: a string, or the text parts of a list.
func title(content []byte) string {
	var l line
	switch {
	case isString(content):
		l.add(text(content))
	case isArray(content):
		for w := walk(content); w.next(); {
			if part := member(w.value, "text"); isString(part) {
				l.add(text(part))
				l.gap = true
			}
		}
	}
	return l.String()
}

// line gathers words up to maxTitle characters.
type line struct {
	strings.Builder
	length int
	gap    bool // a space is due before the next word
}

func (l *line) add(s string) {
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			l.gap = true
			continue
		}
		if l.gap && l.length > 0 && l.length < maxTitle-1 {
			l.WriteByte(' ')
			l.length++
		} else if l.gap && l.length == maxTitle-1 {
			l.length = maxTitle // no room for a space and a word
		}
		l.gap = false
		if l.length >= maxTitle {
			return
		}
		l.WriteRune(r)
		l.length++
	}
}

// ReduceInput returns the input without the messages whose id is known. Everything else, and every message that
// stays, is as it was, byte for byte; where no message is known that is raw itself. The error is a [*MalformedError]
// if raw is not an object whose messages are an array of objects with string ids.
func ReduceInput(raw []byte, known func(id string) bool) ([]byte, error) {
	from, to := 0, 0
	w := walkObject(raw)
	for w.next() {
		if string(decode(w.key)) == "messages" {
			from, to = w.from, w.from+len(w.value)
		}
	}
	if !w.ok {
		return nil, badInput("", "it is not one JSON object")
	}
	messages := raw[from:to]
	if !isArray(messages) {
		return nil, badInput("messages", "it must be an array")
	}
	kept, all, err := unknownMessages(messages, known)
	if err != nil {
		return nil, err
	}
	if all {
		return raw, nil
	}
	out := append(make([]byte, 0, len(raw)), raw[:from]...)
	out = append(append(append(out, '['), bytes.Join(kept, []byte{','})...), ']')
	return append(out, raw[to:]...), nil
}

// unknownMessages returns the messages whose id is not known, and tells whether that is all of them.
func unknownMessages(messages []byte, known func(id string) bool) (kept [][]byte, all bool, err error) {
	i := 0
	for w := walk(messages); w.next(); i++ {
		var m message
		if isObject(w.value) {
			m = readMessage(w.value)
		}
		if !isString(m.id) {
			return nil, false, badInput(fmt.Sprintf("messages[%d].id", i), "it must be a string")
		}
		if !known(text(m.id)) {
			kept = append(kept, w.value)
		}
	}
	return kept, len(kept) == i, nil
}
