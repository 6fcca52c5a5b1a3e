package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// npmPackages sees to it that the packages of e2e/package-lock.json are installed, as they are in this file.
var npmPackages = sync.OnceValue(func() error {
	lock, err := os.Stat(filepath.Join("e2e", "package-lock.json"))
	if err != nil {
		return err
	}
	installed, err := os.Stat(filepath.Join("e2e", "node_modules", ".package-lock.json"))
	if err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = "e2e"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in cmd/threadcast/e2e (it needs Node 20 or later, and the registry): %w\n%s", err, out)
	}
	return nil
})

// needNode leaves a test out in short mode where Node is not installed.
func needNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	switch {
	case err != nil && testing.Short():
		t.Skip("left out: it needs Node")
	case err != nil:
		t.Fatalf("this test needs Node 20 or later: %v", err)
	}
}

// fact is a line that a script prints.
type fact struct {
	Fact    string          `json:"fact"`
	Why     string          `json:"why"`
	URL     string          `json:"url"`
	RunID   string          `json:"runId"`
	Code    int             `json:"code"`
	N       int             `json:"n"`
	Name    string          `json:"name"`
	Events  int             `json:"events"`
	Resumed bool            `json:"resumed"`
	Cursor  string          `json:"cursor"`
	Accept  string          `json:"accept"`
	Stopped json.RawMessage `json:"stopped"`
	Body    json.RawMessage `json:"body"`
	Seen    []struct {
		RunID string          `json:"runId"`
		Event json.RawMessage `json:"event"`
	} `json:"seen"`
}

// script is a Node program of the folder e2e.
type script struct {
	t     *testing.T
	facts chan fact
	past  []fact // those that were read
	err   *output
}

// runScript starts a program. It is killed at the end of the test, if it is not gone by then.
func runScript(t *testing.T, args ...string) *script {
	t.Helper()
	if err := npmPackages(); err != nil {
		t.Fatal(err)
	}
	sc := &script{t: t, facts: make(chan fact, 1024), err: &output{}}
	cmd := exec.Command("node", args...)
	cmd.Dir, cmd.Stderr = "e2e", sc.err
	cmd.Env = append(os.Environ(), "COPILOTKIT_TELEMETRY_DISABLED=true", "DO_NOT_TRACK=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start node: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(sc.facts)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var f fact
			if json.Unmarshal(lines.Bytes(), &f) != nil {
				f = fact{Fact: "failed", Why: "printed " + lines.Text()}
			}
			sc.facts <- f
		}
		_ = cmd.Wait() // what it had to say is read
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(args, " "), sc.err)
		}
	})
	return sc
}

// await waits for a fact and passes over others.
func (sc *script) await(name string) fact {
	sc.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case f, ok := <-sc.facts:
			sc.past = append(sc.past, f)
			switch {
			case !ok:
				sc.t.Fatalf("the script ended before %q", name)
			case f.Fact == "failed":
				sc.t.Fatalf("the script failed: %s", f.Why)
			case f.Fact == name:
				return f
			}
		case <-late.C:
			sc.t.Fatalf("the script did not report %q", name)
		}
	}
}

// closes are the close codes that were reported so far.
func (sc *script) closes() (codes []int) {
	for _, f := range sc.past {
		if f.Fact == "closed" {
			codes = append(codes, f.Code)
		}
	}
	return codes
}
