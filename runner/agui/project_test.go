package agui_test

import (
	"testing"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestProjectInput(t *testing.T) {
	const head = `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[`
	for name, tt := range map[string]struct {
		event string
		want  []string
	}{
		"Texts": {
			head + `{"id":"u","role":"user","content":"h\ud83di"},{"id":"s","role":"system","content":"be kind"}],"tools":[]},"x":1e400}`,
			[]string{
				head + `],"tools":[]},"x":1e400}`,
				`{"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"h\ud83di"}`,
				`{"type":"TEXT_MESSAGE_END","messageId":"u"}`,
				`{"type":"TEXT_MESSAGE_START","messageId":"s","role":"system"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"s","delta":"be kind"}`,
				`{"type":"TEXT_MESSAGE_END","messageId":"s"}`,
			},
		},
		"CallsAndResults": {
			head + `{"id":"a","role":"assistant","content":"","toolCalls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"id":"r1","role":"tool","toolCallId":"k","content":"ok"}]}}`,
			[]string{
				head + `]}}`,
				`{"type":"TOOL_CALL_START","toolCallId":"k","toolCallName":"f","parentMessageId":"a"}`,
				`{"type":"TOOL_CALL_ARGS","toolCallId":"k","delta":"{}"}`,
				`{"type":"TOOL_CALL_END","toolCallId":"k"}`,
				`{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"k","content":"ok","role":"tool"}`,
			},
		},
		"WhatEventsCannotSayStays": {
			head + `{"id":"p","role":"user","content":[{"type":"text","text":"x"}]},{"id":"u","role":"user","content":"y"},{"id":"e","role":"user","content":""},{"id":"z","role":"reasoning","content":"q"}]}}`,
			[]string{
				head + `{"id":"p","role":"user","content":[{"type":"text","text":"x"}]},{"id":"e","role":"user","content":""},{"id":"z","role":"reasoning","content":"q"}]}}`,
				`{"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"y"}`,
				`{"type":"TEXT_MESSAGE_END","messageId":"u"}`,
			},
		},
		"NothingToSay":  {head + `]}}`, []string{head + `]}}`}},
		"NoInput":       {`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`}},
		"AnotherEvent":  {`{"type":"CUSTOM","name":"n","value":1.0}`, []string{`{"type":"CUSTOM","name":"n","value":1.0}`}},
		"NotEvenAnyOne": {`[]`, []string{`[]`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := agui.ProjectInput([]byte(tt.event))
			if len(got) != len(tt.want) {
				t.Fatalf("got %d events, want %d: %s", len(got), len(tt.want), got)
			}
			for i, want := range tt.want {
				if string(got[i]) != want {
					t.Errorf("event %d:\ngot  %s\nwant %s", i, got[i], want)
				}
			}
		})
	}
}

func TestProjectInputLeavesMessagesWithoutRole(t *testing.T) {
	for _, m := range []string{`{"id":"a"}`, `{"id":"a","role":5}`, `{"id":"a","role":null,"content":"x"}`, `7`} {
		event := `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[` + m + `]}}`
		if got := agui.ProjectInput([]byte(event)); len(got) != 1 || string(got[0]) != event {
			t.Errorf("%s became %s", event, got)
		}
	}
}
