package copilotkit_test

import (
	"errors"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

func TestCleanMessages(t *testing.T) {
	for name, tt := range map[string]struct{ messages, want string }{
		"NothingToClean": {
			`[ {"id":"u", "role":"user","content":"\ud800", "n":1e400 } ]`, `[ {"id":"u", "role":"user","content":"\ud800", "n":1e400 } ]`,
		},
		"AllOfTheMetadata": {
			`[{"id":"a","metadata":{"cpki_event_id":"3-1","cpki_event_seq":7},"role":"assistant"}]`, `[{"id":"a","role":"assistant"}]`,
		},
		"SomeOfTheMetadata": {
			`[{"id":"a","metadata":{"cpki_event_id":"3-1","mine":{"x":[1 , 2]},"cpki_x":null}}]`, `[{"id":"a","metadata":{"mine":{"x":[1 , 2]}}}]`,
		},
		"EmptyMetadataStays":       {`[{"id":"a","metadata":{}}]`, `[{"id":"a","metadata":{}}]`},
		"OfToolCalls":              {`[{"id":"a","toolCalls":[{"id":"c","metadata":{"cpki_event_id":"1"}}]}]`, `[{"id":"a","toolCalls":[{"id":"c"}]}]`},
		"NotElsewhere":             {`[{"id":"a","content":{"cpki_event_id":"1"}}]`, `[{"id":"a","content":{"cpki_event_id":"1"}}]`},
		"WhatIsNoList":             {`"x"`, `"x"`},
		"MessagesThatAreNoObjects": {`[1,"x"]`, `[1,"x"]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(copilotkit.Clean([]byte(tt.messages))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParseEnvelope(t *testing.T) {
	e, err := copilotkit.ParseEnvelope([]byte(`{"method":"agent/stop","params":{"agentId":"A","threadId":"T"},"body":{"runId" : 1}}`))
	if err != nil || e.Method != "agent/stop" || e.Params.AgentID != "A" || e.Params.ThreadID != "T" || string(e.Body) != `{"runId" : 1}` {
		t.Errorf("got %+v, %v", e, err)
	}
	for _, body := range []string{"", "[]", "{}", `{"method":1}`, `{"method":""}`} {
		if _, err := copilotkit.ParseEnvelope([]byte(body)); !errors.Is(err, thread.ErrBadInput) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
