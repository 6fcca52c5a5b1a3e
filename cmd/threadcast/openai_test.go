//go:build integration

package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// modelNode is a node whose agents are models behind a real server of the chat completions API, in a process of its own.
type modelNode struct {
	*node
	model *script
}

func startModel(t *testing.T) *modelNode {
	t.Helper()
	model := runScript(t, "openai-model.mjs")
	address := model.await("listening").URL + "/v1?model=o4-mini"
	n := &node{t: t, dir: t.TempDir(), env: []string{"MODEL_KEY=test-key", "OTHER_KEY=another"}}
	n.flags = []string{
		"--agent", "ai=openai:" + address + "&key_env=MODEL_KEY&allow=temperature&system=Be+brief.",
		"--agent", "locked=openai:" + address + "&key_env=OTHER_KEY",
	}
	n.launch("127.0.0.1:0")
	return &modelNode{node: n, model: model}
}

// on is the same for a test within the test.
func (m *modelNode) on(t *testing.T) *modelNode {
	n := *m.node
	n.t = t
	return &modelNode{node: &n, model: m.model}
}

// ask runs a model on messages, waits for the end, and returns it with the events.
func (m *modelNode) ask(run string, members map[string]any) (runInfo, []json.RawMessage) {
	m.t.Helper()
	members["runId"] = run
	if status, data, err := m.request(http.MethodPost, threadPath(run)+"/runs", members); err != nil || status != http.StatusAccepted {
		m.t.Fatalf("run %s was not accepted: %d %s %v", run, status, data, err)
	}
	end := m.ended(run, run)
	events := allEvents(m.record(run, "", "raw"))
	verify(m.t, run, events)
	return end, events
}

func asks(text string) map[string]any { return map[string]any{"messages": says("u1", text)} }

// chatRequest is what the model's server was asked.
type chatRequest struct {
	Model       string
	Temperature *float64
	Messages    []struct {
		Role       string
		Content    any
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	Tools []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
}

func (m *modelNode) asked() (req chatRequest) {
	m.t.Helper()
	if err := json.Unmarshal(m.model.await("asked").Body, &req); err != nil {
		m.t.Fatal(err)
	}
	return req
}

// said joins the deltas of a type.
func said(t *testing.T, events []json.RawMessage, kind string) string {
	t.Helper()
	var b strings.Builder
	for _, data := range events {
		var e struct{ Type, Delta string }
		if json.Unmarshal(data, &e) == nil && e.Type == kind {
			b.WriteString(e.Delta)
		}
	}
	return b.String()
}

func TestModelStreams(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	in := asks("story")
	in["forwardedProps"] = map[string]any{"temperature": 0.25, "model": "not allowed"}
	end, events := m.ask("story", in)
	if end.State != "finished" {
		t.Fatalf("the run is %+v", end)
	}
	if got := said(t, events, "TEXT_MESSAGE_CONTENT"); strings.Count(got, "wörd") != 300 || !strings.HasSuffix(got, "wörd299 ") {
		t.Errorf("the story is %.200q", got)
	}
	if got := said(t, events, "REASONING_MESSAGE_CONTENT"); got != "They want a story." {
		t.Errorf("the thought is %q", got)
	}
	last := events[len(events)-1]
	for _, want := range []string{`"provider":"openai-compatible"`, `"model":"o4-mini"`, `"inputTokens":11,"outputTokens":22`} {
		if !strings.Contains(string(last), want) {
			t.Errorf("the last event is %s, which lacks %s", last, want)
		}
	}
	req := m.asked()
	if req.Model != "o4-mini" || req.Temperature == nil || *req.Temperature != 0.25 || len(req.Messages) != 2 || req.Messages[0].Content != "Be brief." {
		t.Errorf("the model was asked %+v", req)
	}

	if end, _ := m.ask("slow", asks("slow")); end.State != "finished" {
		t.Errorf("a slow answer: the run is %+v", end)
	}
	if _, events := m.ask("short", asks("short")); !strings.Contains(string(events[len(events)-1]), `"result":{"finishReason":"length"}`) {
		t.Errorf("an answer at its limit ends with %s", events[len(events)-1])
	}
}

func TestModelCallsToolsOfTheClient(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	tools := json.RawMessage(`[{"name":"weather","description":"The weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`)
	question := asks("weather")
	question["tools"] = tools
	end, events := m.ask("weather", question)
	if last := string(events[len(events)-1]); !strings.Contains(last, `"pendingToolCallIds":["call_a","call_b"]`) {
		t.Fatalf("the run is %+v and ends with %s", end, last)
	}
	if req := m.asked(); len(req.Tools) != 1 || req.Tools[0].Function.Name != "weather" || !strings.Contains(string(req.Tools[0].Function.Parameters), `"city"`) {
		t.Errorf("the model was offered %+v", req.Tools)
	}
	messages, _ := reduce(t, events)
	var conversation []any
	for _, message := range messages {
		conversation = append(conversation, message)
	}
	for id, text := range map[string]string{"call_a": "24 degrees", "call_b": "3 degrees"} {
		conversation = append(conversation, map[string]any{"id": "result-" + id, "role": "tool", "toolCallId": id, "content": text})
	}
	answer := map[string]any{"runId": "second", "messages": conversation, "tools": tools}
	if status, data, err := m.request(http.MethodPost, threadPath("weather")+"/runs", answer); err != nil || status != http.StatusAccepted {
		t.Fatalf("the results were not accepted: %d %s %v", status, data, err)
	}
	if end := m.ended("weather", "second"); end.State != "finished" {
		t.Errorf("the second run is %+v", end)
	}
	events = eventsOf(m.record("weather", "", "raw"), "second")
	if got := said(t, events, "TEXT_MESSAGE_CONTENT"); got != "24 degrees, 3 degrees" {
		t.Errorf("with the results the model says %q", got)
	}
	var shape []string
	req := m.asked()
	for _, msg := range req.Messages {
		line := msg.Role + msg.ToolCallID
		for _, call := range msg.ToolCalls {
			line += " " + call.ID + call.Function.Arguments
		}
		shape = append(shape, line)
	}
	want := []string{"system", "user", `assistant call_a{"city":"Lisbon"} call_b{"city":"Oslo"}`, "toolcall_a", "toolcall_b"}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Errorf("the model was asked (-want +got):\n%s", diff)
	}
}

