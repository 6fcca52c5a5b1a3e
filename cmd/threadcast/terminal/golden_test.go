package terminal_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
	"github.com/threadcast/threadcast/runner/agenttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorded are the runs of a file, an event a line.
func recorded(t *testing.T, name string) []agenttest.Step {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var steps []agenttest.Step
	for event := range strings.Lines(string(data)) {
		steps = append(steps, agenttest.Emit(strings.TrimSuffix(event, "\n")))
	}
	return steps
}

// TestRecordedRunsAreShown compares what is shown of a recorded run, and of one that asks and is answered, with the golden
// files. With -update it writes them.
func TestRecordedRunsAreShown(t *testing.T) {
	s := open(t, "", recorded(t, "run.jsonl"), asking(), said(2))
	question := `[{"type":"text","text":"What is the \u001b[1mweather?\nIn New York."},{"type":"image","source":{"type":"data","value":"AAAA","mimeType":"image/png"}}]`
	body := `{"runId":"r1","messages":[{"id":"q","role":"user","content":` + question + `}]}`
	if code, text := s.call("POST", "/api/threads/t/runs", body); code != 202 {
		t.Fatalf("it was answered %d %s", code, text)
	}
	s.saved("t", "r1")
	s.run("t", "r2", "And tomorrow?", "")
	s.saved("t", "r2")
	s.run("t", "r3", "Go on", `,"resume":[{"interruptId":"i-r2","status":"resolved","payload":{"approved":true}}]`)
	s.saved("t", "r3")
	wide := func(c *terminal.Config) { c.OutTerminal, c.Color, c.Width = true, true, func() int { return 100 } }
	tests := map[string]struct {
		change  func(*terminal.Config)
		tailing terminal.Tailing
	}{
		"plain.txt":   {nil, terminal.Tailing{}},
		"raw.txt":     {nil, terminal.Tailing{Raw: true}},
		"full.txt":    {func(c *terminal.Config) { c.Full = true }, terminal.Tailing{Raw: true}},
		"color.txt":   {wide, terminal.Tailing{}},
		"lines.jsonl": {func(c *terminal.Config) { c.JSON = true }, terminal.Tailing{Raw: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.tailing.Thread, test.tailing.Once = "t", true
			c := s.tail(test.change, test.tailing)
			c.ends(0)
			golden(t, name, c.out.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}
