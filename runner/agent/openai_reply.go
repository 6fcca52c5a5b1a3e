package agent

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/threadcast/threadcast/runner"
)

// channel is what a model is busy with beside its tool calls.
type channel int

const (
	quiet channel = iota
	thinking
	speaking
)

// reply makes the events of one answer out of its chunks. All text and all tool calls belong to one message.
type reply struct {
	thread, run string
	emit        func([]byte) error

	message       string // the id of the assistant's message
	channel       channel
	span, thought string // the ids of what is thought, while the channel is thinking

	calls   []*call
	held    int // bytes of arguments that are kept since a call had events
	indexed map[int64]*call
	taken   map[string]bool // ids of calls that the thread knows

	reason string // why the model stopped, once that is said
	model  string // as the server calls it
	usage  *tokenUsage
}

func newReply(in runner.Input, taken map[string]bool, emit func([]byte) error) *reply {
	return &reply{
		thread: string(in.ThreadID), run: string(in.RunID), emit: emit,
		message: newID("msg"), indexed: map[int64]*call{}, taken: taken,
	}
}

// newID returns an id that nobody else has.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()) }

func (r *reply) send(e any) error {
	data, err := encode(e)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return r.emit(data)
}

func (r *reply) begin() error {
	return r.send(event{Type: "RUN_STARTED", ThreadID: r.thread, RunID: r.run, Version: "1.0"})
}

// add takes a chunk. One may hold several things: what was thought comes before what is said, and that before calls.
func (r *reply) add(chunk openai.ChatCompletionChunk) error {
	if chunk.Model != "" {
		r.model = chunk.Model
	}
	if u := readUsage(chunk.Usage); u != nil {
		r.usage = u
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // only one was asked for
		}
		if err := r.addDelta(choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			r.reason = choice.FinishReason
		}
	}
	return nil
}

func (r *reply) addDelta(delta openai.ChatCompletionChunkChoiceDelta) error {
	if err := r.think(reasoning(delta)); err != nil {
		return err
	}
	for _, field := range []respjson.Field{delta.JSON.Content, delta.JSON.Refusal} {
		if err := r.say(piece(field)); err != nil {
			return err
		}
	}
	for _, d := range delta.ToolCalls {
		if err := r.addCall(d); err != nil {
			return err
		}
	}
	return nil
}

// piece returns a field that is a non-empty string, as the JSON that was sent: half of a character is carried on and
// joined with its other half by whoever joins the deltas. It returns nil for anything else.
func piece(field respjson.Field) json.RawMessage {
	raw := field.Raw()
	if len(raw) <= len(`""`) || raw[0] != '"' {
		return nil
	}
	return json.RawMessage(raw)
}

// reasoning returns what the model thinks: reasoning_content of DeepSeek and vLLM, reasoning of Ollama, OpenRouter and
// later versions of vLLM. Where both are sent they are the same.
func reasoning(delta openai.ChatCompletionChunkChoiceDelta) json.RawMessage {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if t := piece(delta.JSON.ExtraFields[name]); t != nil {
			return t
		}
	}
	return nil
}

func (r *reply) think(delta json.RawMessage) error {
	if delta == nil {
		return nil
	}
	if err := r.turnTo(thinking); err != nil {
		return err
	}
	return r.send(event{Type: "REASONING_MESSAGE_CONTENT", MessageID: r.thought, Delta: delta})
}

func (r *reply) say(delta json.RawMessage) error {
	if delta == nil {
		return nil
	}
	if err := r.turnTo(speaking); err != nil {
		return err
	}
	return r.send(event{Type: "TEXT_MESSAGE_CONTENT", MessageID: r.message, Delta: delta})
}

// turnTo closes what is open and opens the other. A message that was closed is continued, as it is the same one; what is
// thought later is a thought of its own.
func (r *reply) turnTo(c channel) error {
	if r.channel == c {
		return nil
	}
	var events []event
	switch r.channel {
	case thinking:
		events = append(events,
			event{Type: "REASONING_MESSAGE_END", MessageID: r.thought}, event{Type: "REASONING_END", MessageID: r.span})
	case speaking:
		events = append(events, event{Type: "TEXT_MESSAGE_END", MessageID: r.message})
	}
	r.channel = c
	switch c {
	case thinking:
		r.span, r.thought = newID("reasoning"), newID("msg")
		events = append(events, event{Type: "REASONING_START", MessageID: r.span},
			event{Type: "REASONING_MESSAGE_START", MessageID: r.thought, Role: "reasoning"})
	case speaking:
		events = append(events, event{Type: "TEXT_MESSAGE_START", MessageID: r.message, Role: "assistant"})
	}
	for _, e := range events {
		if err := r.send(e); err != nil {
			return err
		}
	}
	return nil
}

// runFinished is the RUN_FINISHED of an answer (AG-UI 1.0, section 4.2).
type runFinished struct {
	Type     string       `json:"type"`
	ThreadID string       `json:"threadId"`
	RunID    string       `json:"runId"`
	Result   *stopped     `json:"result,omitempty"`
	Outcome  success      `json:"outcome"`
	Usage    []tokenUsage `json:"usage,omitempty"`
}

type success struct {
	Type    string   `json:"type"`
	Pending []string `json:"pendingToolCallIds,omitempty"`
}

// stopped is the result of an answer that did not end by itself.
type stopped struct {
	FinishReason string `json:"finishReason"`
}

// finish closes what is open and ends the run.
func (r *reply) finish(provider, model string) error {
	if err := r.turnTo(quiet); err != nil {
		return err
	}
	end := runFinished{Type: "RUN_FINISHED", ThreadID: r.thread, RunID: r.run, Outcome: success{Type: "success"}}
	for _, c := range r.calls {
		switch {
		case c.id != "":
			if err := r.send(event{Type: "TOOL_CALL_END", ToolCallID: c.id}); err != nil {
				return err
			}
			end.Outcome.Pending = append(end.Outcome.Pending, c.id)
		case c.given != "" || len(c.early) > 0:
			return namelessCall()
		}
	}
	switch r.reason {
	case "", "stop", "tool_calls", "function_call":
	default:
		end.Result = &stopped{FinishReason: r.reason}
	}
	if r.usage != nil {
		r.usage.Provider, r.usage.Model = provider, model
		if r.model != "" {
			r.usage.Model = r.model
		}
		end.Usage = []tokenUsage{*r.usage}
	}
	return r.send(end)
}
