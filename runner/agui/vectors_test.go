package agui_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agui"
)

// vectors reads cases made with the protocol's reference client; see testdata/vectors/README.md.
func vectors[T any](t *testing.T, file string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal(file, "holds no cases")
	}
	return cases
}

// value decodes JSON for comparison by value.
func value(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func bytesOf(events []json.RawMessage) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e
	}
	return out
}

func TestVectorsOfVerification(t *testing.T) {
	type vector struct {
		Name    string
		Rule    string
		Events  []json.RawMessage
		Valid   bool
		FailsAt int
	}
	for _, file := range []string{"verify/handpicked.json", "verify/random.json"} {
		for _, c := range vectors[vector](t, file) {
			t.Run(c.Name, func(t *testing.T) {
				var v agui.Verifier
				at, err := verifyAll(&v, c.Events)
				if (err == nil) != c.Valid {
					t.Fatalf("valid = %v, want %v; error at %d: %v", err == nil, c.Valid, at, err)
				}
				if !c.Valid && at != c.FailsAt {
					t.Fatalf("fails at %d, want %d; error: %v", at, c.FailsAt, err)
				}
				// A case names the rule that it is about; what it trips over may be ownership, which is V17.
				m := (*agui.MalformedError)(nil)
				if errors.As(err, &m) && c.Rule != "" && m.Rule != c.Rule && m.Rule != "V17" {
					t.Errorf("rule = %s, want %s: %v", m.Rule, c.Rule, err)
				}
			})
		}
	}
}

// verifyAll returns the place of the first event that v refuses, and why.
func verifyAll(v *agui.Verifier, events []json.RawMessage) (int, error) {
	for i, e := range events {
		if err := v.Verify(e); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

func TestVectorsOfChunks(t *testing.T) {
	type vector struct {
		Name          string
		Input, Output []json.RawMessage
		Error         string
	}
	for _, c := range vectors[vector](t, "chunks/handpicked.json") {
		t.Run(c.Name, func(t *testing.T) {
			out, err := agui.Expand(bytesOf(c.Input))
			if (err != nil) != (c.Error != "") {
				t.Fatalf("error = %v, want %q", err, c.Error)
			}
			if len(out) != len(c.Output) {
				t.Fatalf("%d events, want %d: %s", len(out), len(c.Output), out)
			}
			for i := range out {
				if diff := cmp.Diff(value(t, c.Output[i]), value(t, out[i])); diff != "" {
					t.Errorf("event %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

type applyVector struct {
	Name                          string
	InitialMessages, InitialState json.RawMessage
	Events                        []json.RawMessage
	Messages, State               json.RawMessage
	PendingInterrupts             json.RawMessage
}

func TestVectorsOfTheReducer(t *testing.T) {
	for _, file := range []string{"apply/replay-safe.json", "apply/reference-divergence.json"} {
		for _, c := range vectors[applyVector](t, file) {
			if c.Name == "legacy-binary-part-is-upgraded" {
				// Consumers translate retired shapes (section 17); a relay and its reducer keep them.
				c.Messages = json.RawMessage(`[{"id":"u1","role":"user","content":[
					{"type":"binary","mimeType":"image/png","url":"https://e.x/a.png","filename":"a.png"}]}]`)
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Run("live", func(t *testing.T) { c.check(t, numbered(c.Events)) })
				t.Run("compacted", func(t *testing.T) { c.check(t, agui.Compact(numbered(c.Events))) })
			})
		}
	}
}

func numbered(events []json.RawMessage) []agui.Event {
	out := make([]agui.Event, len(events))
	for i, e := range events {
		out[i] = agui.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: e}
	}
	return out
}

func (c applyVector) check(t *testing.T, events []agui.Event) {
	t.Helper()
	r, err := agui.NewReducer(c.InitialMessages, c.InitialState)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := r.Apply(e.Data); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
	}
	if diff := cmp.Diff(value(t, c.Messages), value(t, r.Messages())); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(value(t, c.State), value(t, r.State())); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	pending := r.Pending()
	if pending == nil {
		pending = []byte("[]")
	}
	want := c.PendingInterrupts
	if want == nil {
		want = []byte("[]")
	}
	if diff := cmp.Diff(value(t, want), value(t, pending)); diff != "" {
		t.Errorf("pending interrupts (-want +got):\n%s", diff)
	}
}
