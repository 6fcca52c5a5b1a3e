package agent_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agent"
)

const key = "sk-hunter2"

// checkSecrets fails if a part of an error holds the key.
func checkSecrets(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), key) {
			t.Errorf("the error tells the key: %v", e)
		}
	}
}

func refuse(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestOpenAIRefusals(t *testing.T) {
	said := func(members string) string { return `{"error":{` + members + `}}` }
	status := func(n int) failure { return failure{"agent_status", fmt.Sprintf("The agent answered HTTP %d.", n), ""} }
	const (
		busy     = "The model takes no more requests for now."
		noKey    = "The model's server does not accept the key."
		noModel  = "The model's server does not have this model."
		tooLong  = "The conversation is too long for the model."
		paid     = "What is paid for this model is used up."
		filtered = "The model's server refuses this conversation for its content."
		noStream = "The agent did not answer with an event stream."
	)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    failure
	}{
		"OpenAI, key":              {refuse(401, said(`"message":"Incorrect API key provided: `+key+`.","type":"invalid_request_error","code":"invalid_api_key"`)), failure{"model_auth", noKey, "Incorrect API key provided: [key]."}},
		"OpenAI, country":          {refuse(403, said(`"code":"unsupported_country_region_territory"`)), failure{"model_auth", "The model's server does not allow this.", "unsupported"}},
		"OpenAI, model":            {refuse(404, said(`"message":"The model x does not exist","code":"model_not_found"`)), failure{"model_not_found", noModel, "does not exist"}},
		"OpenAI, rate":             {refuse(429, said(`"type":"tokens","code":"rate_limit_exceeded"`)), failure{"model_rate_limited", busy, "429"}},
		"OpenAI, rate and when":    {refuse(429, said(`"code":"rate_limit_exceeded"`), "Retry-After", "30"), failure{"model_rate_limited", busy + " Try again in 30 seconds.", "429"}},
		"OpenAI, quota":            {refuse(429, said(`"type":"insufficient_quota","code":"insufficient_quota"`), "Retry-After", "30"), failure{"model_quota", paid, "quota"}},
		"OpenAI, length":           {refuse(400, said(`"code":"context_length_exceeded"`)), failure{"model_context_length", tooLong, "context_length"}},
		"OpenAI, content":          {refuse(400, said(`"code":"content_filter"`)), failure{"model_content_filter", filtered, "content_filter"}},
		"OpenAI, request":          {refuse(400, said(`"message":"Invalid schema","type":"invalid_request_error"`)), failure{"agent_status", "The agent answered HTTP 400.", "Invalid schema"}},
		"OpenRouter, credit":       {refuse(402, said(`"code":402`)), failure{"model_quota", paid, "402"}},
		"Ollama, model":            {refuse(404, said(`"message":"model \"x\" not found, try pulling it first","type":"api_error","code":null`)), failure{"model_not_found", noModel, "try pulling"}},
		"Ollama, wrong path":       {refuse(404, "404 page not found", "Content-Type", "text/plain"), status(404)},
		"vLLM, model":              {refuse(404, "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"code\":404}"), failure{"model_not_found", noModel, "does not exist"}},
		"vLLM, length":             {refuse(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`), failure{"model_context_length", tooLong, "4096"}},
		"vLLM, wrong path":         {refuse(404, `{"detail":"Not Found"}`), status(404)},
		"llama.cpp, length":        {refuse(400, said(`"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"`)), failure{"model_context_length", tooLong, "exceeds"}},
		"an error that is a text":  {refuse(400, `{"error":"context window exceeded"}`), failure{"model_context_length", tooLong, "window"}},
		"an error that is nothing": {refuse(400, `{"error":[]}`), status(400)},
		"503":                      {refuse(503, "overloaded"), status(503)},
		"no body":                  {refuse(500, ""), status(500)},
		"a redirect elsewhere":     {refuse(307, "", "Location", "http://agent.invalid/"), status(307)},
		"nothing":                  {refuse(204, ""), status(204)},
		"200, an error":            {refuse(200, said(`"code":"rate_limit_exceeded"`)), failure{"model_rate_limited", busy, "rate_limit"}},
		"200, another error":       {refuse(200, said(`"message":"oops `+key+`"`)), failure{"model_failed", "The model's server reported an error.", "oops [key]"}},
		"200, no stream":           {refuse(200, `{"choices":[{"message":{"content":"x"}}]}`), failure{"agent_content_type", noStream, "json"}},
		"200, a page":              {refuse(200, "<html>", "Content-Type", "text/html"), failure{"agent_content_type", noStream, "html"}},
		"200, compressed":          {refuse(200, "x", "Content-Type", "text/event-stream", "Content-Encoding", "br"), failure{"agent_content_type", noStream, "br"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpenAI(t, serve(t, test.handler), agent.OpenAIOptions{Key: key, MaxRetries: -1})
			events, err := hear(t, o, hello)
			checkFailure(t, err, test.want)
			checkSecrets(t, err)
			if len(events) != 1 {
				t.Errorf("events came: %v", events)
			}
		})
	}
	t.Run("a key that is not configured", func(t *testing.T) {
		o := newOpenAI(t, serve(t, refuse(401, "{}")), agent.OpenAIOptions{})
		_, err := hear(t, o, hello)
		checkFailure(t, err, failure{"model_auth", "The model's server asks for a key, and none is configured.", "401"})
	})
}

func TestOpenAIRefusalIsBounded(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"in size": refuse(400, strings.Repeat("x", 1<<20)),
		"in time": func(w http.ResponseWriter, r *http.Request) {
			refuse(400, strings.Repeat("x", 3<<10))(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := hear(t, newOpenAI(t, serve(t, handler), agent.OpenAIOptions{}), hello)
			checkFailure(t, err, failure{"agent_status", "The agent answered HTTP 400.", "xxx"})
			if n := len(errors.Unwrap(err).Error()); n < 2<<10 || n > 3<<10 {
				t.Errorf("%d bytes are kept for the log", n)
			}
		})
	}
}

func TestOpenAIErrorsWithinTheStream(t *testing.T) {
	for name, test := range map[string]struct {
		frame string
		want  failure
	}{
		"OpenAI":         {`{"error":{"message":"The server had an error","type":"server_error"}}`, failure{"model_failed", "The model's server reported an error.", "had an error"}},
		"OpenRouter":     {`{"id":"x","error":{"code":429,"message":"slow down"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`, failure{"model_rate_limited", "The model takes no more requests for now.", "slow down"}},
		"vLLM":           {`{"object":"error","message":"maximum context length is 4096","code":400}`, failure{"model_context_length", "The conversation is too long for the model.", "4096"}},
		"a text":         {`{"error":"out of memory ` + key + `"}`, failure{"model_failed", "The model's server reported an error.", "out of memory [key]"}},
		"not JSON":       {`oops ` + key, failure{"agent_bad_stream", "The agent sent something that is not an event.", "oops [key]"}},
		"half of it":     {`{"choices":[`, failure{"agent_bad_stream", "The agent sent something that is not an event.", "choices"}},
		"no object":      {`[1]`, failure{"agent_bad_stream", "The agent sent something that is not an event.", "[1]"}},
		"nameless call":  {calls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), failure{"agent_bad_stream", "The agent called a tool without a name.", "no name"}},
		"larger than it": {delta(`"content":"` + strings.Repeat("x", 5000) + `"`), failure{"event_too_large", "The agent sent an event that is too large.", "4096"}},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, frames(delta(`"content":"x"`), test.frame, stop, done))
			events, err := hear(t, newOpenAI(t, address, agent.OpenAIOptions{Key: key, MaxEvent: 4096}), hello)
			checkFailure(t, err, test.want)
			checkSecrets(t, err)
			if got := strings.Join(short(events), "\n"); !strings.Contains(got, `"delta":"x"`) || strings.Contains(got, "RUN_FINISHED") {
				t.Errorf("events before it:\n%s", got)
			}
		})
	}
}

func TestOpenAIStreamsThatBreak(t *testing.T) {
	cut := func(rest string, abort bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			frames(delta(`"content":"x"`))(w, r)
			_, _ = io.WriteString(w, rest)
			_ = http.NewResponseController(w).Flush()
			if abort {
				panic(http.ErrAbortHandler)
			}
		}
	}
	const brokeOff = "The connection to the agent broke off."
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		cause   string
	}{
		"cut between frames":   {cut("", true), "EOF"},
		"cut within a frame":   {cut(`data: {"cho`, true), "EOF"},
		"ended without reason": {cut("", false), "EOF"},
		"ended within a frame": {cut(`data: {"cho`, false), "cho"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := hear(t, newOpenAI(t, serve(t, test.handler), agent.OpenAIOptions{}), hello)
			checkFailure(t, err, failure{"agent_truncated", brokeOff, test.cause})
			want := []string{`TEXT_START" "msg1" "role":"assistant"`, `TEXT_CONTENT" "msg1" "delta":"x"`}
			if diff := cmp.Diff(want, short(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenAIUnreachable(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	withTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	withTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	withTLS.StartTLS()
	defer withTLS.Close()
	hangsUp := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	const noWay, tooLate = "The agent could not be reached.", "The agent did not answer in time."
	for name, test := range map[string]struct {
		address string
		want    failure
	}{
		"nobody listens":      {closed.URL, failure{"agent_unreachable", noWay, "refused"}},
		"unknown certificate": {withTLS.URL, failure{"agent_unreachable", noWay, "certificate"}},
		"it hangs up":         {hangsUp, failure{"agent_unreachable", noWay, "EOF"}},
		"no answer":           {"http://" + silent.Addr().String(), failure{"agent_unreachable", tooLate, "timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpenAI(t, test.address, agent.OpenAIOptions{Key: key, HeaderTimeout: 50 * time.Millisecond, MaxRetryDelay: time.Millisecond})
			_, err := hear(t, o, hello)
			checkFailure(t, err, test.want)
			checkSecrets(t, err)
			if err := errors.Unwrap(err); strings.Contains(err.Error(), "/v1") {
				t.Errorf("the log is told the URL: %v", err)
			}
		})
	}
}

// TestOpenAIAsksAgain holds what is repeated, and how often. Whatever is repeated had not begun to answer.
func TestOpenAIAsksAgain(t *testing.T) {
	answer := frames(delta(`"content":"x"`), stop, done)
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	wait := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	soon := []string{"Retry-After", "0"}
	for name, test := range map[string]struct {
		handlers []http.HandlerFunc // one for each request, the last for all that follow
		opts     agent.OpenAIOptions
		asked    int32
		code     string // of the failure
	}{
		"after a limit":            {[]http.HandlerFunc{refuse(429, "{}", soon...), answer}, agent.OpenAIOptions{}, 2, ""},
		"after two faults":         {[]http.HandlerFunc{refuse(500, "{}", soon...), refuse(503, "{}", soon...), answer}, agent.OpenAIOptions{}, 3, ""},
		"after a hang-up":          {[]http.HandlerFunc{hangUp, answer}, agent.OpenAIOptions{MaxRetryDelay: time.Millisecond}, 2, ""},
		"not for ever":             {[]http.HandlerFunc{refuse(500, "{}", soon...)}, agent.OpenAIOptions{}, 3, "agent_status"},
		"as often as told":         {[]http.HandlerFunc{refuse(500, "{}", soon...)}, agent.OpenAIOptions{MaxRetries: 1}, 2, "agent_status"},
		"never":                    {[]http.HandlerFunc{refuse(500, "{}", soon...)}, agent.OpenAIOptions{MaxRetries: -1}, 1, "agent_status"},
		"not who wants too long":   {[]http.HandlerFunc{refuse(429, "{}", "Retry-After", "11")}, agent.OpenAIOptions{}, 1, "model_rate_limited"},
		"not who understood":       {[]http.HandlerFunc{refuse(400, "{}", soon...)}, agent.OpenAIOptions{}, 1, "agent_status"},
		"not who takes long":       {[]http.HandlerFunc{wait}, agent.OpenAIOptions{HeaderTimeout: 50 * time.Millisecond, MaxRetryDelay: time.Millisecond}, 1, "agent_unreachable"},
		"not who began to answer":  {[]http.HandlerFunc{frames(delta(`"content":"x"`))}, agent.OpenAIOptions{}, 1, "agent_truncated"},
		"not who answered at all":  {[]http.HandlerFunc{frames()}, agent.OpenAIOptions{}, 1, "agent_truncated"},
		"not who streams an error": {[]http.HandlerFunc{frames(`{"error":{"code":429}}`)}, agent.OpenAIOptions{}, 1, "model_rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n := int(asked.Add(1))
				test.handlers[min(n, len(test.handlers))-1](w, r)
			})
			_, err := hear(t, newOpenAI(t, address, test.opts), hello)
			if got := codeOf(t, err); got != test.code {
				t.Errorf("the run ended with %q (%v); want %q", got, err, test.code)
			}
			if asked.Load() != test.asked {
				t.Errorf("the server was asked %d times; want %d", asked.Load(), test.asked)
			}
		})
	}
}
