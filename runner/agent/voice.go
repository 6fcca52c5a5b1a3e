package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/threadcast/threadcast/runner"
)

// event is an event that the demo sends. What is empty is left out (AG-UI 1.0, section 3).
type event struct {
	Type       string   `json:"type"`
	ThreadID   string   `json:"threadId,omitempty"`
	RunID      string   `json:"runId,omitempty"`
	Version    string   `json:"protocolVersion,omitempty"`
	MessageID  string   `json:"messageId,omitempty"`
	ToolCallID string   `json:"toolCallId,omitempty"`
	ToolName   string   `json:"toolCallName,omitempty"`
	ParentID   string   `json:"parentMessageId,omitempty"`
	StepName   string   `json:"stepName,omitempty"`
	Role       string   `json:"role,omitempty"`
	Delta      any      `json:"delta,omitempty"`
	Content    string   `json:"content,omitempty"`
	Snapshot   any      `json:"snapshot,omitempty"`
	Outcome    *outcome `json:"outcome,omitempty"`
}

// outcome is how a run ends that asks for a decision (AG-UI 1.0, section 4.2).
type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts"`
}

type interrupt struct {
	ID       string          `json:"id"`
	Reason   string          `json:"reason"`
	Message  string          `json:"message"`
	Response json.RawMessage `json:"responseSchema"`
}

// voice is how the demo speaks in one run.
type voice struct {
	thread  string
	run     string
	emit    func([]byte) error
	speed   float64
	chance  *rand.Rand
	ids     int
	outcome *outcome // of RUN_FINISHED; nil is success
}

func newVoice(in runner.Input, opts DemoOptions, emit func([]byte) error) *voice {
	return &voice{
		thread: string(in.ThreadID),
		run:    string(in.RunID),
		emit:   emit,
		speed:  opts.Speed,
		chance: rand.New(rand.NewPCG(opts.Seed, hash(string(in.RunID)))),
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // a hash takes everything
	return h.Sum64()
}

// id returns a new id. It is unique in the thread because the run's id is.
func (v *voice) id(kind string) string {
	v.ids++
	return v.run + "-" + kind + strconv.Itoa(v.ids)
}

// send emits an event, unless ctx is done.
func (v *voice) send(ctx context.Context, e event) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	data, err := encode(e)
	if err != nil {
		return fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return v.emit(data)
}

// encode returns the compact JSON of a value, with <, > and & as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// work is a pause that the demo's speed shortens.
func (v *voice) work(ctx context.Context, d time.Duration) error {
	return wait(ctx, time.Duration(float64(d)/v.speed))
}

// wait returns after d, or with the cause of ctx when ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// say is a whole message of the assistant. It returns the message's id.
func (v *voice) say(ctx context.Context, text string) (string, error) {
	id, err := v.open(ctx)
	if err != nil {
		return "", err
	}
	if err := v.write(ctx, id, text); err != nil {
		return "", err
	}
	return id, v.close(ctx, id)
}

// open begins a message of the assistant.
func (v *voice) open(ctx context.Context) (string, error) {
	id := v.id("message")
	return id, v.send(ctx, event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"})
}

// write adds text to an open message, word by word.
func (v *voice) write(ctx context.Context, id, text string) error {
	return v.stream(ctx, event{Type: "TEXT_MESSAGE_CONTENT", MessageID: id}, text)
}

func (v *voice) close(ctx context.Context, id string) error {
	return v.send(ctx, event{Type: "TEXT_MESSAGE_END", MessageID: id})
}

// stream sends one event like e for each word of text, at the pace of somebody who writes fast.
func (v *voice) stream(ctx context.Context, e event, text string) error {
	for text != "" {
		word := firstWord(text)
		text = text[len(word):]
		e.Delta = word
		if err := v.send(ctx, e); err != nil {
			return err
		}
		jitter := 0.6 + 0.8*v.chance.Float64()
		if err := v.work(ctx, time.Duration(jitter*float64(wordPause))); err != nil {
			return err
		}
	}
	return nil
}

// firstWord returns the first word of text, with the space around it.
func firstWord(text string) string {
	word := strings.TrimLeftFunc(text, unicode.IsSpace)
	end := strings.IndexFunc(word, unicode.IsSpace)
	if end < 0 {
		return text
	}
	after := strings.TrimLeftFunc(word[end:], unicode.IsSpace)
	return text[:len(text)-len(after)]
}
