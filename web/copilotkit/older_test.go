package copilotkit_test

import (
	"encoding/json"
	"testing"

	"github.com/threadcast/threadcast/web/copilotkit"
)

func TestOlder(t *testing.T) {
	for name, tt := range map[string]struct{ event, want string }{
		"WhatFits":      {`{ "type":"CUSTOM", "name":"x", "n":1e400}`, `{ "type":"CUSTOM", "name":"x", "n":1e400}`},
		"ATypeSince":    {`{"type":"SOMETHING_NEW"}`, ``},
		"NoEvent":       {`{"type":1}`, ``},
		"Finished":      {`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}`},
		"Waiting":       {`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}}`},
		"Cancelled":     {`{"type":"RUN_FINISHED","threadId":"t","outcome":{"type":"cancelled"},"runId":"r"}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`},
		"AResultOfText": {`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"a"}`, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"a"}`},
		"AResultOfParts": {
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"text","text":"a\""},{"type":"image","source":{"type":"url","value":"v"}},{"type":"text","text":"b"}]}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"a\"b"}`,
		},
		"Messages": {
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"tool","content":[{"type":"text","text":"a"}]},{"id":"m","role":"robot"},{"id":"m","role":"assistant"}]}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"tool","content":"a"},{"id":"m","role":"assistant"}]}`,
		},
		"PartsOfAnInput": {
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"m","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"file"}},` +
				`{"type":"image","source":{"type":"url"}},{"type":"hologram"}]}]}}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"m","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url"}}]}]}}`,
		},
		"AQuestionThatIsText": {
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"m","role":"user","content":"hi"}]}}`, `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"m","role":"user","content":"hi"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(copilotkit.Older([]byte(tt.event))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	for event, want := range map[string]string{
		`{"type":"RUN_ERROR","message":"m"}`:              `{"type":"RUN_ERROR","message":"m","code":"abort"}`,
		`{"type":"RUN_ERROR","code":"lost","message":""}`: `{"type":"RUN_ERROR","code":"abort","message":""}`,
		`{"type":"CUSTOM","name":"RUN_ERROR","code":"x"}`: `{"type":"CUSTOM","name":"RUN_ERROR","code":"x"}`,
		`no event`: `no event`,
	} {
		if got := string(copilotkit.Quiet([]byte(event))); got != want {
			t.Errorf("%s becomes %s, want %s", event, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	const can = `{"list":true,"inspect":true,"mutations":true,"realtimeMetadata":`
	for name, tt := range map[string]struct{ sockets, want string }{
		"OverSockets": {"wss://h/client", `{"version":"1","mode":"intelligence","agents":{"a":{"description":""},"b/c":{"description":""}},` +
			`"intelligence":{"wsUrl":"wss://h/client"},"suggestions":true,"threadEndpoints":` + can + `true},` +
			`"singleRoute":{"resourceOperations":true,"threadEndpoints":` + can + `true}}}`},
		"OverSSE": {"", `{"version":"1","mode":"sse","agents":{"a":{"description":""},"b/c":{"description":""}},"suggestions":true,` +
			`"threadEndpoints":` + can + `false},"singleRoute":{"resourceOperations":true,"threadEndpoints":` + can + `false}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(copilotkit.NewInfo([]string{"a", "b/c"}, tt.sockets))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
