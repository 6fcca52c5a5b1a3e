package main_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// readyTimeout is how long a process may take until it is ready, on a machine that has other things to do.
const readyTimeout = 30 * time.Second

// node is the built command, serving on a free port of the loopback interface with a database of its own.
type node struct {
	t     testing.TB
	dir   string   // holds the database
	flags []string // beyond those that every node gets
	env   []string // beyond that of the tests
	addr  string   // HOST:PORT
	url   string   // http://HOST:PORT, without a slash at the end
	cmd   *exec.Cmd

	stdout, stderr *output
	exited         chan struct{} // closed when the process is gone
}

// start starts a node with these flags and returns it when it is ready. It is killed at the end of the test, if it is not
// gone by then.
func start(t testing.TB, flags ...string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), flags: flags}
	n.launch("127.0.0.1:0")
	return n
}

// restart starts a node that is gone again, on the same database and the same port. Flags given here are added to
// those that it had; the last one of a name counts.
func (n *node) restart(flags ...string) *node {
	n.t.Helper()
	select {
	case <-n.exited:
	default:
		n.t.Fatalf("restart: the process is still there")
	}
	next := &node{t: n.t, dir: n.dir, env: n.env, flags: append(n.flags[:len(n.flags):len(n.flags)], flags...)}
	next.launch(n.addr)
	return next
}

// database is the path of the node's SQLite file.
func (n *node) database() string { return filepath.Join(n.dir, "threadcast.db") }

// launch starts the process and waits until it is ready.
func (n *node) launch(listen string) {
	n.t.Helper()
	args := append([]string{"serve", "--listen", listen, "--database", n.database()}, n.flags...)
	n.run(args)
	n.awaitReady()
}

// awaitReady waits until the process has printed its address and is ready to serve.
func (n *node) awaitReady() {
	n.t.Helper()
	opened := regexp.MustCompile(`(?m)^  open    (http://(\S+))/$`)
	eventually(n.t, readyTimeout, "the node prints its address", func() bool {
		if n.gone() {
			n.t.Fatalf("the node ended with code %d before it was ready", n.cmd.ProcessState.ExitCode())
		}
		found := opened.FindStringSubmatch(n.stdout.String())
		if found != nil {
			n.url, n.addr = found[1], found[2]
		}
		return found != nil
	})
	eventually(n.t, readyTimeout, "the node is ready", func() bool {
		resp, err := client.Get(n.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// run starts the process and sees to it that it ends.
func (n *node) run(args []string) {
	n.t.Helper()
	path, err := binary()
	if err != nil {
		n.t.Fatal(err)
	}
	n.stdout, n.stderr, n.exited = &output{}, &output{}, make(chan struct{})
	n.cmd = exec.Command(path, args...)
	n.cmd.Dir = n.dir
	n.cmd.Env = append(cleanEnv(), n.env...)
	n.cmd.Stdout, n.cmd.Stderr = n.stdout, n.stderr
	endWithParent(n.cmd)
	if err := n.cmd.Start(); err != nil {
		n.t.Fatalf("start the node: %v", err)
	}
	go func() {
		defer close(n.exited)
		_ = n.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	n.t.Cleanup(n.end)
}

// end kills what is left of the node and judges what it printed.
func (n *node) end() {
	_ = n.cmd.Process.Kill() // it may be gone already
	<-n.exited
	client.CloseIdleConnections()
	text := n.stderr.String()
	for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
		if strings.Contains(text, bad) {
			n.t.Errorf("the node printed %q", bad)
		}
	}
	if n.t.Failed() {
		n.t.Logf("the node at %s printed:\n%s\n%s", n.addr, n.stdout, text)
	}
}

// gone tells whether the process has ended.
func (n *node) gone() bool {
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does.
func (n *node) kill() {
	n.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		n.t.Fatalf("kill the node: %v", err)
	}
	<-n.exited
}

// term sends SIGTERM and returns at once; see [node.wait].
func (n *node) term() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatalf("send SIGTERM to the node: %v", err)
	}
}

// wait returns the exit code of a process that ends within d.
func (n *node) wait(d time.Duration) int {
	n.t.Helper()
	select {
	case <-n.exited:
	case <-time.After(d):
		n.t.Fatalf("the node has not ended within %s", d)
	}
	return n.cmd.ProcessState.ExitCode()
}

// cleanEnv is the environment without anything that would configure a node.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "THREADCAST_") {
			env = append(env, v)
		}
	}
	return env
}

// output collects what a process prints, and can be read while it does.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*output)(nil)

// Write adds to the output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns what was printed so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// eventually waits until ok returns true, and ends the test if that takes longer than d.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, d)
		}
	}
}

// await receives from ch, and ends the test if that takes longer than d.
func await[T any](t testing.TB, ch <-chan T, d time.Duration, what string) T {
	t.Helper()
	select {
	case value := <-ch:
		return value
	case <-time.After(d):
		t.Fatalf("%s: not within %s", what, d)
		panic("unreachable")
	}
}

// hungUp waits until the agent sees that its request for a run was closed. One that has just ended by itself may be seen
// so too.
func hungUp(t testing.TB, agent *agenttest.Server, run string, d time.Duration) {
	t.Helper()
	deadline := time.Now().Add(d)
	for {
		h := await(t, agent.Closed(), time.Until(deadline), "the agent's request for run "+run+" is closed")
		if h.RunID == run {
			return
		}
	}
}
