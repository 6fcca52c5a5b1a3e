package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// person is somebody at a terminal, with a command that runs in it.
type person struct {
	t      testing.TB
	cmd    *exec.Cmd
	tty    *os.File
	screen *output
	exited chan struct{}
}

// sits starts the command in a terminal of its own.
func sits(t testing.TB, n *node, args ...string) *person {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, cmd: exec.Command(path, args...), screen: &output{}, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = t.TempDir(), append(cleanEnv(), "THREADCAST_SERVER="+n.url, "TERM=xterm", "NO_COLOR=")
	endWithParent(p.cmd)
	if p.tty, err = pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		buf := make([]byte, 4096)
		for {
			n, err := p.tty.Read(buf)
			_, _ = p.screen.Write(buf[:n])
			if err != nil { // the terminal is closed when the command has ended
				break
			}
		}
		_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone already
		<-p.exited
		_ = p.tty.Close()
		if t.Failed() {
			t.Logf("%v showed:\n%q", args, p.screen)
		}
	})
	return p
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := p.tty.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until a text is on the screen.
func (p *person) sees(text string) {
	p.t.Helper()
	eventually(p.t, patience, "there is "+text+" on the screen", func() bool { return strings.Contains(p.screen.String(), text) })
}

// leaves waits until the command has ended, and checks its exit code.
func (p *person) leaves(code int) {
	p.t.Helper()
	await(p.t, p.exited, patience, "the command ends")
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("it ended with code %d, want %d", got, code)
	}
}

const ctrlC = "\x03"

// demoNode is a node whose built-in agent is in no hurry to be waited for.
func demoNode(t *testing.T) *node {
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=100"}}
	n.launch("127.0.0.1:0")
	return n
}

func TestTerminalAsksAndIsAsked(t *testing.T) {
	t.Parallel()
	n := demoNode(t)
	asked := sits(t, n, "ask", "--thread", "t", "approve")
	asked.sees("Send the summary to the whole team?\x1b[0m\r\n\x1b[33m         approve? [y/n] ")
	asked.types("y\r")
	asked.sees("**Approved**")
	asked.leaves(0)
	if got := n.thread("t"); got.State != "finished" || len(got.Runs) != 2 {
		t.Errorf("the thread is %+v", got)
	}
}

