package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
	"github.com/threadcast/threadcast/runner/agui"
)

// asking is an input with these members besides its ids.
func asking(members string) runner.Input {
	return runner.Input{ThreadID: "t1", RunID: "r1", JSON: []byte(`{"threadId":"t1","runId":"r1",` + members + `}`)}
}

var hello = asking(`"messages":[{"id":"u1","role":"user","content":"Hello"}]`)

func newOpenAI(t *testing.T, address string, opts agent.OpenAIOptions) *agent.OpenAI {
	t.Helper()
	if opts.Model == "" {
		opts.Model = "m"
	}
	o, err := agent.NewOpenAI(address+"/v1", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// frames answers with server-sent events, one for each text.
func frames(texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range texts {
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
		}
	}
}

// delta is a chunk with these members in its delta.
func delta(members string) string { return `{"choices":[{"index":0,"delta":{` + members + `}}]}` }

const (
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done = "[DONE]"
)

// hear runs an agent to its end. The ids that it makes up are replaced by their kind and number, and the events must be a
// legal stream if the run did not fail.
func hear(t *testing.T, a runner.Agent, in runner.Input) ([]string, error) {
	t.Helper()
	var events []string
	var verifier agui.Verifier
	ids := newIDs()
	err := a.Run(t.Context(), in, func(event []byte) error {
		if err := verifier.Verify(event); err != nil {
			t.Errorf("%s: %v", event, err)
		}
		events = append(events, ids.replace(string(event)))
		return nil
	})
	return events, err
}

// ids replaces ids that are made up by others that can be foreseen.
type ids struct{ seen map[string]string }

func newIDs() *ids { return &ids{seen: map[string]string{}} }

var madeUp = regexp.MustCompile(`"(msg|call|reasoning)_[a-z2-7]{26}"`)

func (i *ids) replace(event string) string {
	return madeUp.ReplaceAllStringFunc(event, func(id string) string {
		if i.seen[id] == "" {
			n := 1
			kind, _, _ := strings.Cut(id, "_")
			for other := range i.seen {
				if strings.HasPrefix(other, kind) {
					n++
				}
			}
			i.seen[id] = kind + string(rune('0'+n)) + `"`
		}
		return i.seen[id]
	})
}

// short makes events readable: without what all have, and without the first and the last if they say nothing.
func short(events []string) []string {
	var out []string
	for _, e := range events {
		switch e {
		case `{"type":"RUN_STARTED","threadId":"t1","runId":"r1","protocolVersion":"1.0"}`,
			`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success"}}`:
			continue
		}
		for _, part := range []string{`{"type":"`, `"threadId":"t1","runId":"r1",`, `"toolCallId":`, `"messageId":`, `_MESSAGE`} {
			e = strings.Replace(e, part, "", 1)
		}
		out = append(out, strings.TrimSuffix(strings.ReplaceAll(e, `,"`, ` "`), "}"))
	}
	return out
}

func TestOpenAIAnswers(t *testing.T) {
	address := serve(t, frames(
		`{"id":"c1","object":"chat.completion.chunk","model":"m-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		delta(`"content":"Good "`),
		delta(`"content":"day","refusal":null`),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`,
		`{"model":"m-2026","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,`+
			`"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		done,
	))
	events, err := hear(t, newOpenAI(t, address, agent.OpenAIOptions{}), hello)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"RUN_STARTED","threadId":"t1","runId":"r1","protocolVersion":"1.0"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"msg1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"Good "}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"day"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"msg1"}`,
		`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success"},` +
			`"usage":[{"provider":"openai-compatible","model":"m-2026","inputTokens":7,"outputTokens":5,"totalTokens":12,` +
			`"reasoningTokens":0,"cachedInputTokens":3,"cacheWriteInputTokens":2}]}`,
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestOpenAIMakesUpOtherIDsEachTime(t *testing.T) {
	o := newOpenAI(t, serve(t, frames(delta(`"content":"x"`), stop, done)), agent.OpenAIOptions{})
	seen := map[string]bool{}
	for range 3 {
		err := o.Run(t.Context(), hello, func(event []byte) error {
			var e struct{ Type, MessageID string }
			if json.Unmarshal(event, &e) == nil && e.Type == "TEXT_MESSAGE_START" {
				seen[e.MessageID] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("three runs made messages with ids %v", seen)
	}
}

func TestOpenAIPassesOnWhatComesAtOnce(t *testing.T) {
	next := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, text := range []string{"a", "b", "c"} {
			frames(delta(`"content":"`+text+`"`))(w, r)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		frames(stop, done)(w, r)
	})
	var heard strings.Builder
	err := newOpenAI(t, address, agent.OpenAIOptions{}).Run(t.Context(), hello, func(event []byte) error {
		var e struct{ Type, Delta string }
		_ = json.Unmarshal(event, &e)
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			heard.WriteString(e.Delta)
			next <- struct{}{} // only now the server goes on
		}
		return nil
	})
	if err != nil || heard.String() != "abc" {
		t.Errorf("heard %q and %v", heard.String(), err)
	}
}

// closing is a server that tells when its request is closed.
func closing(t *testing.T, before http.HandlerFunc) (address string, closed chan struct{}) {
	closed = make(chan struct{})
	address = serve(t, func(w http.ResponseWriter, r *http.Request) {
		before(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(closed)
	})
	return address, closed
}

func awaitClosed(t *testing.T, closed chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(time.Second):
		t.Error("a second later the connection is still open")
	}
}

func TestOpenAICancelClosesTheConnection(t *testing.T) {
	stopped := errors.New("stopped by somebody")
	half := func(w http.ResponseWriter, r *http.Request) {
		frames(delta(`"content":"x"`))(w, r)
		_, _ = io.WriteString(w, `data: {"cho`)
	}
	for name, test := range map[string]struct {
		before http.HandlerFunc
		at     string
	}{
		"between frames":           {frames(delta(`"content":"x"`)), "TEXT_MESSAGE_CONTENT"},
		"within a frame":           {half, "TEXT_MESSAGE_CONTENT"},
		"after the reason to stop": {frames(delta(`"content":"x"`), stop), "TEXT_MESSAGE_CONTENT"},
	} {
		t.Run(name, func(t *testing.T) {
			address, closed := closing(t, test.before)
			ctx, cancel := context.WithCancelCause(t.Context())
			err := newOpenAI(t, address, agent.OpenAIOptions{}).Run(ctx, hello, func(event []byte) error {
				if strings.Contains(string(event), test.at) {
					cancel(stopped)
				}
				return nil
			})
			if err != stopped {
				t.Errorf("Run returned %v; want the cause", err)
			}
			awaitClosed(t, closed)
		})
	}
}

func TestOpenAICancelBeforeTheAnswer(t *testing.T) {
	stopped := errors.New("stopped by somebody")
	ctx, cancel := context.WithCancelCause(t.Context())
	closed := make(chan struct{})
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(stopped)
		<-r.Context().Done()
		close(closed)
	})
	err := newOpenAI(t, address, agent.OpenAIOptions{}).Run(ctx, hello, func([]byte) error { return nil })
	if err != stopped {
		t.Errorf("Run returned %v; want the cause", err)
	}
	awaitClosed(t, closed)
}

func TestOpenAIErrorOfEmitEndsTheRun(t *testing.T) {
	for name, at := range map[string]string{
		"first event": "RUN_STARTED", "text": "TEXT_MESSAGE_CONTENT", "call": "TOOL_CALL_START", "last event": "RUN_FINISHED",
	} {
		t.Run(name, func(t *testing.T) {
			full := errors.New("no more events are taken")
			address := serve(t, frames(delta(`"content":"x"`),
				delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), stop, done))
			after := 0
			err := newOpenAI(t, address, agent.OpenAIOptions{}).Run(t.Context(), hello, func(event []byte) error {
				if after > 0 || strings.Contains(string(event), at) {
					after++
					return full
				}
				return nil
			})
			if err != full || after != 1 {
				t.Errorf("Run returned %v after %d more events; want the error of emit, and no more", err, after-1)
			}
		})
	}
}

func TestNewOpenAIRefuses(t *testing.T) {
	const secret, good = "hunter2", "http://localhost/v1"
	for name, test := range map[string]struct {
		address string
		opts    agent.OpenAIOptions
		want    string // part of the error
	}{
		"no model":       {good, agent.OpenAIOptions{}, "model is missing"},
		"no scheme":      {"localhost:8000", agent.OpenAIOptions{Model: "m"}, "http or https"},
		"another scheme": {"ftp://localhost/", agent.OpenAIOptions{Model: "m"}, "http or https"},
		"no host":        {"http:///v1", agent.OpenAIOptions{Model: "m"}, "http or https"},
		"credentials":    {"http://u:" + secret + "@localhost/v1", agent.OpenAIOptions{Model: "m"}, "no credentials"},
		"a query":        {good + "?key=" + secret, agent.OpenAIOptions{Model: "m"}, "no query"},
		"key":            {good, agent.OpenAIOptions{Model: "m", Key: secret + "\n"}, "control character"},
		"what to allow":  {good, agent.OpenAIOptions{Model: "m", Allow: []string{"tools"}}, `"tools" cannot be allowed`},
		"dial timeout":   {good, agent.OpenAIOptions{Model: "m", DialTimeout: -1}, "dial timeout"},
		"header timeout": {good, agent.OpenAIOptions{Model: "m", HeaderTimeout: -1}, "header timeout"},
		"event limit":    {good, agent.OpenAIOptions{Model: "m", MaxEvent: -1}, "event limit"},
		"retry delay":    {good, agent.OpenAIOptions{Model: "m", MaxRetryDelay: -1}, "retry delay"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := agent.NewOpenAI(test.address, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want an error about %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}
