package agui_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agui"
)

// vectors reads a list of cases, which were made with the protocol's reference client; see testdata/vectors/README.md.
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

// difference is a case that comes out otherwise here than the vectors have it: one of testdata/vectors/differences.json,
// which lists them all.
type difference struct {
	Case    string // "apply/replay-safe.json legacy-binary-part-is-upgraded"
	Reason  string
	Instead json.RawMessage // what is right here, where the vector does not say it itself
}

// differences returns the listed ones by case.
func differences(t *testing.T) map[string]difference {
	t.Helper()
	list := map[string]difference{}
	for _, d := range vectors[difference](t, "differences.json") {
		if _, twice := list[d.Case]; twice || d.Reason == "" {
			t.Errorf("%s is listed twice, or without a reason", d.Case)
		}
		list[d.Case] = d
	}
	return list
}

// judge fails the test if a case differs and is not listed, or is listed and does not differ.
func judge(t *testing.T, name, diff string) {
	t.Helper()
	_, listed := differences(t)[name]
	switch {
	case listed && diff == "":
		t.Errorf("%s no longer differs from the reference; take it off the list", name)
	case !listed && diff != "":
		t.Error(diff)
	}
}

// TestVectorsAreComplete compares the files with the sums that were made of the originals.
func TestVectorsAreComplete(t *testing.T) {
	dir := filepath.Join("testdata", "vectors")
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[name] = sum
	}
	got, cases := map[string]string{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		got[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		for _, c := range vectors[struct{ Name string }](t, name) {
			cases[name+" "+c.Name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-original +here):\n%s", diff)
	}
	if len(want) != 9 || len(cases) != 544 {
		t.Errorf("there are %d files with %d cases", len(want), len(cases))
	}
	for name := range differences(t) {
		if !cases[name] {
			t.Errorf("%s is listed, but is no case", name)
		}
	}
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
				diff := ""
				if (err == nil) != c.Valid {
					diff = fmt.Sprintf("valid = %v, want %v; error at %d: %v", err == nil, c.Valid, at, err)
				} else if !c.Valid && at != c.FailsAt {
					diff = fmt.Sprintf("fails at %d, want %d; error: %v", at, c.FailsAt, err)
				}
				judge(t, file+" "+c.Name, diff)
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
	const file = "chunks/handpicked.json"
	for _, c := range vectors[vector](t, file) {
		t.Run(c.Name, func(t *testing.T) {
			out, err := agui.Expand(bytesOf(c.Input))
			diff := cmp.Diff(values(t, bytesOf(c.Output)), values(t, out))
			if (err != nil) != (c.Error != "") {
				diff += fmt.Sprintf("error = %v, want %q", err, c.Error)
			}
			judge(t, file+" "+c.Name, diff)
		})
	}
}

func values(t *testing.T, events [][]byte) []any {
	t.Helper()
	out := make([]any, len(events))
	for i, e := range events {
		out[i] = value(t, e)
	}
	return out
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
			t.Run(c.Name, func(t *testing.T) {
				for how, events := range map[string][]agui.Event{
					"live": numbered(c.Events), "compacted": agui.Compact(numbered(c.Events)),
				} {
					t.Run(how, func(t *testing.T) {
						name := file + " " + c.Name
						judge(t, name, c.differs(t, events))
						if d, listed := differences(t)[name]; listed {
							here := c
							here.Messages = nil // a RawMessage is written over in place
							if err := json.Unmarshal(d.Instead, &here); err != nil {
								t.Fatal(err)
							}
							if diff := here.differs(t, events); diff != "" {
								t.Error(diff)
							}
						}
					})
				}
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

// differs says in what the result of events is not the vector's.
func (c applyVector) differs(t *testing.T, events []agui.Event) string {
	t.Helper()
	r, err := agui.NewReducer(c.InitialMessages, c.InitialState)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := r.Apply(e.Data); err != nil {
			return fmt.Sprintf("%s: %v", e.Data, err)
		}
	}
	want := [][]byte{c.Messages, c.State, orNone(c.PendingInterrupts)}
	got := [][]byte{r.Messages(), r.State(), orNone(r.Pending())}
	return cmp.Diff(values(t, want), values(t, got))
}

func orNone(list []byte) []byte {
	if list == nil {
		return []byte("[]")
	}
	return list
}
