package agent_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
)

// vector is a case of sse/http-agent.json: what the reference client makes of an answer.
type vector struct {
	Name        string   `json:"name"`
	Status      int      `json:"status"`
	ContentType *string  `json:"contentType"`
	Chunks      [][]byte `json:"chunks"`
	ChunksRLE   []struct {
		Bytes []byte `json:"b64"`
		N     int    `json:"n"`
	} `json:"chunksRle"`
	Events     []any  `json:"events"`
	Summary    []any  `json:"eventsSummary"`
	ErrorKind  string `json:"errorKind"`
	AlsoAccept *struct {
		Events    []any  `json:"events"`
		ErrorKind string `json:"errorKind"`
	} `json:"alsoAccept"`
	noHeader bool
}

// UnmarshalJSON tells a missing contentType (the usual one) from null (none at all).
func (v *vector) UnmarshalJSON(data []byte) error {
	type plain vector
	if err := json.Unmarshal(data, (*plain)(v)); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(data, &members)
	v.noHeader = string(members["contentType"]) == "null"
	return err
}

func (v *vector) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	if v.ContentType != nil {
		w.Header()["Content-Type"] = []string{*v.ContentType}
	}
	if v.noHeader {
		w.Header()["Content-Type"] = nil
	}
	if v.Status != 0 {
		w.WriteHeader(v.Status)
	}
	out := http.NewResponseController(w)
	for _, chunk := range v.Chunks {
		_, _ = w.Write(chunk)
		_ = out.Flush()
	}
	for _, run := range v.ChunksRLE {
		for range run.N {
			_, _ = w.Write(run.Bytes)
		}
	}
}

// codes are the ways in which a failure of the reference shows here.
var codes = map[string]map[string]bool{
	"":              {"": true},
	"invalid-json":  {"agent_bad_stream": true, "agent_truncated": true},
	"not-an-object": {"agent_bad_stream": true},
	"no-type":       {"agent_bad_stream": true},
	"buffer-limit":  {"event_too_large": true},
	"http-status":   {"agent_status": true},
}

func TestVectors(t *testing.T) {
	vectors := read[vector](t, "sse/http-agent.json")
	if len(vectors) != 55 {
		t.Fatalf("%d vectors were read; did the file change?", len(vectors))
	}
	listed := differences(t)
	for i := range vectors {
		v := &vectors[i]
		t.Run(v.Name, func(t *testing.T) {
			srv := httptest.NewServer(v)
			defer srv.Close()
			events, code := ask(t, srv.URL)
			diff := v.differs(t, events, code, v.Events, v.ErrorKind)
			if listed[v.Name] {
				if diff == "" {
					t.Fatal("it no longer differs from the reference; take it off the list")
				}
				if v.AlsoAccept == nil {
					if code != "agent_content_type" {
						t.Errorf("the run ended with code %q, not as no stream at all", code)
					}
					return
				}
				diff = v.differs(t, events, code, v.AlsoAccept.Events, v.AlsoAccept.ErrorKind)
			}
			if diff != "" {
				t.Error(diff)
			}
		})
	}
}

// read returns the cases of a file of vectors, which lie beside package agui.
func read[T any](t *testing.T, file string) (cases []T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "agui", "testdata", "vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// differences are the cases of streams that come out otherwise here than with the reference client, by name. What they
// come out as is what the vector would accept also.
func differences(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, d := range read[struct{ Case string }](t, "differences.json") {
		if name, ok := strings.CutPrefix(d.Case, "sse/http-agent.json "); ok {
			names[name] = true
		}
	}
	return names
}

// differs says in what an outcome is not the wanted one.
func (v *vector) differs(t *testing.T, events [][]byte, code string, want []any, kind string) string {
	t.Helper()
	got := make([]any, len(events))
	for i, event := range events {
		if err := json.Unmarshal(event, &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if v.Summary != nil {
		want = v.Summary
		got = summaries(got, want)
	}
	if want == nil {
		want = []any{}
	}
	if !codes[kind][code] {
		return "the run ended with code " + code + "; in the vector with " + kind
	}
	return cmp.Diff(want, got)
}

// summaries reduces events to what a vector tells of them: some members, or the length of the delta.
func summaries(events, like []any) []any {
	out := make([]any, len(events))
	for i, e := range events {
		event := e.(map[string]any)
		delta, _ := event["delta"].(string)
		var form map[string]any
		if i < len(like) {
			form, _ = like[i].(map[string]any)
		}
		if form == nil {
			out[i] = float64(len(delta))
			continue
		}
		summary := map[string]any{}
		for name := range form {
			summary[name] = event[name]
		}
		if _, ok := form["deltaLength"]; ok {
			summary["deltaLength"] = float64(len(delta))
		}
		out[i] = summary
	}
	return out
}

// ask runs the agent at url, and returns its events and the code with which it failed.
func ask(t *testing.T, url string) ([][]byte, string) {
	t.Helper()
	events, err := collect(t, newAGUI(t, url, agent.AGUIOptions{}))
	return events, codeOf(t, err)
}

func newAGUI(t *testing.T, url string, opts agent.AGUIOptions) *agent.AGUI {
	t.Helper()
	a, err := agent.NewAGUI(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

var input = runner.Input{ThreadID: "t1", RunID: "r1", JSON: []byte(`{"threadId":"t1","runId":"r1","messages":[]}`)}

// collect runs an agent to its end.
func collect(t *testing.T, a runner.Agent) ([][]byte, error) {
	t.Helper()
	var events [][]byte
	err := a.Run(t.Context(), input, func(event []byte) error {
		events = append(events, event)
		return nil
	})
	for i, event := range events {
		if !json.Valid(event) || bytes.ContainsAny(event[:1], " \r\n") {
			t.Errorf("event %d is not an event: %.100q", i, event)
		}
	}
	return events, err
}

// codeOf returns the code of an agent's failure, "" for none.
func codeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	failure, ok := err.(*runner.AgentError)
	if !ok {
		t.Fatalf("the run ended with %v, which is no AgentError", err)
	}
	return failure.Code
}
