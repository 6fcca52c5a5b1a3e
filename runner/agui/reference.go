package agui

import (
	"net/url"
	"strconv"
)

// ResultContent returns the content of a TOOL_CALL_RESULT as JSON; ok is false for everything else.
func ResultContent(event []byte) (content []byte, ok bool) {
	e, err := parsed(event)
	if err != nil || e.typ != callResult {
		return nil, false
	}
	content = e.raw(fContent)
	return content, content != nil
}

// WithReference returns a TOOL_CALL_RESULT with a document in the place of its content, which is found at
// /api/threads/THREAD/runs/RUN/results/PLACE on the server; everything else of the event is as it was. The content is
// the place-th of its run that is kept so. The error is a [*MalformedError] if event is no object.
func WithReference(event []byte, threadID, runID string, place int) ([]byte, error) {
	content, _ := ResultContent(event)
	address := "/api/threads/" + url.PathEscape(threadID) + "/runs/" + url.PathEscape(runID) + "/results/" + strconv.Itoa(place)
	size := strconv.Itoa(len(content))
	b := append([]byte(`[{"type":"text","text":"The result has `+size+` bytes and is kept apart."},`),
		`{"type":"document","source":{"type":"url","value":`...)
	b = append(appendQuoted(b, address), `,"mimeType":"application/json"},"metadata":{"threadcast":{"type":"kept_apart","bytes":`...)
	b = append(append(b, size...), `}}}]`...)
	return replaced(event, map[string][]byte{"content": b})
}
