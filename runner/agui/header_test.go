package agui_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestParseHeader(t *testing.T) {
	for _, c := range []struct {
		name, event string
		want        agui.Header
	}{
		{"ReadsIds", `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"p","subagentRunId":"s"}`,
			agui.Header{Type: "TOOL_CALL_START", ToolCallID: "c", ToolCallName: "f", ParentMessageID: "p", SubagentRunID: "s"}},
		{"ReadsRunIds", ` { "type" : "RUN_STARTED" , "threadId":"t","runId":"r","parentRunId":"q"} `,
			agui.Header{Type: "RUN_STARTED", ThreadID: "t", RunID: "r", ParentRunID: "q"}},
		{"ReadsEncryptedValue", `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m"}`,
			agui.Header{Type: "REASONING_ENCRYPTED_VALUE", Subtype: "message", EntityID: "m"}},
		{"MatchesNamesExactly", `{"type":"CUSTOM","TYPE":"RUN_FINISHED","Type":"RUN_ERROR","name":"n"}`,
			agui.Header{Type: "CUSTOM", Name: "n"}},
		{"TakesTheLastOfTwo", `{"type":"RAW","type":"STEP_STARTED","stepName":"a","stepName":"b"}`,
			agui.Header{Type: "STEP_STARTED", StepName: "b"}},
		{"ReadsEscapedNamesAndValues", `{"t\u0079pe":"\u0052AW","messageId":"a\/\u00e9\n\ud83d\ude00"}`,
			agui.Header{Type: "RAW", MessageID: "a/é\n😀"}},
		{"KeepsUnknownTypes", `{"type":"FUTURE","messageId":5,"subagentRunId":null}`, agui.Header{Type: "FUTURE"}},
		{"TakesThinkingAsUnknown", `{"type":"THINKING_TEXT_MESSAGE_CONTENT"}`,
			agui.Header{Type: "THINKING_TEXT_MESSAGE_CONTENT"}},
		{"IgnoresUnknownMembers", `{"type":"RAW","role":7,"future":{"type":"x"}}`, agui.Header{Type: "RAW"}},
		{"TakesNullParentAsAbsent", `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":null}`,
			agui.Header{Type: "TOOL_CALL_START", ToolCallID: "c", ToolCallName: "f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := agui.ParseHeader([]byte(c.event))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(agui.Header{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeaderTellsAbsentFromEmpty(t *testing.T) {
	h, err := agui.ParseHeader([]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"","delta":""}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"messageId": true, "delta": true, "subagentRunId": false, "other": false} {
		if h.Has(name) != want {
			t.Errorf("Has(%s) = %v", name, !want)
		}
	}
}

func TestHeaderKeepsSurrogateHalvesApart(t *testing.T) {
	var ids []string
	for _, event := range []string{
		`{"type":"RAW","messageId":"\ud83d"}`, `{"type":"RAW","messageId":"\ud83e"}`, `{"type":"RAW","messageId":"\ufffd"}`,
	} {
		h, err := agui.ParseHeader([]byte(event))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.MessageID)
	}
	if ids[0] == ids[1] || ids[0] == ids[2] {
		t.Errorf("ids are not told apart: %q", ids)
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, event, field string }{
		{"Nothing", ``, ""},
		{"Text", `data`, ""},
		{"AnArray", `[{"type":"RAW"}]`, ""},
		{"Null", `null`, ""},
		{"TwoObjects", `{"type":"RAW"}{"type":"RAW"}`, ""},
		{"AnUnfinishedObject", `{"type":"RAW"`, ""},
		{"ATrailingComma", `{"type":"RAW",}`, ""},
		{"AControlCharacter", "{\"type\":\"RAW\",\"x\":\"\n\"}", ""},
		{"ABadEscape", `{"type":"RAW","x":"\u12g4"}`, ""},
		{"ALeadingZero", `{"type":"RAW","x":01}`, ""},
		{"TooMuchNesting", `{"type":"RAW","x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`, ""},
		{"NoType", `{}`, "type"},
		{"AnEmptyType", `{"type":""}`, "type"},
		{"ATypeThatIsNoString", `{"type":"RAW","type":1}`, "type"},
		{"NoMessageId", `{"type":"TEXT_MESSAGE_START"}`, "messageId"},
		{"NoDelta", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}`, "delta"},
		{"ADeltaWithParts", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":[]}`, "delta"},
		{"ANullDelta", `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":null}`, "delta"},
		{"ANumberAsToolCallId", `{"type":"TOOL_CALL_END","toolCallId":3}`, "toolCallId"},
		{"ANumberAsSubagent", `{"type":"CUSTOM","subagentRunId":3}`, "subagentRunId"},
		{"AStepWithoutName", `{"type":"STEP_STARTED"}`, "stepName"},
		{"ARunWithoutIds", `{"type":"RUN_STARTED","threadId":"t"}`, "runId"},
		{"AnErrorWithoutMessage", `{"type":"RUN_ERROR","error":"Run stopped by user"}`, "message"},
		{"APatchThatIsNoArray", `{"type":"STATE_DELTA","delta":{}}`, "delta"},
		{"AnActivityWithoutPatch", `{"type":"ACTIVITY_DELTA","messageId":"a"}`, "patch"},
		{"NullMetadata", `{"type":"RAW","event":1,"metadata":null}`, "metadata"},
		{"ASnapshotWithoutList", `{"type":"MESSAGES_SNAPSHOT","messages":{}}`, "messages"},
		{"AMessageThatIsNoObject", `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"user"},7]}`, "messages[1]"},
		{"AMessageWithoutId", `{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user"}]}`, "messages[0].id"},
		{"AnInputWithoutMessages", `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{}}`, "input.messages"},
		{"ANullInput", `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":null}`, "input"},
		{"AnOutcomeThatIsNoObject", `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":[]}`, "outcome"},
		{"AnInterruptWithoutInterrupts",
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}`, "outcome.interrupts"},
		{"AnInterruptWithoutId",
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{}]}}`,
			"outcome.interrupts[0].id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := agui.ParseHeader([]byte(c.event))
			var m *agui.MalformedError
			if !errors.As(err, &m) {
				t.Fatalf("error = %v", err)
			}
			if m.Field != c.field || m.Rule != "section 10" {
				t.Errorf("field %q, rule %q; want field %q: %v", m.Field, m.Rule, c.field, err)
			}
			if !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), "section 10") {
				t.Errorf("%q does not name field and rule", err)
			}
		})
	}
}

