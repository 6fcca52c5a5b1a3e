package copilotkit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// Clean returns the messages of a RunAgentInput without what the delivery of events left on them: the members of their
// metadata, and of their tool calls', that begin with cpki_. Everything else stays byte for byte.
func Clean(messages []byte) []byte {
	return agui.MapElements(messages, cleanMessage)
}

func cleanMessage(message []byte) []byte {
	return agui.MapMembers(message, func(name string, value []byte) []byte {
		switch name {
		case "metadata":
			return cleanMetadata(value)
		case "toolCalls":
			return agui.MapElements(value, cleanMessage)
		}
		return value
	})
}

// cleanMetadata returns nil for metadata of which nothing is left.
func cleanMetadata(metadata []byte) []byte {
	dropped := false
	out := agui.MapMembers(metadata, func(name string, value []byte) []byte {
		if strings.HasPrefix(name, "cpki_") {
			dropped = true
			return nil
		}
		return value
	})
	if dropped && string(out) == "{}" {
		return nil
	}
	return out
}

// Envelope is a request of a client that sends all its requests to one address.
type Envelope struct {
	Method string `json:"method"`
	Params struct {
		AgentID    string `json:"agentId"`
		ThreadID   string `json:"threadId"`
		Path       string `json:"path"`
		HTTPMethod string `json:"httpMethod"`
	} `json:"params"`
	Body json.RawMessage `json:"body"`
}

// ParseEnvelope reads one; the error is a [thread.ErrBadInput].
func ParseEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(body, &e); err != nil || e.Method == "" {
		return e, fmt.Errorf("%w: the body is not a request with a method", thread.ErrBadInput)
	}
	return e, nil
}
