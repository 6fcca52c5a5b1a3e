package agent_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
)

// Calls that never get a name make no events, so the run's limits do not see them.
func TestOpenAIKeepsOnlySoMuchOfCallsWithoutAName(t *testing.T) {
	piece := strings.Repeat("z", 10_000)
	for name, delta := range map[string]func(i int) string{
		"in one call":   func(int) string { return fmt.Sprintf(`{"index":0,"function":{"arguments":%q}}`, piece) },
		"in many calls": func(i int) string { return fmt.Sprintf(`{"index":%d,"function":{"arguments":"z"}}`, i) },
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for i := range 2000 {
				texts = append(texts, calls(delta(i)))
			}
			server := httptest.NewServer(frames(texts...))
			t.Cleanup(server.Close)
			var failed *runner.AgentError
			_, err := hear(t, newOpenAI(t, server.URL, agent.OpenAIOptions{}), hello)
			if !errors.As(err, &failed) || failed.Code != "agent_bad_stream" {
				t.Fatalf("got %v", err)
			}
		})
	}
}
