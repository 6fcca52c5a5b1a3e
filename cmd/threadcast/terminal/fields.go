package terminal

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// fields are the members of a JSON object, by their exact names; of two of one name the last counts.
type fields map[string]json.RawMessage

func fieldsOf(text []byte) fields {
	var f fields
	if json.Unmarshal(text, &f) != nil {
		return nil
	}
	return f
}

// text returns a member that is a string, or "".
func (f fields) text(name string) string {
	var s string
	if raw := f[name]; len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// object returns a member that is an object, or nil.
func (f fields) object(name string) fields { return fieldsOf(f[name]) }

// list returns a member that is an array.
func (f fields) list(name string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(f[name], &l) != nil {
		return nil
	}
	return l
}

// compacted is JSON text without the white space between its parts.
func compacted(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// deltas puts a text together that comes in pieces. A character outside of the basic plane may have been cut in two by an
// agent that counts in UTF-16: its first half is held back until the second one comes.
type deltas struct{ held []byte }

// add returns what a piece, which is a JSON string, adds to the text.
func (d *deltas) add(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	inside := slices.Concat(d.held, raw[1:len(raw)-1])
	d.held = nil
	if n := len(inside) - len(`\ud83d`); n >= 0 && isHighHalf(inside[n:]) && !escaped(inside[:n]) {
		d.held, inside = inside[n:], inside[:n]
	}
	var s string
	if json.Unmarshal(slices.Concat([]byte{'"'}, inside, []byte{'"'}), &s) != nil {
		return ""
	}
	return s
}

// isHighHalf tells whether six bytes are the escape of the first half of a surrogate pair.
func isHighHalf(b []byte) bool {
	return b[0] == '\\' && b[1] == 'u' && (b[2] == 'd' || b[2] == 'D') && bytes.IndexByte([]byte("89abAB"), b[3]) >= 0
}

// escaped tells whether text ends in a backslash that escapes what follows.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}

// as is f as an event of another type.
func (f fields) as(kind string) fields {
	other := maps.Clone(f)
	other["type"] = quoted(kind)
	return other
}

// rest is f as JSON without some of its members.
func (f fields) rest(without ...string) json.RawMessage {
	other := maps.Clone(f)
	maps.DeleteFunc(other, func(name string, _ json.RawMessage) bool { return slices.Contains(without, name) })
	text, err := json.Marshal(other)
	if err != nil {
		return nil
	}
	return text
}

func quoted(s string) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always encodes
	}
	return text
}
