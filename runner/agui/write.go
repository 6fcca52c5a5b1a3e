package agui

import (
	"bytes"
	"encoding/json"
)

// ProtocolVersion is what threadcast declares on a RUN_STARTED that it writes itself (AG-UI 1.0, section 7).
const ProtocolVersion = "1.0"

// builder writes one JSON object, member by member.
type builder []byte

func newBuilder(eventType string) builder {
	return append(append(make(builder, 0, 128), `{"type":"`...), eventType+`"`...)
}

// raw adds a member whose value is JSON text. Nothing is added for nil.
func (b builder) raw(name string, value []byte) builder {
	if value == nil {
		return b
	}
	b = append(appendQuoted(append(b, ','), name), ':')
	return append(b, value...)
}

func (b builder) str(name, value string) builder { return b.raw(name, quoted(value)) }

func (b builder) bytes() []byte { return append(b, '}') }

// RunStarted writes the RUN_STARTED of a run whose agent sent none, with the ids and the whole of its input. The input
// is the JSON of a RunAgentInput that [ParseInput] accepts; otherwise the error is a [*MalformedError].
func RunStarted(input []byte) ([]byte, error) {
	if _, err := ParseInput(input); err != nil {
		return nil, err
	}
	return newBuilder("RUN_STARTED").
		raw("threadId", member(input, "threadId")).
		raw("runId", member(input, "runId")).
		raw("protocolVersion", quoted(ProtocolVersion)).
		raw("parentRunId", member(input, "parentRunId")).
		raw("input", compacted(input)).bytes(), nil
}

// CompleteStarted adds the input to an agent's RUN_STARTED that has none, without touching any other byte of the event
// (AG-UI 1.0, section 6.1). The space between the tokens of the input is left out. An event that has an input is
// returned as it is. The error is a [*MalformedError] if event is not a RUN_STARTED or input is not one JSON object.
func CompleteStarted(event, input []byte) ([]byte, error) {
	e, err := scanned(event)
	if err != nil {
		return nil, err
	}
	if e.typ != runStarted {
		return nil, e.malformed(fType, "section 6.1", "only RUN_STARTED carries an input")
	}
	if e.present(fInput) {
		return event, nil
	}
	if !valid(input) || !isObject(bytes.TrimLeft(input, " \t\r\n")) {
		return nil, &MalformedError{Rule: inputRule, Reason: "it is not one JSON object"}
	}
	end := bytes.LastIndexByte(event, '}')
	out := append(make([]byte, 0, len(event)+len(input)+len(`,"input":`)), event[:end]...)
	out = append(append(out, `,"input":`...), compacted(input)...)
	return append(out, event[end:]...), nil
}

// compacted takes the space between the tokens out of a well-formed JSON text.
func compacted(raw []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(raw))
	if err := json.Compact(&buf, raw); err != nil {
		return raw
	}
	return buf.Bytes()
}

// RunCancelled writes the RUN_FINISHED of a run that was stopped on purpose (AG-UI 1.0, section 8).
func RunCancelled(threadID, runID string) []byte {
	return newBuilder("RUN_FINISHED").str("threadId", threadID).str("runId", runID).
		raw("outcome", []byte(`{"type":"cancelled"}`)).bytes()
}

// RunError writes a RUN_ERROR. The message is a sentence for people; an empty code is left out.
func RunError(message, code string) []byte {
	b := newBuilder("RUN_ERROR").str("message", message)
	if code != "" {
		b = b.str("code", code)
	}
	return b.bytes()
}