func TestErrorsQuoteNoMoreThanAReaderNeeds(t *testing.T) {
	var v agui.Verifier
	if err := v.Verify([]byte(`{"type":"RUN_STARTED"}`)); err != nil {
		t.Fatal(err)
	}
	err := v.Verify([]byte(`{"type":"TEXT_MESSAGE_END","messageId":"` + strings.Repeat("x", 1<<20) + `"}`))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func FuzzParseHeader(f *testing.F) {
	for _, seed := range []string{
		`{"type":"RAW"}`, `{"type":"a","type":"b"}`, `{"type":"\ud83d\ude00","x":[1.5e-3,true,null,{}]}`, `{"type":1}`, `[]`, `{"type":"RAW","x":"\u00e9` + "\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := agui.ParseHeader(data)
		var members map[string]json.RawMessage
		if jsonErr := json.Unmarshal(data, &members); jsonErr != nil || members == nil {
			if err == nil {
				t.Fatalf("accepted %q, but: %v", data, jsonErr)
			}
			return
		}
		var want string
		if json.Unmarshal(members["type"], &want) != nil || want == "" {
			if err == nil {
				t.Fatalf("accepted %q without a type", data)
			}
			return
		}
		var m *agui.MalformedError
		if errors.As(err, &m) {
			if m.Type == "" {
				t.Fatalf("%v in %q", err, data)
			}
			return
		}
		// Where encoding/json replaces what is not Unicode, the header keeps it.
		if got := strings.ToValidUTF8(h.Type, "\uFFFD"); !strings.ContainsRune(want, '\uFFFD') && got != want {
			t.Fatalf("type %q, want %q", got, want)
		}
	})
}
