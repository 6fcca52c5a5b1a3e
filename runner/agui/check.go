package agui

import "fmt"

// want is a demand of section 10 on one member.
type want struct {
	field    field
	begins   byte // what the value's text begins with: '"', '[', '{'; 0 for any
	optional bool
	nullable bool // null is read as absence: a retired shape, section 17
}

func text1(f field) want  { return want{field: f, begins: '"'} }
func text01(f field) want { return want{field: f, begins: '"', optional: true} }

var (
	parentMessage = want{field: fParentMessageID, begins: '"', optional: true, nullable: true}
	outcome       = want{field: fOutcome, begins: '{', optional: true, nullable: true}
	metadata      = want{field: fMetadata, begins: '{', optional: true}
)

// wants are the members that tracking, compaction or the reducer read, by type. What they do not read
// is not judged: a relay is not the stage in front of an application. The members of subagent events are
// judged by rules V5, V21 and V22.
var wants = [typeCount][]want{
	runStarted: {
		text1(fThreadID), text1(fRunID), text01(fParentRunID), {field: fInput, begins: '{', optional: true},
	},
	runFinished:      {text1(fThreadID), text1(fRunID), outcome},
	runError:         {text1(fMessage)},
	stepStarted:      {text1(fStepName)},
	stepFinished:     {text1(fStepName)},
	textStart:        {text1(fMessageID), text01(fRole)},
	textContent:      {text1(fMessageID), text1(fDelta)},
	textEnd:          {text1(fMessageID)},
	textChunk:        {text01(fMessageID), text01(fRole), text01(fName), text01(fDelta)},
	callStart:        {text1(fToolCallID), text1(fToolCallName), parentMessage},
	callArgs:         {text1(fToolCallID), text1(fDelta)},
	callEnd:          {text1(fToolCallID)},
	callChunk:        {text01(fToolCallID), text01(fToolCallName), parentMessage, text01(fDelta)},
	callResult:       {text1(fMessageID), text1(fToolCallID)},
	spanStart:        {text1(fMessageID)},
	spanEnd:          {text1(fMessageID)},
	thoughtStart:     {text1(fMessageID)},
	thoughtContent:   {text1(fMessageID), text1(fDelta)},
	thoughtEnd:       {text1(fMessageID)},
	thoughtChunk:     {text01(fMessageID), text01(fDelta)},
	encryptedValue:   {text1(fSubtype), text1(fEntityID)},
	stateSnapshot:    {{field: fSnapshot}},
	stateDelta:       {{field: fDelta, begins: '['}},
	messagesSnapshot: {{field: fMessages, begins: '['}},
	activitySnapshot: {text1(fMessageID)},
	activityDelta:    {text1(fMessageID), {field: fPatch, begins: '['}},
}

// check judges the members of a known type by section 10, and takes out of sight what a consumer of this
// version would not see: a null of the retired shapes, and an outcome of unknown type.
func (e *event) check() error {
	if e.typ == unknownType {
		return nil
	}
	if raw := e.raw(fSubagentRunID); raw != nil && !isString(raw) && !isNull(raw) { // null is rule V5's
		return e.malformed(fSubagentRunID, "section 10", "it must be a string")
	}
	if err := e.checkOne(metadata); err != nil {
		return err
	}
	for _, w := range wants[e.typ] {
		if err := e.checkOne(w); err != nil {
			return err
		}
	}
	return e.checkInside()
}

func (e *event) checkOne(w want) error {
	raw := e.raw(w.field)
	switch {
	case raw == nil && w.optional:
		return nil
	case raw == nil:
		return e.malformed(w.field, "section 10", "it is missing")
	case w.nullable && isNull(raw):
		e.drop(w.field)
		return nil
	case w.begins != 0 && raw[0] != w.begins:
		return e.malformed(w.field, "section 10", "it must be %s", kindNames[w.begins])
	}
	return nil
}

var kindNames = map[byte]string{'"': "a string", '[': "an array", '{': "an object"}

// checkInside looks into the values that tracking looks into.
func (e *event) checkInside() error {
	switch e.typ {
	case runStarted:
		input := e.raw(fInput)
		if input == nil {
			return nil
		}
		messages := member(input, "messages")
		if !isArray(messages) {
			return e.malformedAt("input.messages", "it must be an array")
		}
		return e.checkMessages("input.messages", messages)
	case messagesSnapshot:
		return e.checkMessages("messages", e.raw(fMessages))
	case runFinished, subagentFinished:
		return e.checkOutcome()
	}
	return nil
}

// checkMessages wants a list of objects, and an id in those whose role AG-UI 1.0 knows. A message of
// another role is not for consumers of this version.
func (e *event) checkMessages(path string, messages []byte) error {
	i := 0
	for w := walk(messages); w.next(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !isObject(w.value) {
			return e.malformedAt(at, "it must be an object")
		}
		m := readMessage(w.value)
		if m.known && !isString(m.id) {
			return e.malformedAt(at+".id", "it must be a string")
		}
	}
	return nil
}

func (e *event) checkOutcome() error {
	raw := e.raw(fOutcome)
	if raw == nil || !isObject(raw) { // what is not an object is judged by checkOne or by V22
		return nil
	}
	kind := member(raw, "type")
	if !isString(kind) {
		return e.malformedAt("outcome.type", "it must be a string")
	}
	switch name := text(kind); {
	case name == "success", e.typ == runFinished && name == "cancelled", e.typ == subagentFinished && name == "suspended":
		return nil
	case e.typ == runFinished && name == "interrupt":
		return e.checkInterrupts(member(raw, "interrupts"))
	}
	e.drop(fOutcome)
	return nil
}

func (e *event) checkInterrupts(list []byte) error {
	if !isArray(list) {
		return e.malformedAt("outcome.interrupts", "it must be an array")
	}
	i := 0
	for w := walk(list); w.next(); i++ {
		at := fmt.Sprintf("outcome.interrupts[%d]", i)
		if !isObject(w.value) {
			return e.malformedAt(at, "it must be an object")
		}
		if !isString(member(w.value, "id")) {
			return e.malformedAt(at+".id", "it must be a string")
		}
	}
	if i == 0 {
		return e.malformedAt("outcome.interrupts", "at least one is required")
	}
	return nil
}

func (e *event) malformedAt(path, reason string) error {
	return &MalformedError{Type: e.typeName(), Field: path, Rule: "section 10", Reason: reason}
}

// message is what is read of a message in a list of them.
type message struct {
	id, role, toolCalls, tag []byte // JSON text, nil if absent
	known                    bool   // its role is one of AG-UI 1.0
}

func readMessage(raw []byte) (m message) {
	for w := walkObject(raw); w.next(); {
		switch string(decode(w.key)) {
		case "id":
			m.id = w.value
		case "role":
			m.role = w.value
		case "toolCalls":
			m.toolCalls = w.value
		case "subagentRunId":
			m.tag = w.value
		}
	}
	if isString(m.role) {
		switch string(decode(m.role)) {
		case "developer", "system", "user", "assistant", "tool", "activity", "reasoning":
			m.known = true
		}
	}
	return m
}
