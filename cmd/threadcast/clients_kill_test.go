package main_test

import (
	"slices"
	"testing"
	"time"
)

// TestKilledConnections kills the TCP connection of a page at random moments of a run, now and then while the network loses
// what is on its way, in both modes and with either phoenix (issue 5, Shows c). Every page has the exact text at the end, which
// is judged in e2e/bench/kills.mjs.
func TestKilledConnections(t *testing.T) {
	needNode(t)
	if !full {
		b := embeddedBench(t, "copilotkit-1815")
		judgeKills(t, b.try(t, "KillsFew").Kills, 8)
		return
	}
	for _, client := range []string{"copilotkit-1815", "copilotkit-1816"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			b := embeddedBench(t, client)
			for _, mode := range []string{"Run", "Connect"} {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					judgeKills(t, b.try(t, "Kills"+mode).Kills, 100)
				})
			}
		})
	}
}

// judgeKills checks that there were so many kills, and tells how long the pages were away.
func judgeKills(t *testing.T, kills []kill, n int) {
	t.Helper()
	if len(kills) != n {
		t.Errorf("%d connections were killed, not %d", len(kills), n)
	}
	var same, fresh []time.Duration
	for _, k := range kills {
		took := time.Duration(k.Ms * float64(time.Millisecond))
		if k.Fresh {
			fresh = append(fresh, took)
		} else {
			same = append(same, took)
		}
	}
	measured(t, "%d kills: joined again after a median of %s; %d with the same token (median %s), %d with new credentials (median %s)",
		len(kills), median(slices.Concat(same, fresh)), len(same), median(same), len(fresh), median(fresh))
}

func median(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return percentile(of, 0.5).Round(time.Millisecond)
}
