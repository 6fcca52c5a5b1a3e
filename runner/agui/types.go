package agui

// eventType is one of the thirty-one types of AG-UI 1.0, section 4, or unknownType.
type eventType uint8

const (
	unknownType eventType = iota
	runStarted
	runFinished
	runError
	stepStarted
	stepFinished
	textStart
	textContent
	textEnd
	textChunk
	callStart
	callArgs
	callEnd
	callChunk
	callResult
	spanStart
	spanEnd
	thoughtStart
	thoughtContent
	thoughtEnd
	thoughtChunk
	encryptedValue
	stateSnapshot
	stateDelta
	messagesSnapshot
	activitySnapshot
	activityDelta
	subagentStarted
	subagentFinished
	subagentError
	rawEvent
	customEvent
	typeCount
)

var typeNames = [typeCount]string{
	runStarted: "RUN_STARTED", runFinished: "RUN_FINISHED", runError: "RUN_ERROR",
	stepStarted: "STEP_STARTED", stepFinished: "STEP_FINISHED",
	textStart: "TEXT_MESSAGE_START", textContent: "TEXT_MESSAGE_CONTENT", textEnd: "TEXT_MESSAGE_END",
	textChunk: "TEXT_MESSAGE_CHUNK",
	callStart: "TOOL_CALL_START", callArgs: "TOOL_CALL_ARGS", callEnd: "TOOL_CALL_END",
	callChunk: "TOOL_CALL_CHUNK", callResult: "TOOL_CALL_RESULT",
	spanStart: "REASONING_START", spanEnd: "REASONING_END",
	thoughtStart: "REASONING_MESSAGE_START", thoughtContent: "REASONING_MESSAGE_CONTENT",
	thoughtEnd: "REASONING_MESSAGE_END", thoughtChunk: "REASONING_MESSAGE_CHUNK",
	encryptedValue: "REASONING_ENCRYPTED_VALUE",
	stateSnapshot:  "STATE_SNAPSHOT", stateDelta: "STATE_DELTA", messagesSnapshot: "MESSAGES_SNAPSHOT",
	activitySnapshot: "ACTIVITY_SNAPSHOT", activityDelta: "ACTIVITY_DELTA",
	subagentStarted: "SUBAGENT_STARTED", subagentFinished: "SUBAGENT_FINISHED", subagentError: "SUBAGENT_ERROR",
	rawEvent: "RAW", customEvent: "CUSTOM",
}

var typesByName = func() map[string]eventType {
	m := make(map[string]eventType, typeCount)
	for t := runStarted; t < typeCount; t++ {
		m[typeNames[t]] = t
	}
	return m
}()

// item is what an event opens, continues or closes.
type item uint8

const (
	textItem    item = iota // a text message
	thoughtItem             // a reasoning message
	callItem                // a tool call
	spanItem                // a reasoning span
	itemCount
)

// itemNames are written into errors for people.
var itemNames = [itemCount]string{"text message", "reasoning message", "tool call", "reasoning span"}

// shape says how the events of an item look.
type shape struct {
	id                  field // names the item
	start, content, end eventType
}

var shapes = [itemCount]shape{
	textItem:    {fMessageID, textStart, textContent, textEnd},
	thoughtItem: {fMessageID, thoughtStart, thoughtContent, thoughtEnd},
	callItem:    {fToolCallID, callStart, callArgs, callEnd},
	spanItem:    {fMessageID, spanStart, unknownType, spanEnd},
}

// chunkItem tells what a chunk event is a part of.
func chunkItem(t eventType) (item, bool) {
	switch t {
	case textChunk:
		return textItem, true
	case thoughtChunk:
		return thoughtItem, true
	case callChunk:
		return callItem, true
	}
	return 0, false
}
