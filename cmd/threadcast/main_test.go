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
)

// TestMain gives the tests a place for the binary that they run, and sees to it that nothing is left behind.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "threadcast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = sync.OnceValues(func() (string, error) { return build(dir) })
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
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
