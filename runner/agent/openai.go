package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/threadcast/threadcast/runner"
)

// OpenAIOptions are the particulars of an [OpenAI]. Model is needed; whatever else is left zero is fit for use.
type OpenAIOptions struct {
	// Model is the name that the server knows the model by.
	Model string
	// Key is sent as a bearer token; none is sent if it is empty. It is not looked up anywhere else.
	Key string
	// System is the system prompt, which goes before everything that the client sends.
	System string
	// Provider is what the token usage names as provider; "openai" for OpenAI's own servers and
	// "openai-compatible" for others if it is empty.
	Provider string
	// Allow lists the settings that clients may override by forwardedProps: of [OpenAIOverrides]. None if it is empty.
	Allow []string
	// DialTimeout limits how long a connection, and then its TLS handshake, may take; 10 seconds if it is zero.
	DialTimeout time.Duration
	// HeaderTimeout limits how long the server may take before it answers at all, with whatever it loads and reads
	// before; 5 minutes if it is zero. The answer itself may take any time: the runner limits that.
	HeaderTimeout time.Duration
	// MaxEvent is the greatest size of a frame of the answer in bytes; 10 MiB if it is zero.
	MaxEvent int
	// MaxRetries is how often a request is repeated that got no connection, or a status of 408, 409, 429 or 5xx; twice if
	// it is zero, never if it is negative. A request that was answered with a stream, or not in time, is not repeated.
	MaxRetries int
	// MaxRetryDelay bounds the pause before a repetition; 10 seconds if it is zero. A server that asks for more by
	// Retry-After is not asked again.
	MaxRetryDelay time.Duration
}

func (o OpenAIOptions) withDefaults(base *url.URL) OpenAIOptions {
	provider := "openai-compatible"
	if host := base.Hostname(); host == "openai.com" || strings.HasSuffix(host, ".openai.com") {
		provider = "openai"
	}
	o.Provider = cmp.Or(o.Provider, provider)
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 5*time.Minute)
	o.MaxEvent = cmp.Or(o.MaxEvent, 10<<20)
	o.MaxRetries = max(0, cmp.Or(o.MaxRetries, 2))
	o.MaxRetryDelay = cmp.Or(o.MaxRetryDelay, 10*time.Second)
	o.Allow = slices.Clone(o.Allow)
	return o
}

func (o OpenAIOptions) validate() error {
	switch {
	case o.Model == "":
		return errors.New("the model is missing")
	case strings.ContainsFunc(o.Key, isControl):
		return errors.New("the key holds a control character")
	case o.DialTimeout < 0:
		return fmt.Errorf("dial timeout %v is negative", o.DialTimeout)
	case o.HeaderTimeout < 0:
		return fmt.Errorf("header timeout %v is negative", o.HeaderTimeout)
	case o.MaxEvent < 0:
		return fmt.Errorf("event limit %d is negative", o.MaxEvent)
	case o.MaxRetryDelay < 0:
		return fmt.Errorf("retry delay %v is negative", o.MaxRetryDelay)
	}
	for _, name := range o.Allow {
		if !slices.Contains(OpenAIOverrides(), name) {
			return fmt.Errorf("%q cannot be allowed; what can is %s", name, strings.Join(OpenAIOverrides(), ", "))
		}
	}
	return nil
}

// OpenAI is an agent that asks a language model over the chat completions API of OpenAI, which Ollama, vLLM, LM Studio
// and others speak too. It is safe for concurrent use.
//
// The messages and tools of the run's input become those of the request, its context goes into the system prompt, and its
// state is not sent. The answer becomes one assistant message with text and tool calls, and reasoning messages if the
// server tells what the model thinks. The application executes the calls: the run ends with them pending, and the next
// one brings the results (AG-UI 1.0, section 9 "Frontend tools"). An answer that did not end by itself, for instance at
// its length limit, is told by RUN_FINISHED.result: {"finishReason":"length"}.
//
// When a run's context is done the connection is closed at once. How an exchange goes wrong is told by the code of a
// [runner.AgentError]; besides those of [AGUI]:
//
//   - agent_bad_input: there is nothing to send, or an override that makes no sense
//   - event_too_large: a frame of the answer is larger than allowed
//   - model_auth: the server does not accept the key
//   - model_not_found: it does not have the model
//   - model_rate_limited, model_quota: too many requests for now, or for what is paid
//   - model_context_length: the conversation is too long for the model
//   - model_content_filter: the server refuses the request for its content
//   - model_failed: any other error that the server reports in place of an answer, or in the middle of one
//
// Their messages hold nothing that the server said; the wrapped errors do, without the key.
type OpenAI struct {
	opts   OpenAIOptions
	client *http.Client
	chat   openai.ChatCompletionService
}

// NewOpenAI returns the agent for an API at an http or https URL, such as http://127.0.0.1:11434/v1. It connects to nothing
// yet. An error names what is wrong with the URL or the options.
func NewOpenAI(address string, opts OpenAIOptions) (*OpenAI, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	base, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, withoutURL(err)
	case base.User != nil:
		return nil, errors.New("agent address: it must hold no credentials; the key has a place of its own")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("agent address: it must have no query and no fragment")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults(base)
	client := newClient(opts.DialTimeout, opts.HeaderTimeout)
	return &OpenAI{opts: opts, client: client, chat: newChat(base, client, opts)}, nil
}

// newChat sets the library up. It takes nothing from the environment, which may hold a key for somebody else, and tells
// the server nothing of this machine.
func newChat(base *url.URL, client *http.Client, opts OpenAIOptions) openai.ChatCompletionService {
	settings := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(base.String(), "/") + "/"),
		option.WithHTTPClient(client),
		option.WithMaxRetries(opts.MaxRetries),
		option.WithMaxRetryDelay(opts.MaxRetryDelay),
		option.WithHeader("Accept", eventStream),
		option.WithHeader("Accept-Encoding", "identity"),
		option.WithHeader("User-Agent", "threadcast"),
	}
	for _, name := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		settings = append(settings, option.WithHeaderDel("X-Stainless-"+name))
	}
	if opts.Key != "" {
		settings = append(settings, option.WithAPIKey(opts.Key))
	}
	return openai.NewChatCompletionService(settings...)
}

// Close closes the connections that no run uses. Runs go on, and the agent can still be used.
func (o *OpenAI) Close() { o.client.CloseIdleConnections() }

// Run asks the model and emits its answer, each piece as soon as it comes. It returns nil after RUN_FINISHED; the error of
// emit; the cause of ctx soon after ctx is done; otherwise a [runner.AgentError].
func (o *OpenAI) Run(ctx context.Context, in runner.Input, emit func(event []byte) error) error {
	q, err := o.readChat(in.JSON)
	if err != nil {
		return err
	}
	r := newReply(in, q.calls, emit)
	if err := r.begin(); err != nil {
		return err
	}
	request, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	resp, err := o.ask(request, q, giveUp)
	if err != nil {
		return causeOr(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // before the end of the body this closes the connection
	if err := o.read(ctx, resp.Body, r); err != nil {
		return err
	}
	return r.finish(o.opts.Provider, q.params.Model)
}
