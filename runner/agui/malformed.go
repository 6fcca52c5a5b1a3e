package agui

import (
	"fmt"
	"strconv"
)

// MalformedError says why an event or an input is not what AG-UI 1.0 allows. An event that gets one fails its run
// (section 10); an input that gets one is refused before the run begins (section 6).
type MalformedError struct {
	Type   string // of the event; empty for an input, and where no type could be read
	Field  string // the member at fault, such as "delta" or "messages[3].id"; empty if it is the whole
	Rule   string // where it is written: "V9", "K4", "section 10"
	Reason string // what is wrong, for people
}

// Error is a sentence for people that names field and rule.
func (e *MalformedError) Error() string {
	what := "malformed input"
	if e.Type != "" || e.Rule != inputRule {
		what = "malformed event"
	}
	if e.Type != "" {
		what += " " + short(e.Type)
	}
	if e.Field != "" {
		what += ": " + e.Field
	}
	return fmt.Sprintf("%s: %s (AG-UI 1.0, %s)", what, e.Reason, e.Rule)
}

// inputRule is the rule of every error about an input.
const inputRule = "section 6"

// malformed makes the error of one event.
func (e *event) malformed(f field, rule, format string, args ...any) error {
	return &MalformedError{
		Type: e.typeName(), Field: fieldNames[f], Rule: rule, Reason: fmt.Sprintf(format, args...),
	}
}

// short quotes no more of an identifier than a reader needs: an agent may send a megabyte.
func short[T string | []byte](id T) string {
	if len(id) > 64 {
		return strconv.Quote(string(id[:64]) + "...")
	}
	return strconv.Quote(string(id))
}
