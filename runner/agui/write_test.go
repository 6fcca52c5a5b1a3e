package agui_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/runner/agui"
)

func TestRunStarted(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"NamesTheRun", `{"threadId":"t<&>","runId":"r\ud83d","messages":[]}`,
			`{"type":"RUN_STARTED","threadId":"t<&>","runId":"r\ud83d","protocolVersion":"1.0",` +
				`"input":{"threadId":"t<&>","runId":"r\ud83d","messages":[]}}`},
		{"NamesTheParentAndCompactsTheInput", "{\"threadId\": \"t\", \"runId\":\"r\",\n \"parentRunId\":\"p\", \"messages\":[], \"state\":1.0}",
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0","parentRunId":"p",` +
				`"input":{"threadId":"t","runId":"r","parentRunId":"p","messages":[],"state":1.0}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := agui.RunStarted([]byte(c.input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	var m *agui.MalformedError
	if _, err := agui.RunStarted([]byte(`{"threadId":"t","messages":[]}`)); !errors.As(err, &m) || m.Field != "runId" {
		t.Errorf("error = %v", err)
	}
}

func TestCompleteStarted(t *testing.T) {
	const input = `{"threadId":"t","runId":"r","messages":[]}`
	for _, c := range []struct{ name, event, want string }{
		{"AddsTheInput", `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":` + input + `}`},
		{"TouchesNoOtherByte", "{ \"runId\" : \"r\",\"x\":1e400,\"type\":\"RUN_STARTED\"\n} ",
			"{ \"runId\" : \"r\",\"x\":1e400,\"type\":\"RUN_STARTED\"\n,\"input\":" + input + "} "},
		{"KeepsTheAgentsInput", `{"type":"RUN_STARTED","input":{"messages":[]}}`, `{"type":"RUN_STARTED","input":{"messages":[]}}`},
		{"KeepsAnEmptyInput", `{"type":"RUN_STARTED","input":null}`, `{"type":"RUN_STARTED","input":null}`},
		{"DoesNotTakeAnotherCaseForIt", `{"type":"RUN_STARTED","Input":1}`, `{"type":"RUN_STARTED","Input":1,"input":` + input + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := agui.CompleteStarted([]byte(c.event), []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for name, c := range map[string][2]string{
		"AnotherType": {`{"type":"RUN_FINISHED"}`, input},
		"NoEvent":     {`{`, input},
		"NoInput":     {`{"type":"RUN_STARTED"}`, `[]`},
		"BrokenInput": {`{"type":"RUN_STARTED"}`, `{"a":}`},
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			var m *agui.MalformedError
			if _, err := agui.CompleteStarted([]byte(c[0]), []byte(c[1])); !errors.As(err, &m) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestTerminalEvents(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"Cancelled", string(agui.RunCancelled("t", "r\"\n")),
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r\"\n","outcome":{"type":"cancelled"}}`},
		{"Error", string(agui.RunError("It <broke> & \u2028", "stream_truncated")),
			`{"type":"RUN_ERROR","message":"It <broke> & ` + "\u2028" + `","code":"stream_truncated"}`},
		{"ErrorWithoutCode", string(agui.RunError("", "")), `{"type":"RUN_ERROR","message":""}`},
		{"ErrorThatIsNotUnicode", string(agui.RunError("a\xffb\xed\xa0", "")), `{"type":"RUN_ERROR","message":"a` + "\uFFFDb\uFFFD\uFFFD" + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
		})
	}
}

func TestWrittenStringsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		var got struct{ Message string }
		if err := json.Unmarshal(agui.RunError(want, ""), &got); err != nil || got.Message != want {
			t.Fatalf("%q became %q: %v", want, got.Message, err)
		}
		var tracker agui.Verifier
		if err := tracker.Verify(agui.RunError(want, "c")); err != nil {
			t.Fatal(err)
		}
	})
}
