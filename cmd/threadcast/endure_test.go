// The files endure_*_test.go hold the suites of exactness and endurance: many viewers, many runs, kill -9, SIGTERM, viewers
// that do not read. They come in two sizes. The full one needs the build tag integration, and -short makes it the short
// one; of most suites the short one is also part of the tests that need no tag. What was measured is logged in a
// line that begins with "measured:".

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sized returns the size of a suite: of the full one, or of the short one.
func sized(long, short int) int {
	if full && !testing.Short() {
		return long
	}
	return short
}

// measured logs a measurement.
func measured(t testing.TB, format string, args ...any) {
	t.Helper()
	size := "full"
	if !full || testing.Short() {
		size = "short"
	}
	if underRace {
		size += ", race"
	}
	t.Logf("measured: %s (%s): %s", t.Name(), size, fmt.Sprintf(format, args...))
}

// forEach calls fn with 0 to n-1, workers at a time, and waits for all. fn reports with t.Errorf.
func forEach(n, workers int, fn func(i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// load is a request to the built-in agent for count events, rate in a second.
func load(run string, count, rate, size int, hold bool) map[string]any {
	return map[string]any{
		"runId": run, "messages": []any{},
		"forwardedProps": map[string]any{"emit": map[string]any{"count": count, "rate": rate, "bytes": size, "hold": hold}},
	}
}

// tryRun starts a run over the API. It may be called from any goroutine.
func (n *node) tryRun(thread string, req any) error {
	status, data, err := n.request(http.MethodPost, threadPath(thread)+"/runs", req)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("a run on thread %s was answered %d %s", thread, status, data)
	}
	return err
}

// ending is how the API tells of a run's end.
type ending struct {
	RunID   string    `json:"runId"`
	State   string    `json:"state"`
	EndedAt time.Time `json:"endedAt"`
	End     string    `json:"end"`
}

// endings returns all runs of a thread. It may be called from any goroutine.
func (n *node) endings(thread string) ([]ending, error) {
	status, data, err := n.request(http.MethodGet, threadPath(thread)+"?limit=500", nil)
	if err != nil {
		return nil, err
	}
	var info struct {
		Runs []ending `json:"runs"`
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("thread %s was answered %d %s", thread, status, data)
	}
	err = json.Unmarshal(data, &info)
	return info.Runs, err
}

// eventsOf returns the events of a thread's run of that number, as the API gives them in the form asked for. It may be
// called from any goroutine.
func (n *node) eventsOf(thread string, run int, replay string) ([]string, error) {
	var events []string
	for after := fmt.Sprintf("%d-0", run); ; {
		var page struct {
			Batches []batch `json:"batches"`
			Cursor  string  `json:"cursor"`
			More    bool    `json:"more"`
		}
		path := threadPath(thread) + "/events?limit=2000&replay=" + replay + "&after=" + after
		status, data, err := n.request(http.MethodGet, path, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("events of thread %s were answered %d %.200s", thread, status, data)
		}
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			return nil, err
		}
		for _, b := range page.Batches {
			if !strings.HasPrefix(b.To, fmt.Sprintf("%d-", run)) {
				return events, nil
			}
			for _, e := range b.Events {
				events = append(events, string(e))
			}
		}
		if after = page.Cursor; !page.More {
			return events, nil
		}
	}
}

// terminals returns those of a run's events that end it.
func terminals(events []string) []string {
	var found []string
	for _, e := range events {
		if isTerminal([]byte(e)) {
			found = append(found, e)
		}
	}
	return found
}

func isTerminal(event []byte) bool {
	var e struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(event, &e) == nil && (e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR")
}

// percentile returns the value below which a fraction of the values lie. It sorts them.
func percentile(values []time.Duration, fraction float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(float64(len(values))*fraction))]
}

// goroutines ends the node with SIGQUIT and counts the goroutines that it then prints.
func (n *node) goroutines() int {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		n.t.Fatalf("send SIGQUIT to the node: %v", err)
	}
	n.wait(10 * time.Second)
	return strings.Count("\n"+n.stderr.String(), "\ngoroutine ")
}
