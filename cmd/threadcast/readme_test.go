//go:build integration

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadmeClient runs the client of the README as it stands: through a restart of the server it follows the thread, and
// starts no run that nobody asked for.
func TestReadmeClient(t *testing.T) {
	if err := npmPackages(); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=20"}}
	n.launch("127.0.0.1:0")
	modules, err := filepath.Abs(filepath.Join("e2e", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.mjs"), []byte(readmeClient(t, n.addr)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "client.mjs")
	printed := &output{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	eventually(t, time.Minute, "the client prints the end of its run", func() bool {
		return strings.Contains(printed.String(), "RUN_FINISHED")
	})
	n.term()
	if code := n.wait(30 * time.Second); code != 0 {
		t.Fatalf("the node ended with code %d", code)
	}
	n = n.restart()
	before := len(printed.String())
	resp, err := client.Post(n.url+"/api/threads/hello/runs", "application/json",
		strings.NewReader(`{"runId":"second","messages":[{"id":"m2","role":"user","content":"Hello again"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	eventually(t, time.Minute, "the client follows again", func() bool {
		later := printed.String()[before:]
		return strings.Contains(later, "second") && strings.Contains(later, "RUN_FINISHED")
	})
	if runs := n.thread("hello").Runs; len(runs) != 2 {
		t.Errorf("the thread has %d runs, want the two that were asked for:\n%s", len(runs), printed)
	}
}

// readmeClient is the JavaScript of the README, with what Node 20 needs and the address of this node.
func readmeClient(t *testing.T, addr string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```js\n")
	code, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 || !strings.Contains(code, "127.0.0.1:8080") {
		t.Fatal("the README has no client")
	}
	code = strings.ReplaceAll(code, "127.0.0.1:8080", addr)
	code = strings.ReplaceAll(code, `from "phoenix"`, `from "phoenix-1816"`)
	return "globalThis.WebSocket = (await import(\"ws\")).WebSocket\n" + code
}
