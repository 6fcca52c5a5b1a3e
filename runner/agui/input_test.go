package agui_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestParseInput(t *testing.T) {
	got, err := agui.ParseInput([]byte(`{"threadId":"t","runId":"r","parentRunId":"p","protocolVersion":"1.0","state":null,
		"messages":[{"id":"a","role":"user","content":"Hi"},{"id":"","role":"future"},{"id":"a","role":"tool"}],
		"tools":[{"name":"f"}],"context":[],"forwardedProps":null,"future":1,
		"resume":[{"interruptId":"i","status":"resolved","payload":{}},{"interruptId":"j","status":"cancelled"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := agui.Input{
		ThreadID: "t", RunID: "r", ParentRunID: "p", MessageIDs: []string{"a", "", "a"},
		Resume: []agui.Answer{{InterruptID: "i", Status: "resolved"}, {InterruptID: "j", Status: "cancelled"}},
		Tools:  []string{"f"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(agui.Input{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseInputRefuses(t *testing.T) {
	for _, c := range []struct{ name, input, field string }{
		{"Nothing", ``, ""},
		{"AnArray", `[]`, ""},
		{"BrokenJSON", `{"threadId":"t"`, ""},
		{"NoThread", `{"runId":"r","messages":[]}`, "threadId"},
		{"NoRun", `{"threadId":"t","messages":[]}`, "runId"},
		{"ANumberAsRun", `{"threadId":"t","runId":1,"messages":[]}`, "runId"},
		{"ANullParent", `{"threadId":"t","runId":"r","parentRunId":null,"messages":[]}`, "parentRunId"},
		{"AVersionThatIsNoString", `{"threadId":"t","runId":"r","protocolVersion":1.0,"messages":[]}`, "protocolVersion"},
		{"NoMessages", `{"threadId":"t","runId":"r"}`, "messages"},
		{"NullMessages", `{"threadId":"t","runId":"r","messages":null}`, "messages"},
		{"AMessageThatIsNoObject", `{"threadId":"t","runId":"r","messages":["hi"]}`, "messages[0]"},
		{"AMessageWithoutId",
			`{"threadId":"t","runId":"r","messages":[{"id":"a","role":"user"},{"role":"user"}]}`, "messages[1].id"},
		{"AMessageWithoutRole", `{"threadId":"t","runId":"r","messages":[{"id":"a","role":null}]}`, "messages[0].role"},
		{"NullTools", `{"threadId":"t","runId":"r","messages":[],"tools":null}`, "tools"},
		{"AToolThatIsNoObject", `{"threadId":"t","runId":"r","messages":[],"tools":[{},1]}`, "tools[1]"},
		{"ContextThatIsNoArray", `{"threadId":"t","runId":"r","messages":[],"context":{}}`, "context"},
		{"ResumeThatIsNoArray", `{"threadId":"t","runId":"r","messages":[],"resume":{}}`, "resume"},
		{"AnAnswerThatIsNoObject", `{"threadId":"t","runId":"r","messages":[],"resume":[1]}`, "resume[0]"},
		{"AnAnswerToNothing", `{"threadId":"t","runId":"r","messages":[],"resume":[{"status":"resolved"}]}`, "resume[0].interruptId"},
		{"AnAnswerOfUnknownStatus",
			`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"maybe"}]}`, "resume[0].status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := agui.ParseInput([]byte(c.input))
			var m *agui.MalformedError
			if !errors.As(err, &m) {
				t.Fatalf("error = %v", err)
			}
			if m.Field != c.field || m.Type != "" || !strings.Contains(err.Error(), "malformed input") {
				t.Errorf("field %q, want %q: %v", m.Field, c.field, err)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for _, c := range []struct{ name, messages, want string }{
		{"IsEmptyWithoutMessages", ``, ""},
		{"IsTheFirstUserText", `{"id":"1","role":"system","content":"s"},{"id":"2","role":"user","content":"Hi"},` +
			`{"id":"3","role":"user","content":"later"}`, "Hi"},
		{"IsOneLine", `{"id":"1","role":"user","content":"\n one\ttwo\u0000\u0007\r\nthree  "}`, "one two three"},
		{"JoinsParts", `{"id":"1","role":"user","content":[{"type":"image","source":{}},{"type":"text","text":"a"},` +
			`{"type":"text","text":"b"}]}`, "a b"},
		{"PassesOverMessagesWithoutText", `{"id":"1","role":"user","content":[{"type":"image"}]},` +
			`{"id":"2","role":"user","content":"words"}`, "words"},
		{"IsCutBetweenCharacters", `{"id":"1","role":"user","content":"` + strings.Repeat("é", 90) + `"}`, strings.Repeat("é", 80)},
		{"DoesNotEndInASpace", `{"id":"1","role":"user","content":"` + strings.Repeat("x", 79) + ` y"}`, strings.Repeat("x", 79)},
		{"FillsAllOfItsRoom", `{"id":"1","role":"user","content":"` + strings.Repeat("x", 78) + ` y"}`, strings.Repeat("x", 78) + " y"},
		{"IsValidUnicode", `{"id":"1","role":"user","content":"a\ud83d b"}`, "a\uFFFD b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := agui.ParseInput([]byte(`{"threadId":"t","runId":"r","messages":[` + c.messages + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := in.Title(); got != c.want || !utf8.ValidString(got) {
				t.Errorf("title %q, want %q", got, c.want)
			}
		})
	}
}

func TestReduceInput(t *testing.T) {
	known := func(id string) bool { return strings.HasPrefix(id, "old") }
	for _, c := range []struct{ name, input, want string }{
		{"LeavesOutKnownMessages",
			`{ "zeta": 1e400, "messages": [ {"id":"old1"}, {"x":1.0, "id":"new1"} , {"id":"old2"},{"id":"new2"} ], "state":{ } }`,
			`{ "zeta": 1e400, "messages": [{"x":1.0, "id":"new1"},{"id":"new2"}], "state":{ } }`},
		{"LeavesNone", `{"messages":[{"id":"old"}]}`, `{"messages":[]}`},
		{"IsTheSameWhereNothingIsKnown", `{"messages":[ {"id":"new"} ]}`, `{"messages":[ {"id":"new"} ]}`},
		{"DecodesIds", `{"messages":[{"id":"\u006fld"}]}`, `{"messages":[]}`},
		{"TakesTheLastOfTwo", `{"messages":[{"id":"old"}],"messages":[{"id":"old"},{"id":"a"}]}`,
			`{"messages":[{"id":"old"}],"messages":[{"id":"a"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := agui.ReduceInput([]byte(c.input), known)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestReduceInputRefuses(t *testing.T) {
	for name, input := range map[string]string{
		"BrokenJSON":             `{"messages":[]`,
		"NoMessages":             `{}`,
		"MessagesThatAreNoArray": `{"messages":{}}`,
		"AMessageWithoutId":      `{"messages":[{"role":"user"}]}`,
		"AMessageThatIsAnArray":  `{"messages":[["id","x"]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var m *agui.MalformedError
			if _, err := agui.ReduceInput([]byte(input), func(string) bool { return false }); !errors.As(err, &m) {
				t.Errorf("error = %v", err)
			}
		})
	}
}
