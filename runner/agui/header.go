package agui

// Header is what threadcast reads of an event. An absent member and an empty one are both the empty string here;
// [Header.Has] tells them apart. A member that is not a string is empty, which for the thirty-one known types
// only happens where the type has no such string member.
type Header struct {
	Type            string
	ThreadID        string
	RunID           string
	ParentRunID     string
	MessageID       string
	ToolCallID      string
	ToolCallName    string
	ParentMessageID string
	StepName        string
	SubagentRunID   string
	Role            string
	Name            string
	Subtype         string
	EntityID        string

	has fields
}

// Has tells whether the event has the member of that name, such as "delta". Only names of AG-UI 1.0 that
// this package reads are known to it.
func (h Header) Has(name string) bool {
	f, known := fieldsByName[name]
	return known && h.has&(1<<f) != 0
}

// ParseHeader reads what threadcast needs of an event, in one pass that also judges the whole text. The event must be
// one JSON object with a non-empty string type, and the members of the known types that tracking uses must be there
// with the right JSON type (AG-UI 1.0, section 10); otherwise the error is a [*MalformedError]. Names are matched
// exactly, and the last of two counts. Unknown types, to which the retired THINKING_* belong, and unknown members
// are fine.
func ParseHeader(data []byte) (Header, error) {
	var e event
	if err := e.parse(data); err != nil {
		return Header{}, err
	}
	return Header{
		Type:            e.typeName(),
		ThreadID:        string(e.text(fThreadID)),
		RunID:           string(e.text(fRunID)),
		ParentRunID:     string(e.text(fParentRunID)),
		MessageID:       string(e.text(fMessageID)),
		ToolCallID:      string(e.text(fToolCallID)),
		ToolCallName:    string(e.text(fToolCallName)),
		ParentMessageID: string(e.text(fParentMessageID)),
		StepName:        string(e.text(fStepName)),
		SubagentRunID:   string(e.text(fSubagentRunID)),
		Role:            string(e.text(fRole)),
		Name:            string(e.text(fName)),
		Subtype:         string(e.text(fSubtype)),
		EntityID:        string(e.text(fEntityID)),
		has:             e.has,
	}, nil
}
