package copilotkit

import "encoding/json"

// inspected is a message as the inspector shows it.
type inspected struct {
	inspectedMessage
	ToolCalls []inspectedCall `json:"toolCalls,omitempty"`
}

type inspectedMessage struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Role       json.RawMessage `json:"role,omitempty"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCallID json.RawMessage `json:"toolCallId,omitempty"`
	Activity   json.RawMessage `json:"activityType,omitempty"`
}

type inspectedCall struct {
	ID   json.RawMessage `json:"id,omitempty"`
	Name json.RawMessage `json:"name,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

// InspectedMessages turns messages of AG-UI, a JSON array, into those that the inspector of these clients shows. Of what it
// cannot read nothing is shown.
func InspectedMessages(messages []byte) []byte {
	var in []json.RawMessage
	_ = json.Unmarshal(messages, &in)
	out := make([]inspected, 0, len(in))
	for _, m := range in {
		var shown inspected
		var calls struct {
			ToolCalls []struct {
				ID       json.RawMessage `json:"id"`
				Function struct {
					Name      json.RawMessage `json:"name"`
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"toolCalls"`
		}
		if json.Unmarshal(m, &shown.inspectedMessage) != nil {
			continue
		}
		_ = json.Unmarshal(m, &calls)
		for _, c := range calls.ToolCalls {
			shown.ToolCalls = append(shown.ToolCalls, inspectedCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
		}
		out = append(out, shown)
	}
	return text(out)
}
