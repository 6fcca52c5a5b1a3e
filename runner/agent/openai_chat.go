package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/threadcast/threadcast/runner"
)

// chat is a run's input as a request.
type chat struct {
	params openai.ChatCompletionNewParams
	calls  map[string]bool // the ids of all tool calls that the conversation holds
}

// readChat makes a request of a RunAgentInput (AG-UI 1.0, section 6). What the API has no place for is left out.
func (o *OpenAI) readChat(input []byte) (chat, error) {
	in := readMembers(input)
	if in == nil {
		return chat{}, badInput(errors.New("it is not a RunAgentInput"))
	}
	c := newConversation(in.objects("messages"), o.opts.Provider)
	if len(c.messages) == 0 && len(c.head) == 0 {
		return chat{}, badInput(errors.New("it holds no message"))
	}
	q := chat{calls: c.calls, params: openai.ChatCompletionNewParams{
		Model:         o.opts.Model,
		Messages:      c.messages,
		Tools:         readTools(in.objects("tools")),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}}
	head := slices.Concat(nonEmpty(o.opts.System), nonEmpty(describe(in.objects("context"))), c.head)
	if len(head) > 0 {
		system := openai.SystemMessage(strings.Join(head, "\n\n"))
		q.params.Messages = slices.Insert(q.params.Messages, 0, system)
	}
	return q, o.override(&q.params, readMembers(in["forwardedProps"]))
}

func badInput(err error) error {
	return &runner.AgentError{Code: "agent_bad_input", Message: fmt.Sprintf("The agent cannot use this input: %v.", err), Err: err}
}

func nonEmpty(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []string{s}
}

// describe makes a text of the input's context, for the system prompt.
func describe(context []members) string {
	if len(context) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("The application tells this about where the user is:")
	for _, entry := range context {
		fmt.Fprintf(&b, "\n\n%s:\n%s", strings.TrimRight(entry.text("description"), ": \n"), entry.text("value"))
	}
	return b.String()
}

// readTools makes functions of the application's tools. Their schemas stay as they are, order and numbers included.
func readTools(tools []members) []openai.ChatCompletionToolUnionParam {
	var out []openai.ChatCompletionToolUnionParam
	for _, t := range tools {
		function := shared.FunctionDefinitionParam{Name: t.text("name")}
		if function.Name == "" {
			continue
		}
		if text := t.text("description"); text != "" {
			function.Description = param.NewOpt(text)
		}
		if schema := t["parameters"]; len(schema) > 0 && schema[0] == '{' {
			function.SetExtraFields(map[string]any{"parameters": schema})
		}
		out = append(out, openai.ChatCompletionFunctionTool(function))
	}
	return out
}

// override is a setting of the request that the operator may leave to clients.
type override struct {
	name string
	set  func(p *openai.ChatCompletionNewParams, value json.RawMessage) error
}

var overrides = []override{
	{"model", func(p *openai.ChatCompletionNewParams, value json.RawMessage) error {
		var name string
		if json.Unmarshal(value, &name) != nil || name == "" {
			return errors.New("must be a name")
		}
		p.Model = name
		return nil
	}},
	{"temperature", func(p *openai.ChatCompletionNewParams, value json.RawMessage) error {
		var t float64
		if json.Unmarshal(value, &t) != nil || t < 0 {
			return errors.New("must be a number from 0")
		}
		p.Temperature = param.NewOpt(t)
		return nil
	}},
	{"max_tokens", tokenLimit(func(p *openai.ChatCompletionNewParams) *param.Opt[int64] { return &p.MaxTokens })},
	{"max_completion_tokens", tokenLimit(func(p *openai.ChatCompletionNewParams) *param.Opt[int64] { return &p.MaxCompletionTokens })},
}

func tokenLimit(field func(*openai.ChatCompletionNewParams) *param.Opt[int64]) func(*openai.ChatCompletionNewParams, json.RawMessage) error {
	return func(p *openai.ChatCompletionNewParams, value json.RawMessage) error {
		var n int64
		if json.Unmarshal(value, &n) != nil || n < 1 {
			return errors.New("must be a whole number from 1")
		}
		*field(p) = param.NewOpt(n)
		return nil
	}
}

// OpenAIOverrides returns the names of the settings that [OpenAIOptions].Allow may leave to clients: model, temperature,
// max_tokens, and max_completion_tokens, which OpenAI's newer models want in its place. A client sets them by a member
// of that name of the input's forwardedProps.
func OpenAIOverrides() []string {
	var names []string
	for _, o := range overrides {
		names = append(names, o.name)
	}
	return names
}

// override takes over what clients may set. What they may not is none of this agent's business and passed over.
func (o *OpenAI) override(p *openai.ChatCompletionNewParams, forwarded members) error {
	for _, setting := range overrides {
		value := forwarded[setting.name]
		if value == nil || bytes.Equal(value, []byte("null")) || !slices.Contains(o.opts.Allow, setting.name) {
			continue
		}
		if err := setting.set(p, value); err != nil {
			return badInput(fmt.Errorf("%s in forwardedProps %w", setting.name, err))
		}
	}
	return nil
}
