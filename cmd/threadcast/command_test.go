package main_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// result is what a command that has ended leaves.
type result struct {
	code           int
	stdout, stderr string
}

// execute runs the command to its end, in a folder of its own.
func execute(t *testing.T, env []string, args ...string) result {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	var stdout, stderr output
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(cleanEnv(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	endWithParent(cmd)
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("run %v: %v %v\n%s\n%s", args, err, ctx.Err(), &stdout, &stderr)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func TestCommandExplainsItself(t *testing.T) {
	for name, args := range map[string][]string{
		"--help": {"--help"}, "-h": {"-h"}, "help": {"help"}, "serve --help": {"serve", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, nil, args...)
			if got.code != 0 || got.stderr != "" {
				t.Errorf("it ends with code %d and prints %q", got.code, got.stderr)
			}
			for _, want := range []string{"--listen HOST:PORT (THREADCAST_LISTEN)", "--config FILE (THREADCAST_CONFIG)", "Exit codes"} {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("the help lacks %q:\n%s", want, got.stdout)
				}
			}
		})
	}
}

func TestCommandTellsItsVersion(t *testing.T) {
	t.Parallel()
	got := execute(t, nil, "version")
	if got.code != 0 || !regexp.MustCompile(`^threadcast \S+\n$`).MatchString(got.stdout) {
		t.Errorf("it ends with code %d and prints %q", got.code, got.stdout)
	}
}

// Mistakes in the call end with code 2 and a sentence for whoever made them.
func TestCommandRefusesWhatItCannotUnderstand(t *testing.T) {
	for name, test := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"unknown command":   {nil, []string{"start"}, `unknown command "start"`},
		"unknown flag":      {nil, []string{"--port", "1"}, "-port"},
		"all addresses":     {nil, []string{"--listen", "0.0.0.0:0"}, "add --insecure"},
		"redis":             {nil, []string{"--listen", "127.0.0.1:0", "--redis", "http://127.0.0.1/"}, "the URL of Redis: invalid URL scheme: http; it is such as"},
		"redis prefix":      {nil, []string{"--listen", "127.0.0.1:0", "--redis", "redis://127.0.0.1/", "--redis-prefix", "a{b}"}, "must not hold braces"},
		"postgres":          {nil, []string{"--database", "postgres://127.0.0.1/x"}, "add --redis URL"},
		"bad duration":      {nil, []string{"serve", "--lease", "soon"}, "must be a duration"},
		"bad variable":      {[]string{"THREADCAST_LEASE=soon"}, nil, "THREADCAST_LEASE"},
		"bad demo speed":    {[]string{"THREADCAST_DEMO_SPEED=-1"}, []string{"--listen", "127.0.0.1:0"}, "THREADCAST_DEMO_SPEED"},
		"unknown agent":     {nil, []string{"--listen", "127.0.0.1:0", "--agent", "a=magic"}, `unknown type "magic"`},
		"file without name": {nil, []string{"--config", "/does/not/exist"}, "/does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := execute(t, test.env, test.args...)
			if got.code != 2 || got.stdout != "" {
				t.Errorf("it ends with code %d and prints %q", got.code, got.stdout)
			}
			if !strings.Contains(got.stderr, test.want) || !strings.Contains(got.stderr, "threadcast --help explains the flags.") {
				t.Errorf("it says %q, which lacks %q", got.stderr, test.want)
			}
		})
	}
}

func TestCommandRefusesAnUnknownKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "conf.yaml")
	write(t, file, "listen: 127.0.0.1:0\nretentoin: 5m\n")
	got := execute(t, nil, "--config", file)
	if got.code != 2 || !strings.Contains(got.stderr, `unknown key "retentoin"`) || !strings.Contains(got.stderr, file) {
		t.Errorf("it ends with code %d and says %q", got.code, got.stderr)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What the machine refuses ends with code 1, a clear sentence, and nothing of a program's insides.
func TestCommandSaysWhyItCannotServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	dir := t.TempDir()
	text := filepath.Join(dir, "letter.txt")
	write(t, text, strings.Repeat("Dear reader, this is no database. ", 100))
	n := start(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"port in use":      {[]string{"--listen", taken.Addr().String()}, []string{taken.Addr().String(), "in use by another process", "--listen"}},
		"another's file":   {[]string{"--listen", "127.0.0.1:0", "--database", n.database()}, []string{n.database(), "another threadcast process"}},
		"not a database":   {[]string{"--listen", "127.0.0.1:0", "--database", text}, []string{text, "not"}},
		"a folder":         {[]string{"--listen", "127.0.0.1:0", "--database", dir}, []string{dir}},
		"no such folder":   {[]string{"--listen", "127.0.0.1:0", "--database", filepath.Join(dir, "no", "x.db")}, []string{filepath.Join(dir, "no")}},
		"no such hostname": {[]string{"--listen", "localhost.invalid:0", "--insecure"}, []string{"localhost.invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, nil, test.args...)
			if got.code != 1 || got.stdout != "" {
				t.Errorf("it ends with code %d and prints %q", got.code, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("it says %q, which lacks %q", got.stderr, want)
				}
			}
			if lines := strings.Count(strings.TrimSpace(got.stderr), "\n"); lines > 2 || strings.Contains(got.stderr, "goroutine") {
				t.Errorf("that is no sentence: %q", got.stderr)
			}
		})
	}
	if after, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(after), "Dear reader") {
		t.Errorf("the file that is no database was changed: %v", err)
	}
	if n.gone() {
		t.Error("the node whose file was asked for has ended")
	}
}

func TestCommandTakesItsSettingsFromAllSources(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "conf.yaml")
	write(t, file, "listen: 127.0.0.1:1\ndatabase: from-file.db\nagent: [filed=demo]\nlog-format: json\n")
	n := &node{t: t, dir: t.TempDir()}
	// The environment's database and the flag's address win; agent and log format come from the file.
	n.env = []string{"THREADCAST_DATABASE=from-env.db", "THREADCAST_CONFIG=" + file}
	n.run([]string{"--listen", "127.0.0.1:0"})
	n.awaitReady()
	printed := n.stdout.String()
	for _, want := range []string{"from-env.db", "filed  demo, built in  (default)"} {
		if !strings.Contains(printed, want) {
			t.Errorf("it printed %q, which lacks %q", printed, want)
		}
	}
	n.term()
	if code := n.wait(10 * time.Second); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	if logged := n.stderr.String(); !strings.HasPrefix(logged, "{") {
		t.Errorf("the log is not JSON: %q", logged)
	}
}

func TestDemoIsAsQuickAsItIsTold(t *testing.T) {
	t.Parallel()
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=1000"}}
	n.launch("127.0.0.1:0")
	began := time.Now()
	acc := n.startRun("quick", runRequest{Messages: says("u1", "hello")})
	if info := n.ended("quick", acc.RunID); info.State != "finished" {
		t.Errorf("the demo's run is %s", info.State)
	}
	// At its own speed the demo takes several seconds for a greeting.
	if took := time.Since(began); took > 2*time.Second && !underRace {
		t.Errorf("the demo took %s", took)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	n := start(t, "--grace", "60s")
	n.startRun("long", runRequest{Messages: says("u1", "silence")})
	n.term()
	eventually(t, 10*time.Second, "the node says that it shuts down", func() bool {
		return strings.Contains(n.stderr.String(), "shutting down")
	})
	n.term()
	n.wait(10 * time.Second)
}
