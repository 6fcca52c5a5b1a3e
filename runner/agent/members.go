package agent

import (
	"encoding/json"
	"strings"
)

// members are the members of a JSON object, by their exact names; of a name that comes twice, the last. Everybody else who
// reads the same object sees the same then.
type members map[string]json.RawMessage

// readMembers returns nil for what is no object.
func readMembers(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// text returns a member that is a string, else nothing.
func (m members) text(name string) string {
	var s string
	_ = json.Unmarshal(m[name], &s) // what is no string stays empty
	return s
}

// objects returns the objects of a member that is a list.
func (m members) objects(name string) []members {
	var list []json.RawMessage
	_ = json.Unmarshal(m[name], &list) // what is no list has no objects
	var out []members
	for _, raw := range list {
		if o := readMembers(raw); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// content returns a message's content as text: the string, or the text parts joined in order (AG-UI 1.0, section 5.3).
func (m members) content() string {
	var b strings.Builder
	for _, part := range m.objects("content") {
		if part.text("type") == "text" {
			b.WriteString(part.text("text"))
		}
	}
	return m.text("content") + b.String() // one of the two
}
