package copilotkit

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/threadcast/threadcast/runner/agui"
)

// Older returns an event of AG-UI 1.0 as a client of AG-UI 0.0.59 takes it, or nil if it cannot. CopilotKit's clients hold
// events that come as SSE against the schema of that version, and take one that does not fit for the end of the stream.
// What fits is returned as it is.
func Older(event []byte) []byte {
	h, err := agui.ParseHeader(event)
	if err != nil || !known[h.Type] {
		return nil
	}
	switch h.Type {
	case "RUN_FINISHED":
		return agui.MapMembers(event, olderOutcome)
	case "TOOL_CALL_RESULT":
		return agui.MapMembers(event, textContent)
	case "MESSAGES_SNAPSHOT":
		return agui.MapMembers(event, olderMessages)
	case "RUN_STARTED":
		return agui.MapMembers(event, func(name string, value []byte) []byte {
			if name == "input" {
				return agui.MapMembers(value, olderMessages)
			}
			return value
		})
	}
	return event
}

// known are the types of AG-UI 0.0.59.
var known = func() map[string]bool {
	types := map[string]bool{}
	for _, name := range strings.Fields(`
		RUN_STARTED RUN_FINISHED RUN_ERROR STEP_STARTED STEP_FINISHED RAW CUSTOM
		TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TEXT_MESSAGE_CHUNK
		TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_CHUNK TOOL_CALL_RESULT
		THINKING_START THINKING_END THINKING_TEXT_MESSAGE_START THINKING_TEXT_MESSAGE_CONTENT THINKING_TEXT_MESSAGE_END
		STATE_SNAPSHOT STATE_DELTA MESSAGES_SNAPSHOT ACTIVITY_SNAPSHOT ACTIVITY_DELTA
		REASONING_START REASONING_END REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END
		REASONING_MESSAGE_CHUNK REASONING_ENCRYPTED_VALUE SUBAGENT_STARTED SUBAGENT_FINISHED SUBAGENT_ERROR`) {
		types[name] = true
	}
	return types
}()

// olderOutcome leaves out an outcome that has come since: a run that was stopped reads as one that has finished.
func olderOutcome(name string, value []byte) []byte {
	if name != "outcome" {
		return value
	}
	if kind := member(value, "type"); kind != "success" && kind != "interrupt" {
		return nil
	}
	return value
}

// olderMessages makes the messages of a snapshot, or of an input, fit.
func olderMessages(name string, value []byte) []byte {
	if name == "messages" {
		return agui.MapElements(value, olderMessage)
	}
	return value
}

func olderMessage(message []byte) []byte {
	switch member(message, "role") {
	case "tool":
		return agui.MapMembers(message, textContent)
	case "user":
		return agui.MapMembers(message, func(name string, value []byte) []byte {
			if name == "content" {
				return agui.MapElements(value, olderPart)
			}
			return value
		})
	case "developer", "system", "assistant", "activity", "reasoning":
		return message
	}
	return nil
}

// olderPart leaves out a part of a message whose kind, or whose source, has come since.
func olderPart(part []byte) []byte {
	switch member(part, "type") {
	case "text", "binary":
		return part
	case "image", "audio", "video", "document":
		var p struct {
			Source json.RawMessage `json:"source"`
		}
		if json.Unmarshal(part, &p) == nil {
			if kind := member(p.Source, "type"); kind == "data" || kind == "url" {
				return part
			}
		}
	}
	return nil
}

// textContent makes a text of a content that is a list of parts: its text parts, one after the other.
func textContent(name string, value []byte) []byte {
	if name != "content" || !bytes.HasPrefix(value, []byte{'['}) {
		return value
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(value, &parts) != nil {
		return value
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			all.WriteString(p.Text)
		}
	}
	out, err := json.Marshal(all.String())
	if err != nil {
		return value
	}
	return out
}

// member is a text among an object's members; empty if there is none.
func member(object []byte, name string) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

// Quiet returns a RUN_ERROR with the code abort, and any other event as it is: a client that takes up a thread again would
// show what failed long ago as if it failed now.
func Quiet(event []byte) []byte {
	if h, err := agui.ParseHeader(event); err != nil || h.Type != "RUN_ERROR" {
		return event
	}
	return agui.WithMember(event, "code", []byte(`"abort"`))
}
