package agent_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agent"
)

// calls is a chunk with deltas of tool calls.
func calls(deltas ...string) string { return delta(`"tool_calls":[` + strings.Join(deltas, ",") + `]`) }

// TestOpenAIReadsWhatServersSend holds the forms in which servers differ.
func TestOpenAIReadsWhatServersSend(t *testing.T) {
	start, end := `TEXT_START" "msg1" "role":"assistant"`, `TEXT_END" "msg1"`
	says := func(text string) string { return `TEXT_CONTENT" "msg1" "delta":"` + text + `"` }
	think := []string{`REASONING_START" "reasoning1"`, `REASONING_START" "msg1" "role":"reasoning"`}
	finished := func(members string) string { return `RUN_FINISHED" ` + members }
	pending := func(ids string) string {
		return finished(`"outcome":{"type":"success" "pendingToolCallIds":[` + strings.ReplaceAll(ids, `,"`, ` "`) + `]}`)
	}
	begin := func(id, name string) string {
		return `TOOL_CALL_START" "` + id + `" "toolCallName":"` + name + `" "parentMessageId":"msg1"`
	}
	args := func(id, text string) string { return `TOOL_CALL_ARGS" "` + id + `" "delta":"` + text + `"` }
	over := func(id string) string { return `TOOL_CALL_END" "` + id + `"` }

	for name, test := range map[string]struct {
		sent []string
		want []string
	}{
		"nothing at all":              {[]string{stop, done}, nil},
		"end without a reason":        {[]string{delta(`"content":"x"`), done}, []string{start, says("x"), end}},
		"end without a marker":        {[]string{delta(`"content":"x"`), stop}, []string{start, says("x"), end}},
		"reason with the last words":  {[]string{`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`}, []string{start, says("x"), end}},
		"frames without anything":     {[]string{"", `{}`, `{"choices":[]}`, `{"choices":null}`, `{"choices":[{"delta":null}]}`, stop}, nil},
		"content of another kind":     {[]string{delta(`"content":5`), delta(`"content":null`), delta(`"content":["x"]`), stop}, nil},
		"no error":                    {[]string{`{"error":null,"choices":[{"delta":{"content":"x"}}]}`, stop}, []string{start, says("x"), end}},
		"another choice":              {[]string{`{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"length"}]}`, stop}, nil},
		"names in the wrong case":     {[]string{`{"Choices":[{"delta":{"content":"x"}}],"choices":[{"delta":{"Content":"y"}}]}`, stop}, nil},
		"a refusal":                   {[]string{delta(`"refusal":"No, "`), delta(`"refusal":"thanks"`), stop}, []string{start, says("No, "), says("thanks"), end}},
		"halves of a character":       {[]string{delta(`"content":"\ud83d"`), delta(`"content":"\ude80"`), stop}, []string{start, says(`\ud83d`), says(`\ude80`), end}},
		"characters kept as they are": {[]string{delta(`"content":"<b>& \u2028é"`), stop}, []string{start, says(`<b>& \u2028é`), end}},
		"cut short":                   {[]string{`{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}`, done}, []string{start, says("x"), end, finished(`"result":{"finishReason":"length"} "outcome":{"type":"success"}`)}},
		"filtered":                    {[]string{`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, done}, []string{finished(`"result":{"finishReason":"content_filter"} "outcome":{"type":"success"}`)}},

		"reasoning_content": {
			[]string{delta(`"reasoning_content":"hm"`), delta(`"reasoning_content":null,"content":"x"`), stop},
			append(think[:2:2], `REASONING_CONTENT" "msg1" "delta":"hm"`, `REASONING_END" "msg1"`, `REASONING_END" "reasoning1"`,
				`TEXT_START" "msg2" "role":"assistant"`, `TEXT_CONTENT" "msg2" "delta":"x"`, `TEXT_END" "msg2"`),
		},
		"reasoning, and the first words with its last": {
			[]string{delta(`"content":"","reasoning":"h"`), delta(`"content":"x","reasoning":"m"`), stop},
			append(think[:2:2], `REASONING_CONTENT" "msg1" "delta":"h"`, `REASONING_CONTENT" "msg1" "delta":"m"`, `REASONING_END" "msg1"`,
				`REASONING_END" "reasoning1"`, `TEXT_START" "msg2" "role":"assistant"`, `TEXT_CONTENT" "msg2" "delta":"x"`, `TEXT_END" "msg2"`),
		},
		"both names for one thought": {
			[]string{delta(`"reasoning_content":"hm","reasoning":"hm"`), stop},
			append(think[:2:2], `REASONING_CONTENT" "msg1" "delta":"hm"`, `REASONING_END" "msg1"`, `REASONING_END" "reasoning1"`),
		},
		"reasoning of another kind": {[]string{delta(`"reasoning":{"text":"hm"}`), stop}, nil},
		"thinking again": {
			[]string{delta(`"content":"x"`), delta(`"reasoning":"hm"`), delta(`"content":"y"`), stop},
			[]string{start, says("x"), end, `REASONING_START" "reasoning1"`, `REASONING_START" "msg2" "role":"reasoning"`, `REASONING_CONTENT" "msg2" "delta":"hm"`,
				`REASONING_END" "msg2"`, `REASONING_END" "reasoning1"`, start, says("y"), end},
		},

		"a call in pieces": {
			[]string{calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`),
				calls(`{"index":0,"function":{"arguments":"{\"x\""}}`), calls(`{"index":0,"function":{"arguments":":1}"}}`), stop},
			[]string{begin("a", "f"), args("a", `{\"x\"`), args("a", `:1}`), over("a"), pending(`"a"`)},
		},
		"a call after text": {
			[]string{delta(`"content":"Let me see."`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), stop},
			[]string{start, says("Let me see."), end, begin("a", "f"), args("a", "{}"), over("a"), pending(`"a"`)},
		},
		"text after a call": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), delta(`"content":"So."`), stop},
			[]string{begin("a", "f"), args("a", "{}"), start, says("So."), end, over("a"), pending(`"a"`)},
		},
		"calls that take turns": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f"}}`), calls(`{"index":1,"id":"b","function":{"name":"g"}}`),
				calls(`{"index":1,"function":{"arguments":"[1"}}`, `{"index":0,"function":{"arguments":"{"}}`),
				calls(`{"index":0,"function":{"arguments":"}"}}`), calls(`{"index":1,"function":{"arguments":"]"}}`), stop},
			[]string{begin("a", "f"), begin("b", "g"), args("b", "[1"), args("a", "{"), args("a", "}"), args("b", "]"), over("a"), over("b"), pending(`"a","b"`)},
		},
		"whole calls in one chunk": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`), stop},
			[]string{begin("a", "f"), args("a", "{}"), begin("b", "f"), args("b", "{}"), over("a"), over("b"), pending(`"a","b"`)},
		},
		"calls of one index with ids": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`), stop},
			[]string{begin("a", "f"), args("a", "{}"), begin("b", "f"), args("b", "{}"), over("a"), over("b"), pending(`"a","b"`)},
		},
		"calls of one index without ids": {
			[]string{calls(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"n\":1}"}}`), calls(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"n\":2}"}}`), stop},
			[]string{begin("call1", "f"), args("call1", `{\"n\":1}`), begin("call2", "f"), args("call2", `{\"n\":2}`), over("call1"), over("call2"), pending(`"call1","call2"`)},
		},
		"calls without index and id": {
			[]string{calls(`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"g","arguments":"{"}}`), calls(`{"function":{"arguments":"}"}}`), stop},
			[]string{begin("call1", "f"), args("call1", "{}"), begin("call2", "g"), args("call2", "{"), args("call2", "}"), over("call1"), over("call2"), pending(`"call1","call2"`)},
		},
		"calls without index, by id": {
			[]string{calls(`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`), calls(`{"id":"a","function":{"arguments":"{}"}}`), stop},
			[]string{begin("a", "f"), begin("b", "g"), args("a", "{}"), over("a"), over("b"), pending(`"a","b"`)},
		},
		"id and name in every piece": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`), stop},
			[]string{begin("a", "f"), args("a", "{"), args("a", "}"), over("a"), pending(`"a"`)},
		},
		"name in every piece, no id": {
			[]string{calls(`{"index":0,"function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"function":{"name":"f","arguments":"}"}}`), stop},
			[]string{begin("call1", "f"), args("call1", "{"), args("call1", "}"), over("call1"), pending(`"call1"`)},
		},
		"the name comes last": {
			[]string{calls(`{"index":0,"id":"a","function":{"arguments":"{"}}`), calls(`{"index":0,"function":{"name":"f","arguments":"}"}}`), stop},
			[]string{begin("a", "f"), args("a", "{"), args("a", "}"), over("a"), pending(`"a"`)},
		},
		"arguments that are no string": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":"<1>"}}}`), stop},
			[]string{begin("a", "f"), args("a", `{\"x\":\"<1>\"}`), over("a"), pending(`"a"`)},
		},
		"a call that is nothing": {[]string{calls(`{"index":0}`, `{"index":1,"function":null}`), stop}, nil},
		"an id that comes twice": {
			[]string{calls(`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"a","function":{"name":"g"}}`), stop},
			[]string{begin("a", "f"), begin("call1", "g"), over("a"), over("call1"), pending(`"a","call1"`)},
		},
		"an id that the thread knows": {
			[]string{calls(`{"index":0,"id":"old","function":{"name":"f","arguments":"{}"}}`), stop},
			[]string{begin("call1", "f"), args("call1", "{}"), over("call1"), pending(`"call1"`)},
		},

		"usage with the reason, and once more": {
			[]string{`{"model":"n","choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, done},
			[]string{finished(`"outcome":{"type":"success"} "usage":[{"provider":"openai-compatible" "model":"n" "inputTokens":1 "outputTokens":2}]`)},
		},
		"usage that is none": {[]string{`{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"total_tokens":"9"}}`, stop}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(`"messages":[{"id":"u1","role":"user","content":"Hello"},{"id":"a1","role":"assistant","toolCalls":[{"id":"old","function":{"name":"f","arguments":"{}"}}]}]`)
			events, err := hear(t, newOpenAI(t, serve(t, frames(test.sent...)), agent.OpenAIOptions{}), in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, short(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOpenAIReadsStreamsInAllShapes holds what is legal in server-sent events beside the usual.
func TestOpenAIReadsStreamsInAllShapes(t *testing.T) {
	x := delta(`"content":"x"`)
	for name, body := range map[string]string{
		"comments":           ": OPENROUTER PROCESSING\n\ndata: " + x + "\n\n: ping\n\ndata: [DONE]\n\n",
		"CRLF":               "data: " + x + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"no space":           "data:" + x + "\n\ndata:[DONE]\n\n",
		"names and ids":      "id: 1\nevent: message\ndata: " + x + "\n\nid: 2\ndata: [DONE]\n\n",
		"over several lines": "data: {\ndata: " + x[1:] + "\n\ndata: [DONE]\n\n",
		"a byte order mark":  "\xef\xbb\xbfdata: " + x + "\n\ndata: [DONE]\n\n",
		"no blank line last": "data: " + x + "\n\ndata: [DONE]",
		"cut after the end":  "data: " + x + "\n\ndata: " + stop + "\n\ndata: {\"usage",
		"broken after it":    "data: " + x + "\n\ndata: " + stop + "\n\n\x00broken",
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				before, broken := strings.CutSuffix(body, "\x00broken")
				_, _ = io.WriteString(w, before)
				if broken {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			events, err := hear(t, newOpenAI(t, address, agent.OpenAIOptions{}), hello)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{`TEXT_START" "msg1" "role":"assistant"`, `TEXT_CONTENT" "msg1" "delta":"x"`, `TEXT_END" "msg1"`}
			if diff := cmp.Diff(want, short(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
