package agent

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agui"
)

// FuzzOpenAI holds that whatever a server streams, the events are legal, and that a run either finishes or fails in a way
// that has a code.
func FuzzOpenAI(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"delta":{"content":"x"}}]}` + "\n" + `{"choices":[{"delta":{"reasoning":"hm"}}]}` + "\n[DONE]",
		`{"choices":[{"delta":{"reasoning_content":"hm","content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{}}},{"id":"a"},{"index":0,"id":"a","function":{"name":"f"}}]}}]}` + "\n" + `{"choices":[{"delta":{"content":"x"}}]}` + "\n[DONE]",
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"1"}}]}}]}` + "\n" + `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"2"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":1}}`,
		`{"error":{"code":429}}`, `{"object":"error"}`, `{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`, "\xff", "{",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		stream := "data: " + strings.ReplaceAll(lines, "\n", "\n\ndata: ")
		o := newPatient(t, func(*http.Request) (*http.Response, error) {
			return response(200, io.NopCloser(strings.NewReader(stream)), nil), nil
		})
		var verifier agui.Verifier
		var last string
		err := o.Run(t.Context(), patientInput, func(event []byte) error {
			last = string(event)
			if err := verifier.Verify(event); err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			return nil
		})
		finished := strings.HasPrefix(last, `{"type":"RUN_FINISHED"`)
		if failed := errors.As(err, new(*runner.AgentError)); finished != (err == nil) || failed != (err != nil) {
			t.Errorf("Run returned %v after %s", err, last)
		}
	})
}
