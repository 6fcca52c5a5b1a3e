package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

var (
	errNotJSON   = errors.New("the frame is not JSON")
	errNotObject = errors.New("the frame is not a JSON object")
	errNoType    = errors.New("the frame carries no event type")
)

const jsonSpace = " \t\r\n"

// readEvent turns a frame's data into an event: one JSON object with a non-empty string type (AG-UI 1.0, section
// 15.2 H6), in valid UTF-8 (H3). Its bytes stay as they are, but for invalid UTF-8 and white space around it.
// Whether the event fits the run, and its other fields, are the runner's business.
func readEvent(frame []byte) ([]byte, error) {
	if !utf8.Valid(frame) {
		frame = bytes.ToValidUTF8(frame, []byte(string(utf8.RuneError)))
	}
	event := bytes.Trim(frame, jsonSpace)
	switch {
	case !json.Valid(event):
		return nil, errNotJSON
	case event[0] != '{':
		return nil, errNotObject
	case !hasType(event):
		return nil, errNoType
	}
	return event, nil
}

// hasType tells whether a valid JSON object has a type that is a non-empty string. The name counts exactly as it
// is written, and the last of several wins, as for every JavaScript reader.
func hasType(object []byte) bool {
	has := false
	rest := skipSpace(object[1:])
	for rest[0] != '}' {
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		n := valueLen(rest)
		name := rest[:n]
		rest = skipSpace(rest[n:])
		rest = skipSpace(rest[1:]) // the colon
		n = valueLen(rest)
		if isType(name) {
			has = rest[0] == '"' && n > len(`""`)
		}
		rest = skipSpace(rest[n:])
	}
	return has
}

// isType tells whether a JSON string, quotes included, spells "type".
func isType(name []byte) bool {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name) == `"type"`
	}
	var s string
	return json.Unmarshal(name, &s) == nil && s == "type"
}

// valueLen returns the length of the JSON value that valid JSON text begins with.
func valueLen(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringLen(text[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			continue
		default:
			i += scalarLen(text[i:]) - 1
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// stringLen returns the length of the JSON string that text begins with, quotes included.
func stringLen(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// scalarLen returns the length of the number or the literal that text begins with.
func scalarLen(text []byte) int {
	if n := bytes.IndexAny(text, ",:]} \t\r\n"); n >= 0 {
		return n
	}
	return len(text)
}

func skipSpace(text []byte) []byte { return bytes.TrimLeft(text, jsonSpace) }
