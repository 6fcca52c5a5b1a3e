package agui

import "math"

// field is a member of an event that this package knows by name.
type field uint8

const (
	fType field = iota
	fThreadID
	fRunID
	fParentRunID
	fInput
	fOutcome
	fMessageID
	fRole
	fName
	fDelta
	fToolCallID
	fToolCallName
	fParentMessageID
	fContent
	fStepName
	fSubagentRunID
	fParentSubagentRunID
	fParentToolCallID
	fDescription
	fSubtype
	fEntityID
	fEncryptedValue
	fSnapshot
	fMessages
	fActivityType
	fReplace
	fPatch
	fMessage
	fCode
	fMetadata
	fTimestamp
	fRawEvent
	fieldCount
)

var fieldNames = [fieldCount]string{
	fType: "type", fThreadID: "threadId", fRunID: "runId", fParentRunID: "parentRunId", fInput: "input",
	fOutcome: "outcome", fMessageID: "messageId", fRole: "role", fName: "name", fDelta: "delta",
	fToolCallID: "toolCallId", fToolCallName: "toolCallName", fParentMessageID: "parentMessageId",
	fContent: "content", fStepName: "stepName", fSubagentRunID: "subagentRunId",
	fParentSubagentRunID: "parentSubagentRunId", fParentToolCallID: "parentToolCallId",
	fDescription: "description", fSubtype: "subtype", fEntityID: "entityId", fEncryptedValue: "encryptedValue",
	fSnapshot: "snapshot", fMessages: "messages", fActivityType: "activityType", fReplace: "replace",
	fPatch: "patch", fMessage: "message", fCode: "code", fMetadata: "metadata", fTimestamp: "timestamp",
	fRawEvent: "rawEvent",
}

var fieldsByName = func() map[string]field {
	m := make(map[string]field, fieldCount)
	for f := fType; f < fieldCount; f++ {
		m[fieldNames[f]] = f
	}
	return m
}()

// fields is a set of them.
type fields uint64

func setOf(members ...field) (s fields) {
	for _, f := range members {
		s |= 1 << f
	}
	return s
}

// span is where a value stands in the text of its event. No value stands at 0: the zero span is an absent member.
type span struct{ from, to int32 }

// event is the text of an event with the places of the members that this package knows. Names are matched exactly,
// and of a name that comes twice the last one counts, as in every JavaScript client.
type event struct {
	data  []byte
	typ   eventType
	has   fields
	extra bool // has members of other names
	spans [fieldCount]span
}

// scan reads data, which must be one JSON object with a non-empty string type.
func (e *event) scan(data []byte) error {
	if len(data) > math.MaxInt32 {
		return &MalformedError{Rule: "section 10", Reason: "it is larger than 2 GiB"}
	}
	e.data, e.has, e.extra = data, 0, false
	w := walkObject(data)
	for w.next() {
		f, known := fieldsByName[string(decode(w.key))]
		if !known {
			e.extra = true
			continue
		}
		e.has |= 1 << f
		e.spans[f] = span{int32(w.from), int32(w.from + len(w.value))}
	}
	if !w.ok {
		return &MalformedError{Rule: "section 10", Reason: "it is not one JSON object"}
	}
	name := e.raw(fType)
	if !isString(name) || len(name) == 2 {
		return &MalformedError{Field: "type", Rule: "section 10", Reason: "it must be a string that is not empty"}
	}
	e.typ = typesByName[string(decode(name))]
	return nil
}

// parse scans data and judges what it found by section 10.
func (e *event) parse(data []byte) error {
	if err := e.scan(data); err != nil {
		return err
	}
	return e.check()
}

func (e *event) present(f field) bool { return e.has&(1<<f) != 0 }

// drop makes a member count as absent.
func (e *event) drop(f field) { e.has &^= 1 << f }

// raw is the JSON text of a member, nil if it is absent.
func (e *event) raw(f field) []byte {
	if !e.present(f) {
		return nil
	}
	return e.data[e.spans[f].from:e.spans[f].to]
}

// text is the decoded text of a string member; nil if it is absent or something else.
func (e *event) text(f field) []byte {
	return decode(e.raw(f))
}

// typeName is the type as it came.
func (e *event) typeName() string {
	if e.typ != unknownType {
		return typeNames[e.typ]
	}
	return string(e.text(fType))
}

// tag says who produced the event: a subagent, or the parent agent where the member is absent.
func (e *event) tag() tag {
	if raw := e.raw(fSubagentRunID); isString(raw) {
		return tag{id: decode(raw), set: true}
	}
	return tag{}
}

// tag is a subagentRunId, which may be the empty string, or its absence.
type tag struct {
	id  []byte
	set bool
}

func (t tag) owner() owner { return owner{id: string(t.id), set: t.set} }

// owner is a tag on record. No tag is an owner too: the parent agent.
type owner struct {
	id  string
	set bool
}

func (o owner) is(t tag) bool { return o.set == t.set && o.id == string(t.id) }

func (o owner) String() string {
	if !o.set {
		return "the parent agent"
	}
	return "subagent " + short(o.id)
}
