package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The events of Phoenix Channels themselves.
const (
	EventJoin      = "phx_join"
	EventLeave     = "phx_leave"
	EventReply     = "phx_reply"
	EventClose     = "phx_close"
	EventError     = "phx_error"
	EventHeartbeat = "heartbeat"
	TopicPhoenix   = "phoenix"
)

// The pushes of threadcast.
const (
	EventEvents   = "ag_ui_events"
	EventCaughtUp = "caught_up"
	EventStatus   = "status" // how a thread stands, when something has changed besides its events
	EventReset    = "reset"
	EventDeleted  = "thread_deleted"

	EventListChange = "thread_changed" // of a list
	EventListReset  = "threads_reset"
)

// Frame is one frame of a client: [join_ref, ref, topic, event, payload].
type Frame struct {
	JoinRef string // empty for null
	Ref     string // empty for null
	Topic   string
	Event   string
	Payload json.RawMessage // a JSON object
}

// ErrFrame is what every frame that cannot be read wraps.
var ErrFrame = errors.New("not a Phoenix v2 frame")

// Parse reads a text frame. A null payload is read as an empty object; any other that is not an object is refused.
func Parse(text []byte) (Frame, error) {
	if !utf8.Valid(text) {
		return Frame{}, fmt.Errorf("%w: it is not UTF-8", ErrFrame)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if len(parts) != 5 {
		return Frame{}, fmt.Errorf("%w: it has %d elements, not 5", ErrFrame, len(parts))
	}
	var f Frame
	for i, field := range []struct {
		name string
		to   *string
		null bool
	}{{"join_ref", &f.JoinRef, true}, {"ref", &f.Ref, true}, {"topic", &f.Topic, false}, {"event", &f.Event, false}} {
		if field.null && string(parts[i]) == "null" {
			continue
		}
		if parts[i][0] != '"' {
			return Frame{}, fmt.Errorf("%w: %s is not a string", ErrFrame, field.name)
		}
		if err := json.Unmarshal(parts[i], field.to); err != nil {
			return Frame{}, fmt.Errorf("%w: %s: %w", ErrFrame, field.name, err)
		}
	}
	switch f.Payload = bytes.TrimSpace(parts[4]); {
	case string(f.Payload) == "null":
		f.Payload = json.RawMessage("{}")
	case f.Payload[0] != '{':
		return Frame{}, fmt.Errorf("%w: the payload is not an object", ErrFrame)
	}
	return f, nil
}

// ParseBinary reads the head of a binary push, whose payload is not JSON: one byte 0, the lengths of join_ref, ref,
// topic and event as a byte each, the four texts, and the data. The payload is left empty.
func ParseBinary(data []byte) (Frame, error) {
	if len(data) < 5 || data[0] != 0 {
		return Frame{}, fmt.Errorf("%w: it is not a binary push", ErrFrame)
	}
	var f Frame
	rest := data[5:]
	for i, to := range []*string{&f.JoinRef, &f.Ref, &f.Topic, &f.Event} {
		n := int(data[1+i])
		if len(rest) < n {
			return Frame{}, fmt.Errorf("%w: the binary push breaks off", ErrFrame)
		}
		if !utf8.Valid(rest[:n]) {
			return Frame{}, fmt.Errorf("%w: the head of the binary push is not UTF-8", ErrFrame)
		}
		*to, rest = string(rest[:n]), rest[n:]
	}
	f.Payload = json.RawMessage("{}")
	return f, nil
}

// AppendReply appends the answer to f with status "ok" or "error" and a JSON object as response.
func AppendReply(dst []byte, f Frame, status string, response []byte) []byte {
	dst = appendHead(dst, f.JoinRef, f.Ref, f.Topic, EventReply)
	dst = append(dst, `{"status":"`...)
	dst = append(dst, status...)
	dst = append(dst, `","response":`...)
	dst = append(dst, response...)
	return append(dst, "}]"...)
}

// AppendPush appends a push of the server to the membership joinRef of a topic.
func AppendPush(dst []byte, joinRef, topic, event string, payload []byte) []byte {
	dst = AppendPushHead(dst, joinRef, topic, event)
	dst = append(dst, payload...)
	return append(dst, ']')
}

// AppendPushHead appends what a push begins with. Its payload, a JSON object, and a closing bracket have to follow.
func AppendPushHead(dst []byte, joinRef, topic, event string) []byte {
	return appendHead(dst, joinRef, "", topic, event)
}

func appendHead(dst []byte, joinRef, ref, topic, event string) []byte {
	dst = append(dst, '[')
	dst = appendRef(dst, joinRef)
	dst = append(dst, ',')
	dst = appendRef(dst, ref)
	dst = append(dst, ',')
	dst = AppendString(dst, topic)
	dst = append(dst, ',')
	dst = AppendString(dst, event)
	return append(dst, ',')
}

func appendRef(dst []byte, ref string) []byte {
	if ref == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, ref)
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			plain = false
			break
		}
	}
	if plain {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return append(dst, text...)
}