func TestModelFails(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	for question, want := range map[string]string{
		"limit for long": "model_rate_limited", "limit for now": "", "failure": "agent_status", "too long": "model_context_length",
		"no model": "model_not_found", "malformed": "agent_content_type", "disconnect": "agent_unreachable", "cut": "agent_truncated",
	} {
		t.Run(question, func(t *testing.T) {
			thread := strings.ReplaceAll(question, " ", "-")
			end, events := m.on(t).ask(thread, asks(question))
			last := parseEnd(t, events)
			if last.Code != want || (end.State == "finished") != (want == "") {
				t.Errorf("the run is %+v and ends with %+v; want the code %q", end, last, want)
			}
			if strings.Contains(last.Message, "127.0.0.1") || strings.Contains(last.Message, "test-key") {
				t.Errorf("viewers are told %q", last.Message)
			}
			if text := said(t, events, "TEXT_MESSAGE_CONTENT"); question == "cut" && !strings.HasPrefix(text, "wörd0 ") {
				t.Errorf("what was said before the cut is %q", text)
			}
		})
	}
	t.Run("key", func(t *testing.T) {
		in := asks("story")
		in["agentId"] = "locked"
		_, events := m.on(t).ask("key", in)
		if last := parseEnd(t, events); last.Code != "model_auth" {
			t.Errorf("the run ends with %+v", last)
		}
		if strings.Contains(m.stderr.String(), "another") {
			t.Error("the log tells the key")
		}
	})
}

// parseEnd reads the last event.
func parseEnd(t *testing.T, events []json.RawMessage) (e struct{ Type, Code, Message string }) {
	t.Helper()
	if err := json.Unmarshal(events[len(events)-1], &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestModelIsStopped(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	m.startRun("t1", runRequest{RunID: "r1", Messages: says("u1", "on and on")})
	eventually(t, patience, "the model speaks", func() bool {
		return len(allEvents(m.record("t1", "", "raw"))) > 20
	})
	began := time.Now()
	if code := m.do(http.MethodPost, threadPath("t1")+"/stop", nil, nil); code != http.StatusOK {
		t.Errorf("stop was answered with %d", code)
	}
	m.model.await("closed")
	took := time.Since(began)
	t.Logf("measured: %s: the model's server saw its request closed %s after the stop", t.Name(), took)
	if took > time.Second {
		t.Errorf("the model's server saw that it is stopped after %s", took)
	}
	if end := m.ended("t1", "r1"); end.State != "stopped" {
		t.Errorf("the run is %+v", end)
	}
}
