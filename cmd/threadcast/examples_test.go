//go:build integration

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// example copies docs/examples/NAME, and puts packages of e2e beside it under the names that it imports.
func example(t *testing.T, name string, packages map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "docs", "examples", name))); err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		return dir
	}
	if err := npmPackages(); err != nil {
		t.Fatal(err)
	}
	for name, installed := range packages {
		target, err := filepath.Abs(filepath.Join("e2e", "node_modules", installed))
		if err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "node_modules", name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// perform runs a program to its end and returns what it printed.
func perform(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var printed, complaints output
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &printed, &complaints
	endWithParent(cmd)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, &printed, &complaints)
	}
	return printed.String()
}

// TestExamples runs what docs/examples shows, as it stands, against a node with its built-in agent.
func TestExamples(t *testing.T) {
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=4"}}
	n.launch("127.0.0.1:0")
	for name, tt := range map[string]struct {
		packages map[string]string
		env      []string
		args     []string
	}{
		"curl":      {nil, []string{"SECONDS_BEFORE_LEAVING=0.7"}, []string{"sh", "chat.sh"}},
		"agui-http": {map[string]string{"@ag-ui/client": "@ag-ui/client"}, nil, []string{"node", "client.mjs"}},
		"phoenix":   {map[string]string{"phoenix": "phoenix-1816", "ws": "ws"}, nil, []string{"node", "client.mjs"}},
		"copilotkit": {map[string]string{"@copilotkit/core": "copilotkit-1816", "ws": "ws"},
			[]string{"COPILOTKIT_TELEMETRY_DISABLED=true", "DO_NOT_TRACK=1"}, []string{"node", "client.mjs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "curl" {
				programPath(t, "curl")
			}
			dir := example(t, name, tt.packages)
			printed := perform(t, dir, tt.env, append(tt.args, n.url)...)
			thread := n.newest(name + "-")
			n.ended(thread, n.thread(thread).Runs[0].RunID)
			record := allEvents(n.record(thread, "", "raw"))
			if name == "curl" {
				checkPrinted(t, printed, record)
				return
			}
			var said strings.Builder
			for _, event := range record {
				var e struct{ Type, Delta string }
				if err := json.Unmarshal(event, &e); err != nil {
					t.Fatal(err)
				}
				if e.Type == "TEXT_MESSAGE_CONTENT" {
					said.WriteString(e.Delta)
				}
			}
			if said.Len() < 1000 || !strings.Contains(printed, said.String()) {
				t.Errorf("it printed\n%s\nand the record says\n%s", printed, said.String())
			}
		})
	}
}

// checkPrinted compares positions and events, a line each, with a record.
func checkPrinted(t *testing.T, printed string, record []json.RawMessage) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	var got []json.RawMessage
	for i, line := range lines {
		id, event, _ := strings.Cut(line, "\t")
		if want := fmt.Sprintf("1-%d", i+1); id != want {
			t.Fatalf("line %d is %s, want %s", i, line, want)
		}
		got = append(got, json.RawMessage(event))
	}
	same(t, "what curl printed", got, record)
}

// newest is the thread that was used last of those whose ids begin so.
func (n *node) newest(prefix string) string {
	n.t.Helper()
	var list struct{ Threads []struct{ ID string } }
	n.do("GET", "/api/threads", nil, &list)
	for _, thread := range list.Threads {
		if strings.HasPrefix(thread.ID, prefix) {
			return thread.ID
		}
	}
	n.t.Fatalf("there is no thread %s among %v", prefix, list.Threads)
	return ""
}
