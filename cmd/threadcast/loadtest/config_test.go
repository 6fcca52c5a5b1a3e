package loadtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
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
