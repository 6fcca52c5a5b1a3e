package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
)

// recorder is a server that keeps the last request.
type recorder struct {
	address string
	request *http.Request
	body    map[string]json.RawMessage
}

func record(t *testing.T) *recorder {
	r := &recorder{}
	r.address = serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		r.request, r.body = req, nil
		if err == nil {
			err = json.Unmarshal(body, &r.body)
		}
		if err != nil {
			t.Errorf("the request is %q: %v", body, err)
		}
		frames(stop, done)(w, req)
	})
	return r
}

func TestOpenAIRequest(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "another's") // the library's own variables must not matter
	t.Setenv("OPENAI_ORG_ID", "another's")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	for name, test := range map[string]struct {
		key  string
		want []string
	}{
		"with a key":    {"sk-1", []string{"Bearer sk-1"}},
		"without a key": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			if _, err := hear(t, newOpenAI(t, r.address, agent.OpenAIOptions{Key: test.key}), hello); err != nil {
				t.Fatal(err)
			}
			if got := r.request.Method + " " + r.request.RequestURI; got != "POST /v1/chat/completions" {
				t.Errorf("asked for was %s", got)
			}
			delete(r.request.Header, "Content-Length")
			want := http.Header{
				"Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"},
				"User-Agent": {"threadcast"},
			}
			if test.want != nil {
				want["Authorization"] = test.want
			}
			if diff := cmp.Diff(want, r.request.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			body := map[string]string{}
			for name, value := range r.body {
				body[name] = string(value)
			}
			wantBody := map[string]string{
				"model": `"m"`, "stream": "true", "stream_options": `{"include_usage":true}`,
				"messages": `[{"content":"Hello","role":"user"}]`,
			}
			if diff := cmp.Diff(wantBody, body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// sent returns what a run asks a model for, in one member of the request.
func sent(t *testing.T, opts agent.OpenAIOptions, in runner.Input, member string) any {
	t.Helper()
	r := record(t)
	if _, err := hear(t, newOpenAI(t, r.address, opts), in); err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(r.body[member]))
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestOpenAIMessages(t *testing.T) {
	user := func(content string) string { return `{"id":"u","role":"user","content":` + content + `}` }
	asked := func(content string) string { return `{"role":"user","content":` + content + `}` }
	calling := func(ids ...string) string {
		var calls []string
		for _, id := range ids {
			calls = append(calls, `{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}`)
		}
		return strings.Join(calls, ",")
	}
	for name, test := range map[string]struct{ messages, want string }{
		"all roles": {
			`{"id":"1","role":"system","content":"Be brief."},` + user(`"Hi"`) + `,{"id":"3","role":"assistant","content":"Hello"},{"id":"4","role":"developer","content":"Be kind."},` + user(`"Bye"`),
			`{"role":"system","content":"Be brief."},` + asked(`"Hi"`) + `,{"role":"assistant","content":"Hello"},{"role":"system","content":"Be kind."},` + asked(`"Bye"`),
		},
		"several instructions first": {
			`{"id":"1","role":"developer","content":"Be brief."},{"id":"2","role":"system","content":"Be kind."},` + user(`"Hi"`),
			`{"role":"system","content":"Be brief.\n\nBe kind."},` + asked(`"Hi"`),
		},
		"what is no part of a conversation": {
			`{"id":"1","role":"reasoning","content":"hm"},` + user(`"Hi"`) + `,{"id":"3","role":"activity","activityType":"x","content":{}},{"id":"4","role":"narrator","content":"x"},{"id":"5","role":"assistant"},{"id":"6","role":"system","content":" "}`,
			asked(`"Hi"`),
		},
		"names": {
			`{"id":"1","role":"user","name":"ann_1","content":"Hi"},{"id":"2","role":"user","name":"Ann Lee","content":"Hi"},{"id":"3","role":"assistant","name":"bot","content":"Hello"}`,
			`{"role":"user","name":"ann_1","content":"Hi"},` + asked(`"Hi"`) + `,{"role":"assistant","name":"bot","content":"Hello"}`,
		},
		"names in another case do not count": {
			`{"id":"1","role":"user","Role":"system","content":"Hi","CONTENT":"x"}`, asked(`"Hi"`),
		},
		"calls and results": {
			user(`"Hi"`) + `,{"id":"2","role":"assistant","content":"Let me see.","toolCalls":[` + calling("a", "b") + `]},{"id":"3","role":"tool","toolCallId":"a","content":"A"},{"id":"4","role":"tool","toolCallId":"b","content":"B"}`,
			asked(`"Hi"`) + `,{"role":"assistant","content":"Let me see.","tool_calls":[` + calling("a", "b") + `]},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"tool","tool_call_id":"b","content":"B"}`,
		},
		"results in another place": {
			`{"id":"2","role":"assistant","toolCalls":[` + calling("a", "b") + `]},` + user(`"Hi"`) + `,{"id":"4","role":"tool","toolCallId":"b","content":"B"},{"id":"3","role":"tool","toolCallId":"a","content":"A"}`,
			`{"role":"assistant","tool_calls":[` + calling("a", "b") + `]},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"tool","tool_call_id":"b","content":"B"},` + asked(`"Hi"`),
		},
		"calls without results": {
			user(`"Hi"`) + `,{"id":"2","role":"assistant","content":"x","toolCalls":[` + calling("a") + `]},{"id":"3","role":"assistant","toolCalls":[` + calling("b") + `]},` + user(`"Well?"`),
			asked(`"Hi"`) + `,{"role":"assistant","content":"x"},` + asked(`"Well?"`),
		},
		"a result without its call, and one too many": {
			`{"id":"1","role":"tool","toolCallId":"z","content":"Z"},{"id":"2","role":"assistant","toolCalls":[` + calling("a") + `]},{"id":"3","role":"tool","toolCallId":"a","content":"old"},{"id":"4","role":"tool","toolCallId":"a","content":"new"}`,
			`{"role":"assistant","tool_calls":[` + calling("a") + `]},{"role":"tool","tool_call_id":"a","content":"new"}`,
		},
		"a call without arguments": {
			`{"id":"2","role":"assistant","toolCalls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},{"id":"3","role":"tool","toolCallId":"a","content":""}`,
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""}`,
		},
		"results in parts, and errors": {
			`{"id":"2","role":"assistant","toolCalls":[` + calling("a", "b", "c") + `]},{"id":"3","role":"tool","toolCallId":"a","content":[{"type":"text","text":"A"},{"type":"image","source":{"type":"url","value":"https://h/"}},{"type":"text","text":"a"}]},{"id":"4","role":"tool","toolCallId":"b","content":"B","error":"it broke"},{"id":"5","role":"tool","toolCallId":"c","content":"","error":"it broke"}`,
			`{"role":"assistant","tool_calls":[` + calling("a", "b", "c") + `]},{"role":"tool","tool_call_id":"a","content":"Aa"},{"role":"tool","tool_call_id":"b","content":"B\n\nError: it broke"},{"role":"tool","tool_call_id":"c","content":"Error: it broke"}`,
		},
		"text in parts": {
			user(`[{"type":"text","text":"Good "},{"type":"text","text":"day"}]`), asked(`"Good day"`),
		},
		"images": {
			user(`[{"type":"text","text":"Look"},{"type":"image","source":{"type":"url","value":"https://h/a.png","mimeType":"image/png"}},{"type":"image","source":{"type":"data","value":"AAAA","mimeType":"image/png"}},{"type":"image","source":{"type":"url","value":"data:image/gif;base64,R0"}}]`),
			asked(`[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"https://h/a.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0"}}]`),
		},
		"audio": {
			user(`[{"type":"audio","source":{"type":"data","value":"AAAA","mimeType":"audio/x-wav"}},{"type":"audio","source":{"type":"data","value":"BBBB","mimeType":"audio/mpeg; rate=1"}}]`),
			asked(`[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"input_audio","input_audio":{"data":"BBBB","format":"mp3"}}]`),
		},
		"documents": {
			user(`[{"type":"document","metadata":{"filename":"a.pdf"},"source":{"type":"data","value":"AAAA","mimeType":"application/pdf"}},{"type":"document","source":{"type":"data","value":"BBBB","mimeType":"application/pdf"}},{"type":"document","source":{"type":"data","value":"CC","mimeType":"text/csv"}},{"type":"document","source":{"type":"file","value":"file-1","provider":"openai-compatible"}}]`),
			asked(`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}},{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,BBBB"}},{"type":"file","file":{"filename":"document","file_data":"data:text/csv;base64,CC"}},{"type":"file","file":{"file_id":"file-1"}}]`),
		},
		"what no model can take": {
			user(`[{"type":"text","text":"Look"},{"type":"video","source":{"type":"url","value":"https://h/"}},{"type":"image","source":{"type":"url","value":"file:///etc/passwd"}},{"type":"audio","source":{"type":"url","value":"https://h/"}},{"type":"audio","source":{"type":"data","value":"A","mimeType":"audio/ogg"}},{"type":"document","source":{"type":"url","value":"https://h/"}},{"type":"document","source":{"type":"file","value":"f","provider":"other"}},{"type":"image"},{"type":"smell"},7]`),
			asked(`[{"type":"text","text":"Look"}]`),
		},
		"nothing but that": {
			user(`[{"type":"video","source":{"type":"url","value":"https://h/"}}]`),
			asked(`[{"type":"text","text":"(The user sent something that this model cannot read.)"}]`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := sent(t, agent.OpenAIOptions{}, asking(`"messages":[`+test.messages+`]`), "messages")
			if diff := cmp.Diff(decoded(t, "["+test.want+"]"), got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenAISystemPrompt(t *testing.T) {
	const hi, instruction = `{"id":"u","role":"user","content":"Hi"}`, `{"id":"s","role":"system","content":"Be kind."}`
	const told = "The application tells this about where the user is:\n\nThe open page:\n/orders/17\n\nSelected rows:\n[1,2]"
	context := `"context":[{"description":"The open page","value":"/orders/17"},{"description":"Selected rows:","value":"[1,2]"}],`
	for name, test := range map[string]struct{ prompt, members, want string }{
		"none":                 {"", `"context":[],"messages":[` + hi + `]`, ""},
		"the operator's":       {"You are Ann.", `"messages":[` + hi + `]`, "You are Ann."},
		"context":              {"", context + `"messages":[` + hi + `]`, told},
		"the operator's first": {"You are Ann.", context + `"messages":[` + instruction + `,` + hi + `]`, "You are Ann.\n\n" + told + "\n\nBe kind."},
	} {
		t.Run(name, func(t *testing.T) {
			want := []any{map[string]any{"role": "user", "content": "Hi"}}
			if test.want != "" {
				want = append([]any{map[string]any{"role": "system", "content": test.want}}, want...)
			}
			got := sent(t, agent.OpenAIOptions{System: test.prompt}, asking(test.members), "messages")
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenAITools(t *testing.T) {
	r := record(t)
	in := asking(`"messages":[{"id":"u","role":"user","content":"Hi"}],"state":{"secret":1},"tools":[` +
		`{"name":"f","description":"Does <f>","parameters":{"type":"object","properties":{"z":{"type":"number","maximum":1e400},"a":{}}},"metadata":{"x":1}},` +
		`{"name":"g","description":""},{"description":"no name"}]`)
	if _, err := hear(t, newOpenAI(t, r.address, agent.OpenAIOptions{}), in); err != nil {
		t.Fatal(err)
	}
	var tools []struct {
		Type     string
		Function map[string]json.RawMessage
	}
	if err := json.Unmarshal(r.body["tools"], &tools); err != nil || len(tools) != 2 {
		t.Fatalf("the tools are %s: %v", r.body["tools"], err)
	}
	if got := string(tools[0].Function["parameters"]); got != `{"type":"object","properties":{"z":{"type":"number","maximum":1e400},"a":{}}}` {
		t.Errorf("the schema has become %s", got)
	}
	if d := decoded(t, string(tools[0].Function["description"])); d != "Does <f>" {
		t.Errorf("the description is %v", d)
	}
	if tools[0].Type != "function" || string(tools[1].Function["name"]) != `"g"` || len(tools[1].Function) != 1 {
		t.Errorf("the tools are %s", r.body["tools"])
	}
	if r.body["state"] != nil {
		t.Error("the state was sent")
	}
}

func TestOpenAIOverrides(t *testing.T) {
	const forwarded = `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"model":"n","temperature":0.5,"max_tokens":9,"max_completion_tokens":8,"top_p":1}`
	for name, test := range map[string]struct {
		allow   []string
		members string
		want    string // model, temperature, max_tokens, max_completion_tokens
	}{
		"not allowed":       {nil, forwarded, `"m",,,`},
		"the allowed one":   {[]string{"temperature"}, forwarded, `"m",0.5,,`},
		"all":               {agent.OpenAIOverrides(), forwarded, `"n",0.5,9,8`},
		"nothing there":     {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}]`, `"m",,,`},
		"null":              {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"model":null}`, `"m",,,`},
		"something else":    {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":"x"`, `"m",,,`},
		"zero is a number":  {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"temperature":0}`, `"m",0,,`},
		"bad, not allowed":  {[]string{"model"}, `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"temperature":"hot"}`, `"m",,,`},
		"the name as it is": {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"Model":"n"}`, `"m",,,`},
		"a large whole one": {agent.OpenAIOverrides(), `"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"max_tokens":100000}`, `"m",,100000,`},
		"two of them":       {[]string{"model", "max_tokens"}, forwarded, `"n",,9,`},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			if _, err := hear(t, newOpenAI(t, r.address, agent.OpenAIOptions{Allow: test.allow}), asking(test.members)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range []string{"model", "temperature", "max_tokens", "max_completion_tokens"} {
				got = append(got, string(r.body[name]))
			}
			if got := strings.Join(got, ","); got != test.want {
				t.Errorf("sent was %s; want %s", got, test.want)
			}
			if r.body["top_p"] != nil {
				t.Error("something was sent that nobody may override")
			}
		})
	}
}

func TestOpenAIInputsThatCannotBeUsed(t *testing.T) {
	const hi = `"messages":[{"id":"u","role":"user","content":"Hi"}],`
	for name, test := range map[string]struct {
		in   runner.Input
		want string
	}{
		"no messages":          {asking(`"messages":[]`), "it holds no message"},
		"no message of use":    {asking(`"messages":[{"id":"1","role":"reasoning","content":"hm"}]`), "it holds no message"},
		"no object":            {runner.Input{JSON: []byte(`[]`)}, "it is not a RunAgentInput"},
		"a model without name": {asking(hi + `"forwardedProps":{"model":""}`), "model in forwardedProps must be a name"},
		"a temperature":        {asking(hi + `"forwardedProps":{"temperature":"hot"}`), "temperature in forwardedProps must be a number from 0"},
		"half a token":         {asking(hi + `"forwardedProps":{"max_tokens":0.5}`), "max_tokens in forwardedProps must be a whole number from 1"},
		"no tokens":            {asking(hi + `"forwardedProps":{"max_completion_tokens":0}`), "max_completion_tokens in forwardedProps must be a whole number from 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpenAI(t, "http://127.0.0.1:1", agent.OpenAIOptions{Allow: agent.OpenAIOverrides()})
			events, err := hear(t, o, test.in)
			checkFailure(t, err, failure{"agent_bad_input", "The agent cannot use this input: " + test.want + ".", test.want})
			if len(events) != 0 {
				t.Errorf("events came: %v", events)
			}
		})
	}
}
