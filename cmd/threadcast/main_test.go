package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/pgtest"
)

// TestMain runs the tests and sees to it that nothing is left behind: no goroutine, no file.
func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main(tests{m})) }

// tests are all tests, with a place for the binary that they run.
type tests struct{ m *testing.M }

// Run runs them and returns the exit code.
func (t tests) Run() int {
	dir, err := os.MkdirTemp("", "threadcast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = sync.OnceValues(func() (string, error) { return build(dir) })
	return t.m.Run()
}

// binary returns the path of the command, which is built when the first test needs it: with the race detector if
// the tests have it.
var binary func() (string, error)

func build(dir string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	path := filepath.Join(dir, "threadcast")
	args := []string{"build", "-o", path}
	if underRace {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return path, nil
}
