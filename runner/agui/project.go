package agui

// ProjectInput turns the messages of a RUN_STARTED's input into events, for readers that only know events: text, tool
// calls and results, in their order, behind the RUN_STARTED, whose input then lacks them. Messages that events
// cannot say (content that is not text, roles of other kinds) stay in the input. This is how records before 1.0
// held them (AG-UI 1.0, section 6.1). Any other event is returned alone, as it is.
func ProjectInput(event []byte) [][]byte {
	e, err := scanned(event)
	if err != nil || e.typ != runStarted || !isObject(e.raw(fInput)) {
		return [][]byte{event}
	}
	input := e.raw(fInput)
	projected := map[string]bool{}
	out := [][]byte{event}
	for w := walk(member(input, "messages")); w.next(); {
		if !isObject(w.value) {
			continue
		}
		if events := projectMessage(w.value); events != nil {
			projected[text(member(w.value, "id"))] = true
			out = append(out, events...)
		}
	}
	rest, err := ReduceInput(input, func(id string) bool { return projected[id] })
	if err != nil || len(projected) == 0 {
		return [][]byte{event}
	}
	out[0] = splice(&e, change{fInput, rest})
	return out
}

// projectMessage returns the events that say all of a message; nil if there are none that do.
func projectMessage(m []byte) [][]byte {
	id, content := member(m, "id"), member(m, "content")
	if !isString(id) {
		return nil
	}
	role := text(member(m, "role"))
	switch role {
	case "developer", "system", "user", "assistant":
	case "tool":
		if !isString(content) || !isString(member(m, "toolCallId")) {
			return nil
		}
		return [][]byte{newBuilder("TOOL_CALL_RESULT").raw("messageId", id).
			raw("toolCallId", member(m, "toolCallId")).raw("content", content).str("role", "tool").bytes()}
	default:
		return nil
	}
	var out [][]byte
	if content != nil && !isString(content) {
		return nil
	}
	if len(content) > len(`""`) {
		out = append(out,
			newBuilder("TEXT_MESSAGE_START").raw("messageId", id).str("role", role).bytes(),
			newBuilder("TEXT_MESSAGE_CONTENT").raw("messageId", id).raw("delta", content).bytes(),
			newBuilder("TEXT_MESSAGE_END").raw("messageId", id).bytes())
	}
	for w := walk(member(m, "toolCalls")); role == "assistant" && w.next(); {
		out = append(out, projectCall(id, w.value)...)
	}
	return out
}

func projectCall(parent, call []byte) [][]byte {
	if !isObject(call) || !isObject(member(call, "function")) {
		return nil
	}
	id, function := member(call, "id"), member(call, "function")
	if !isString(id) || !isString(member(function, "name")) || !isString(member(function, "arguments")) {
		return nil
	}
	return [][]byte{
		newBuilder("TOOL_CALL_START").raw("toolCallId", id).raw("toolCallName", member(function, "name")).
			raw("parentMessageId", parent).bytes(),
		newBuilder("TOOL_CALL_ARGS").raw("toolCallId", id).raw("delta", member(function, "arguments")).bytes(),
		newBuilder("TOOL_CALL_END").raw("toolCallId", id).bytes(),
	}
}
