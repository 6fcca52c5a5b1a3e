package agent

import (
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

// conversation makes the messages of a request (AG-UI 1.0, section 5.2). The API accepts a tool's result only right
// behind the message that called it, and a call only with its result. So results follow their calls wherever they
// were, and calls without a result, of a run that was stopped for instance, are left out, as are results without a call.
type conversation struct {
	provider string
	results  map[string]members // by the call's id; of two, the last
	calls    map[string]bool    // ids of all calls

	head     []string // instructions before everything else
	messages []openai.ChatCompletionMessageParamUnion
}

func newConversation(messages []members, provider string) *conversation {
	c := &conversation{provider: provider, results: map[string]members{}, calls: map[string]bool{}}
	for _, m := range messages {
		if m.text("role") == "tool" {
			c.results[m.text("toolCallId")] = m
		}
	}
	for _, m := range messages {
		switch m.text("role") {
		case "developer", "system":
			c.instruct(m)
		case "user":
			c.hear(m)
		case "assistant":
			c.recall(m)
		}
	}
	return c
}

// instruct adds instructions, under the one role that every server knows. Those at the beginning become one message with
// the system prompt: the templates of many models allow no second one.
func (c *conversation) instruct(m members) {
	text := m.content()
	switch {
	case strings.TrimSpace(text) == "":
	case len(c.messages) == 0:
		c.head = append(c.head, text)
	default:
		message := openai.SystemMessage(text)
		message.OfSystem.Name = speaker(m)
		c.messages = append(c.messages, message)
	}
}

func (c *conversation) hear(m members) {
	message := openai.UserMessage(m.content())
	if parts, mixed := readParts(m.objects("content"), c.provider); mixed {
		message = openai.UserMessage(parts)
	}
	message.OfUser.Name = speaker(m)
	c.messages = append(c.messages, message)
}

func (c *conversation) recall(m members) {
	var message openai.ChatCompletionAssistantMessageParam
	if text := m.content(); text != "" {
		message.Content.OfString = param.NewOpt(text)
	}
	message.Name = speaker(m)
	var results []openai.ChatCompletionMessageParamUnion
	for _, call := range m.objects("toolCalls") {
		id := call.text("id")
		result, answered := c.results[id]
		if answered && !c.calls[id] {
			message.ToolCalls = append(message.ToolCalls, readCall(call))
			results = append(results, openai.ToolMessage(resultText(result), id))
		}
		c.calls[id] = true
	}
	if !param.IsOmitted(message.Content.OfString) || len(message.ToolCalls) > 0 {
		c.messages = append(c.messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &message})
		c.messages = append(c.messages, results...)
	}
}

func readCall(call members) openai.ChatCompletionMessageToolCallUnionParam {
	function := readMembers(call["function"])
	args := function.text("arguments")
	if strings.TrimSpace(args) == "" {
		args = "{}" // some servers parse it
	}
	return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
		ID:       call.text("id"),
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: function.text("name"), Arguments: args},
	}}
}

// resultText is a tool's result as text, with its error if it has one.
func resultText(m members) string {
	text, failure := m.content(), m.text("error")
	switch {
	case failure == "" || failure == text:
		return text
	case text == "":
		return "Error: " + failure
	}
	return text + "\n\nError: " + failure
}

// speaker returns the name of who speaks, if it is one that the API takes.
func speaker(m members) param.Opt[string] {
	name := m.text("name")
	odd := strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && r != '_' && r != '-'
	})
	if name == "" || len(name) > 64 || odd {
		return param.Opt[string]{}
	}
	return param.NewOpt(name)
}
