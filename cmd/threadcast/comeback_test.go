//go:build integration

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// TestHTTPClientsComeBack lets clients of AG-UI over HTTP leave in mid answer and come back: with one node to the same, with
// two to the other one.
func TestHTTPClientsComeBack(t *testing.T) {
	const words = 400
	agents := agenttest.NewServer(t)
	agents.Handle("story", storySteps(words, 5*time.Millisecond))
	flags := []string{"--agent", "story=agui:" + agents.URL("story"), "--log-level", "warn"}
	for mode, open := range map[string]func(*testing.T) (here, there *node){
		"one node": func(t *testing.T) (here, there *node) { n := start(t, flags...); return n, n },
		"two nodes": func(t *testing.T) (here, there *node) {
			c := startClusterOn(t, steady, 2, flags...)
			return c.nodes[0], c.nodes[1]
		},
	} {
		t.Run(mode, func(t *testing.T) {
			here, there := open(t)
			t.Run("HttpAgent", func(t *testing.T) { agentComesBack(t, here, there, words) })
			t.Run("curl", func(t *testing.T) { curlComesBack(t, here, there) })
		})
	}
}

func agentComesBack(t *testing.T, here, there *node, words int) {
	sc := runScript(t, "http-agent.mjs", here.url, there.url, "by agent")
	var left string
	if err := json.Unmarshal(sc.await("left").Body, &left); err != nil {
		t.Fatal(err)
	}
	if whole := numbers(words, " "); left == whole || !strings.HasPrefix(whole, left) {
		t.Errorf("it left with %.200q", left)
	}
	for _, name := range []string{"back", "found"} {
		f := sc.await(name)
		var messages []struct{ ID, Role, Content string }
		if err := json.Unmarshal(f.Body, &messages); err != nil {
			t.Fatal(err)
		}
		if len(messages) != 2 || messages[0].ID != "u1" || messages[1].Content != numbers(words, " ") {
			t.Errorf("%s: the messages are %.500s", name, f.Body)
		}
		if name == "found" && (f.N != words+4 || f.Name != "RUN_FINISHED") {
			t.Errorf("the run, found again, had %d events up to %s", f.N, f.Name)
		}
	}
	if runs := there.thread("by agent").Runs; len(runs) != 1 || runs[0].State != "finished" {
		t.Errorf("the runs are %+v", runs)
	}
}

// curlComesBack kills curl three times in mid answer.
func curlComesBack(t *testing.T, here, there *node) {
	input := `{"threadId":"by curl","runId":"r1","state":{},"messages":[],"tools":[],"context":[],"forwardedProps":{}}`
	events, last := curl(t, 50, "", here.url+"/agui/story", "-d", input)
	for range 2 {
		more, at := curl(t, 70, last, there.url+"/agui/threads/by%20curl/events?replay=raw")
		events, last = append(events, more...), at
	}
	rest, last := curl(t, 0, last, here.url+"/agui/story", "-d", input)
	events = append(events, rest...)
	end := here.ended("by curl", "r1")
	same(t, "what curl showed", events, allEvents(here.record("by curl", "", "raw")))
	measured(t, "curl showed %d events with 3 kills, the last at %s of %s", len(events), last, end.End)
}

// curl shows a stream until so many events have come, or to its end for 0, and returns them with the position of the last.
func curl(t *testing.T, n int, last string, args ...string) (events []json.RawMessage, at string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if last != "" {
		args = append(args, "-H", "Last-Event-ID: "+last)
	}
	cmd := exec.CommandContext(ctx, programPath(t, "curl"), append([]string{"-sSN", "-f"}, args...)...)
	var complaints output
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	var data, id string
	for n == 0 || len(events) < n {
		line, err := lines.ReadString('\n')
		if err != nil {
			if n > 0 || !errors.Is(err, io.EOF) {
				t.Fatalf("after %d events: %v %s", len(events), err, &complaints)
			}
			break
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				events, at, data = append(events, json.RawMessage(data)), id, ""
			}
		}
	}
	if n > 0 {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); n == 0 && err != nil {
		t.Fatalf("curl: %v %s", err, &complaints)
	}
	return events, at
}
