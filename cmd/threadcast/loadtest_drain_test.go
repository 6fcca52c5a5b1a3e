//go:build integration

package main_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
)

// The load goes on while a node says goodbye: its viewers and the requests to it go to the other one.
func TestLoadtestOutlivesANode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2, "--log-level", "warn")
	cfg := loadtest.Defaults()
	cfg.URLs = []string{c.nodes[0].url, c.nodes[1].url}
	cfg.Threads, cfg.Viewers, cfg.Runs, cfg.Stop, cfg.Patience = 20, 3, 4, 10, patience
	cfg.Emit = loadtest.Emit{Count: 100, Rate: 100, Bytes: 150}
	cfg.Prefix = "drain "
	over := make(chan loadtest.Report, 1)
	go func() {
		report, err := loadtest.Run(context.Background(), cfg)
		if err != nil {
			t.Error(err)
		}
		over <- report
	}()
	eventually(t, patience, "the first thread is at its second run", func() bool {
		status, _, err := c.nodes[1].request(http.MethodGet, threadPath("drain 1")+"/runs/run-2", nil)
		return err == nil && status == http.StatusOK
	})
	c.nodes[0].term()
	report := await(t, over, patience, "the load is over")
	c.nodes[0].wait(30 * time.Second)
	if !report.OK() || report.Returns.Reconnects == 0 || report.Runs.Accepted != 80 {
		t.Errorf("the load came out so:\n%+v", report)
	}
	measured(t, "a node was drained under %d runs: %d lost connections, %d resumes, first event p99 %s", report.Runs.Accepted,
		report.Returns.Reconnects, report.Returns.Resumes, report.FirstEvent.P99)
}
