package loadtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestLoadsThatCannotBeMadeAreRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*loadtest.Config)
		want   string
	}{
		"no node":          {func(c *loadtest.Config) { c.URLs = nil }, "the URL of a node is missing"},
		"no URL":           {func(c *loadtest.Config) { c.URLs = []string{"localhost:8080"} }, `"localhost:8080" is not the URL of a node`},
		"no viewers":       {func(c *loadtest.Config) { c.Viewers = 0 }, "at least 1"},
		"a negative rate":  {func(c *loadtest.Config) { c.Emit.Rate = -1 }, "negative"},
		"too many percent": {func(c *loadtest.Config) { c.Stop = 101 }, "between 0 and 100"},
		"no patience":      {func(c *loadtest.Config) { c.Patience = 0 }, "patience"},
		"too many sockets": {func(c *loadtest.Config) { c.Threads, c.Viewers = 1<<20, 1<<10 }, "raise the limit (ulimit -n "},
		"no such agent":    {func(c *loadtest.Config) { c.Agent = "b" }, `no agent "b"`},
	}
	f := newFake(t, nil)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := loadtest.Defaults()
			c.URLs = []string{f.URL}
			test.change(&c)
			if _, err := loadtest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestInterruptedLoadReportsWhatItFound(t *testing.T) {
	f := newFake(t, func(int) []push { return whole(10)[:8] })
	c := loadtest.Defaults()
	c.URLs, c.Threads, c.Viewers = []string{f.URL}, 1, 1
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	go func() {
		<-f.begun
		cancel(over)
	}()
	report, err := loadtest.Run(ctx, c)
	if !errors.Is(err, over) || report.Threads != 1 || len(report.Messages) > 0 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestProgressIsTold(t *testing.T) {
	f := newFake(t, func(int) []push { return whole(10)[:8] })
	var lines strings.Builder
	f.run(t, func(c *loadtest.Config) { c.Progress, c.Patience = &lines, 1200*time.Millisecond })
	if got := lines.String(); !strings.Contains(got, "runs 1 of 1, 0 ended  deliveries 16") || !strings.HasSuffix(got, "\r\033[K") {
		t.Errorf("it was %q", got)
	}
}

func TestReportIsWritten(t *testing.T) {
	report := newFake(t, func(int) []push { return whole(10) }).run(t, nil)
	report.FirstEvent = loadtest.Latency{Count: 2, P50: loadtest.Ms(1500 * time.Microsecond), P99: loadtest.Ms(2 * time.Second), Max: loadtest.Ms(3 * time.Second)}
	report.Running = loadtest.Ms(2 * time.Second)
	var b strings.Builder
	if _, err := report.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 runs on 1 threads, 2 viewers each, on 1 node(s)\n", "deliveries   20, 10/s", "p50 1.5ms, p99 2s, max 3s",
		"0 lost, 0 repeated, 0 swapped", "Every viewer has every event, once and in order.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ok":true`, `"deliveries":20`, `"deliveriesPerSecond":10`, `"p50":1.5`, `"faults":{"lost":0,`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

func TestNext(t *testing.T) {
	at := thread.Cursor{Run: 2, Seq: 7}
	tests := map[string]struct {
		event, payload string
		to             string
		broken         bool
	}{
		"a batch":               {"ag_ui_events", `{"from":"2-7","to":"2-9","events":[1,2]}`, "2-9", false},
		"the next run":          {"ag_ui_events", `{"from":"3-0","to":"3-1","events":[1]}`, "3-1", false},
		"a reset":               {"reset", `{"runId":"r","from":"2-0"}`, "2-0", false},
		"caught up":             {"caught_up", `{"cursor":"2-7"}`, "2-7", false},
		"a gap":                 {"ag_ui_events", `{"from":"2-8","to":"2-9","events":[1]}`, "", true},
		"a repetition":          {"ag_ui_events", `{"from":"2-6","to":"2-7","events":[1]}`, "", true},
		"half a repetition":     {"ag_ui_events", `{"from":"2-6","to":"2-8","events":[1,2]}`, "", true},
		"backwards":             {"ag_ui_events", `{"from":"2-7","to":"2-7","events":[]}`, "", true},
		"over the end of a run": {"ag_ui_events", `{"from":"2-7","to":"3-1","events":[1]}`, "", true},
		"a run left out":        {"ag_ui_events", `{"from":"4-0","to":"4-1","events":[1]}`, "", true},
		"caught up elsewhere":   {"caught_up", `{"cursor":"2-8"}`, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			step, err := loadtest.Next(at, test.event, []byte(test.payload))
			var broken *loadtest.Break
			if errors.As(err, &broken) != test.broken || !test.broken && (err != nil || step.To.String() != test.to) {
				t.Errorf("got %+v, %v", step, err)
			}
			if test.broken && broken.At != at {
				t.Errorf("it broke at %s", broken.At)
			}
		})
	}
}
