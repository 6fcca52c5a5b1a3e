package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLoadtestCommand runs the command against a node.
func TestLoadtestCommand(t *testing.T) {
	t.Parallel()
	n := start(t, "--log-level", "warn")
	flags := []string{"loadtest", "--url", n.url + "/", "--threads", "4", "--viewers", "3", "--runs", "2", "--events", "60", "--rate", "0",
		"--restless", "50", "--stop", "25", "--prefix", "load/", "--message", "go"}
	t.Run("prints a report for people", func(t *testing.T) {
		got := execute(t, nil, flags...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("it ends with code %d and says %q", got.code, got.stderr)
		}
		for _, want := range []string{"8 runs on 4 threads, 3 viewers each, on 1 node(s)\n", "Every viewer has every event, once and in order.\n"} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("the report lacks %q:\n%s", want, got.stdout)
			}
		}
		if info := n.thread("load/4"); len(info.Runs) != 2 {
			t.Errorf("the thread has the runs %+v", info.Runs)
		}
	})
	t.Run("prints one for machines, and removes its threads", func(t *testing.T) {
		got := execute(t, nil, append(flags, "--prefix", "gone/", "--delete", "--json")...)
		var report struct {
			OK   bool
			Runs struct{ Accepted int }
		}
		if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != 0 || !report.OK || report.Runs.Accepted != 8 {
			t.Errorf("it ends with code %d and prints %s %s %v", got.code, got.stdout, got.stderr, err)
		}
		if code := n.do("GET", threadPath("gone/4"), nil, nil); code != 404 {
			t.Errorf("a thread that was removed is answered with %d", code)
		}
	})
	t.Run("ends with 1 if something is wrong", func(t *testing.T) {
		// The agent fails the run: it sends no events of a gigabyte.
		got := execute(t, nil, "loadtest", "--url", n.url, "--threads", "1", "--bytes", "1000000000")
		if got.code != 1 || !strings.Contains(got.stdout, "1 failed") || !strings.Contains(got.stderr, "not everything is as it should be") {
			t.Errorf("it ends with code %d and prints %s %s", got.code, got.stdout, got.stderr)
		}
	})
	t.Run("ends with 1 if nobody answers", func(t *testing.T) {
		got := execute(t, nil, "loadtest", "--url", "http://127.0.0.1:1", "--patience", "100ms")
		if got.code != 1 || !strings.Contains(got.stderr, "loadtest: ask for the agents: ") {
			t.Errorf("it ends with code %d and says %q", got.code, got.stderr)
		}
	})
	t.Run("explains itself", func(t *testing.T) {
		got := execute(t, nil, "loadtest", "--help")
		if got.code != 0 || !strings.Contains(got.stdout, "\n  --viewers N\n") || !strings.Contains(got.stdout, "(default 1m0s)") {
			t.Errorf("it ends with code %d and prints %s %s", got.code, got.stdout, got.stderr)
		}
	})
	for name, args := range map[string][]string{
		"no node": {"loadtest"}, "an unknown flag": {"loadtest", "--listen", "x"}, "an argument": {"loadtest", "--url", n.url, "x"},
		"no number": {"loadtest", "--url", n.url, "--threads", "many"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			got := execute(t, nil, args...)
			if got.code != 2 || !strings.Contains(got.stderr, "threadcast loadtest --help explains the flags.") {
				t.Errorf("it ends with code %d and says %q", got.code, got.stderr)
			}
		})
	}
}
