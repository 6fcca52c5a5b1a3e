package runner_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// BenchmarkRun is a whole run of 20,000 events, from its acceptance until it is saved.
func BenchmarkRun(b *testing.B) {
	const events = 20_000
	var before, after runtime.MemStats
	agent := agenttest.New(answer(events - 4))
	runtime.ReadMemStats(&before)
	for b.Loop() {
		log, past := memlog.New(), newArchive()
		stores := runner.Stores{Log: log, Heads: log, Leaser: log, Owners: log, History: past, Records: past, Backlog: past, Line: past, Story: past}
		r := runner.New(stores, agents{"a": agent}, "a", runner.Config{Logger: slog.New(slog.DiscardHandler)})
		if _, err := r.Run(b.Context(), request("t", "r1")); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Drain(context.Background(), context.Background()); err != nil {
			b.Fatal(err)
		}
		if past.saved() != 1 {
			b.Fatal("the run is not saved")
		}
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	total := float64(b.N) * events
	b.ReportMetric(total/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/total, "allocs/event")
}