// Two people follow a thread. Its server is killed and started again: both have every word once, and what comes then.
func TestTerminalsOutliveTheirServer(t *testing.T) {
	t.Parallel()
	words := 200
	agent := agenttest.NewServer(t)
	say := agenttest.Repeat(words, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"<{run}.{i}>"}`, time.Millisecond)
	begin := []agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"m-{run}","role":"assistant"}`), say,
	}
	end := []agenttest.Step{agenttest.Emit(`{"type":"TEXT_MESSAGE_END","messageId":"m-{run}"}`),
		agenttest.Emit(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`)}
	agent.Handle("story", append(begin[:3:3], agenttest.WaitFor("never")), append(begin[:3:3], end...))
	n := start(t, "--agent", "story=agui:"+agent.URL("story"), "--log-level", "warn")
	people := []*person{sits(t, n, "tail", "t"), sits(t, n, "tail", "t", "--raw")}
	for _, p := range people {
		p.sees("nothing here yet")
	}
	n.startRun("t", runRequest{RunID: "a", Messages: says("u1", "Tell me")})
	for _, p := range people {
		p.sees(fmt.Sprintf("<a.%d>", words-1))
	}
	n.kill()
	for _, p := range people {
		p.sees("the connection is lost; reconnecting")
	}
	n = n.restart()
	n.startRun("t", runRequest{RunID: "b", Messages: says("u2", "Again")})
	for i, p := range people {
		p.sees("finished")
		p.types(ctrlC)
		p.leaves(0)
		var seen []string
		for _, m := range regexp.MustCompile(`<([ab]\.\d+)>`).FindAllStringSubmatch(p.screen.String(), -1) {
			seen = append(seen, m[1])
		}
		for j := range 2 * words {
			if want := fmt.Sprintf("%c.%d", "ab"[j/words], j%words); len(seen) != 2*words || seen[j] != want {
				t.Fatalf("person %d saw %d words, and not %s in its place", i+1, len(seen), want)
			}
		}
		if got := p.screen.String(); !strings.Contains(got, "(lost)") || strings.Count(got, "Tell me") != 1 {
			t.Errorf("person %d saw %q", i+1, got)
		}
	}
}

func TestTerminalThatIsLeftLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	n := start(t)
	asked := sits(t, n, "ask", "silence", "--thread", "quiet one")
	asked.sees("I will now be silent")
	watching := sits(t, n, "tail", "quiet one")
	watching.sees("silence")
	asked.types(ctrlC)
	asked.leaves(130)
	asked.sees("The run goes on without you.\r\n  follow it   threadcast tail 'quiet one'")
	env := []string{"THREADCAST_SERVER=" + n.url}
	if got := execute(t, env, "threads"); got.code != 0 || !regexp.MustCompile(`(?m)^running .* quiet one  silence$`).MatchString(got.stdout) {
		t.Errorf("the list is %+v", got)
	}
	if got := execute(t, env, "stop", "quiet one"); got.code != 0 || !strings.HasPrefix(got.stdout, "Stopped run ") {
		t.Errorf("the stop ends with %+v", got)
	}
	watching.sees("stopped")
	if got := execute(t, env, "stop", "quiet one", "--json"); got.stdout != `{"stopped":false}`+"\n" {
		t.Errorf("the second stop ends with %+v", got)
	}
}

// Without a terminal the answer is on the standard output and nothing else, without colours.
func TestAskWithoutATerminal(t *testing.T) {
	t.Parallel()
	n := demoNode(t)
	got := execute(t, nil, "ask", "--server", n.url, "tool", "for", "Paris")
	if got.code != 0 || !strings.Contains(got.stdout, "**Paris**") || strings.Contains(got.stdout+got.stderr, "\x1b") {
		t.Errorf("it ends with %+v", got)
	}
	if !regexp.MustCompile(`^thread   ask-\w+\ntool     weather \{"city":"Paris".*\nresult   weather .*\n$`).MatchString(got.stderr) {
		t.Errorf("besides it says %q", got.stderr)
	}
	failed := execute(t, []string{"THREADCAST_SERVER=" + n.url}, "ask", "fail", "--json")
	var last struct{ Event struct{ Type, Code string } }
	lines := strings.Split(strings.TrimSpace(failed.stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || failed.code != 1 || last.Event.Code != "demo_failure" {
		t.Errorf("a failure ends with %+v: %v", failed, err)
	}
	if got := execute(t, nil, "ask", "--server", n.url, "--thread", "t", "approve"); got.code != 4 || !strings.Contains(got.stderr, " --answer yes") {
		t.Errorf("a question ends with %+v", got)
	}
	if got := execute(t, nil, "ask", "--server", n.url, "--thread", "t", "--answer", "no"); got.code != 0 || !strings.Contains(got.stdout, "**Declined.**") {
		t.Errorf("its answer ends with %+v", got)
	}
	if code := n.do(http.MethodGet, threadPath("t"), nil, nil); code != http.StatusOK {
		t.Errorf("the thread is answered with %d", code)
	}
}

// notThreadcast is the URL of some other server.
func notThreadcast(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestTerminalCommandsRefuseWhatCannotBeMeant(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing to ask":    {[]string{"ask"}, 2, "threadcast ask --help explains the flags."},
		"an answer to none": {[]string{"ask", "--answer", "yes"}, 2, "--answer needs --thread"},
		"no thread":         {[]string{"tail"}, 2, "threadcast tail --help"},
		"two threads":       {[]string{"tail", "a", "b"}, 2, "name one thread, and not 2"},
		"a bad place":       {[]string{"tail", "a", "--after", "1-1", "--from-now"}, 2, "cannot both be given"},
		"too much to stop":  {[]string{"stop", "a", "b", "c"}, 2, "threadcast stop --help"},
		"a bad number":      {[]string{"threads", "--limit", "-1"}, 2, "--limit"},
		"a bad server":      {[]string{"threads", "--server", "localhost:8080"}, 2, `"localhost:8080" is not the URL of a node`},
		"a flag of another": {[]string{"threads", "--raw"}, 2, "-raw"},
		"a bad word":        {[]string{"ask", "x", "--on-busy", "wait"}, 2, `"wait" is none of reject`},
		"nobody answers":    {[]string{"threads", "--server", "http://127.0.0.1:1"}, 3, "cannot reach http://127.0.0.1:1: "},
		"no threadcast":     {[]string{"threads", "--server", notThreadcast(t)}, 1, "does not answer as threadcast does"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := execute(t, nil, test.args...); got.code != test.code || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
				t.Errorf("it ends with %+v", got)
			}
		})
	}
}
