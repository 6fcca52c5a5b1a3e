package loadtest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
)

// patience is more than a test needs, unless nothing comes.
const patience = 10 * time.Second

// TestFaultsAreNoticed makes sure of the measure: the first of two viewers gets what is wrong, and the report counts just that.
func TestFaultsAreNoticed(t *testing.T) {
	good := whole(10)
	swap := slices.Clone(good)
	swap[3], swap[4] = swap[4], swap[3]
	tests := map[string]struct {
		pushes []push
		want   loadtest.Faults
	}{
		"a batch is missing":        {slices.Delete(slices.Clone(good), 4, 5), loadtest.Faults{Lost: 1}},
		"an event is missing":       {slices.Replace(slices.Clone(good), 3, 5, batch(3, 5, text(3))), loadtest.Faults{Lost: 1}},
		"the first is missing":      {good[1:], loadtest.Faults{Lost: 1}},
		"two of the last":           {slices.Replace(slices.Clone(good), 7, 11, batch(7, 11, text(7), finished)), loadtest.Faults{Lost: 1}},
		"a batch comes again":       {slices.Insert(slices.Clone(good), 5, good[4]), loadtest.Faults{Repeated: 1}},
		"an event comes again":      {slices.Replace(slices.Clone(good), 3, 4, batch(3, 4, text(3), text(3))), loadtest.Faults{Repeated: 1}},
		"two change places":         {swap, loadtest.Faults{Swapped: 1}},
		"another byte":              {slices.Replace(slices.Clone(good), 3, 4, batch(3, 4, text(7))), loadtest.Faults{Different: 1}},
		"an event after the end":    {slices.Replace(slices.Clone(good), 9, 11, batch(9, 11, finished, text(9))), loadtest.Faults{Late: 1}},
		"what is no push":           {slices.Insert(slices.Clone(good), 5, push{"ag_ui_events", `{"from":"x"}`}), loadtest.Faults{Protocol: 1}},
		"caught up where it is not": {slices.Insert(slices.Clone(good), 5, push{"caught_up", `{"cursor":"1-4"}`}), loadtest.Faults{Repeated: 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(viewer int) []push {
				if viewer == 0 {
					return test.pushes
				}
				return good
			})
			report := f.run(t, nil)
			if diff := cmp.Diff(test.want, report.Faults); diff != "" || report.OK() || len(report.Messages) == 0 {
				t.Errorf("the report is ok: %t, its faults differ:\n%s\n%q", report.OK(), diff, report.Messages)
			}
			if report.Runs.Unfinished != 0 {
				t.Errorf("a run is unfinished: %q", report.Messages)
			}
		})
	}
}

func TestWhatIsRightIsNoFault(t *testing.T) {
	good := whole(10)
	tests := map[string][]push{
		"event by event": good,
		"in one":         {batch(0, 11, text(0), text(1), text(2), text(3), text(4), text(5), text(6), text(7), text(8), finished)},
		"the end apart":  slices.Concat(good[:8], []push{batch(8, 10, text(8), finished), batch(10, 11)}),
		"with caught_up": slices.Insert(slices.Clone(good), 5, push{"caught_up", `{"cursor":"1-5","running":true}`}),
		"with status":    slices.Insert(slices.Clone(good), 5, push{"status", `{"queue":[]}`}),
		"after a reset":  slices.Concat(good[:5], []push{{"reset", `{"runId":"run-1","from":"1-0"}`}}, good),
	}
	for name, pushes := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := newFake(t, func(int) []push { return pushes }).run(t, nil)
			if !report.OK() || report.Events != 10 || report.Unchecked != 0 || report.Runs.Finished != 1 {
				t.Errorf("the report is %+v", report)
			}
		})
	}
}

func TestViewersComeBack(t *testing.T) {
	for name, cut := range map[string]bool{"who lost their sockets": true, "who cut them": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(int) []push { return whole(10) })
			f.cut = cut
			report := f.run(t, func(c *loadtest.Config) {
				c.Emit.Count = 6
				if !cut {
					c.Restless, c.Drops = 100, 1
				}
			})
			want := loadtest.Returns{Resumes: 2}
			if cut {
				want = loadtest.Returns{Reconnects: 2}
			}
			if !report.OK() || report.Returns != want {
				t.Errorf("the report is %+v", report)
			}
		})
	}
}

func TestCompactedRunsAreNotCompared(t *testing.T) {
	f := newFake(t, func(int) []push { return whole(10) })
	f.record = []push{{"", `{"runId":"run-1","from":"1-0","to":"1-11","replay":true,"events":[` + text(0) + `,` + finished + `]}`}}
	if report := f.run(t, nil); !report.OK() || report.Unchecked != 2 {
		t.Errorf("the report is %+v", report)
	}
}

func TestRunsThatGoWrong(t *testing.T) {
	failed := slices.Replace(whole(10), 9, 10, batch(9, 10, `{"type":"RUN_ERROR","code":"lost","message":"."}`))
	t.Run("failed", func(t *testing.T) {
		f := newFake(t, func(int) []push { return failed })
		f.record = failed
		report := f.run(t, nil)
		if report.OK() || report.Runs.Failed != 1 || report.Faults != (loadtest.Faults{}) {
			t.Errorf("the report is %+v", report)
		}
	})
	t.Run("without an end", func(t *testing.T) {
		report := newFake(t, func(int) []push { return whole(10)[:8] }).run(t, func(c *loadtest.Config) { c.Patience = 300 * time.Millisecond })
		if report.OK() || report.Runs.Unfinished != 1 || !strings.Contains(report.Messages[0], "nothing has come for") {
			t.Errorf("the report is %+v", report)
		}
	})
	t.Run("refused", func(t *testing.T) {
		f := newFake(t, func(int) []push { return nil })
		f.start = http.StatusConflict
		report := f.run(t, nil)
		if report.OK() || report.Faults.Refused != 1 || !strings.Contains(report.Messages[0], "answered 409") {
			t.Errorf("the report is %+v", report)
		}
	})
}

func TestThreadsAreRemoved(t *testing.T) {
	f := newFake(t, func(int) []push { return whole(10) })
	f.run(t, func(c *loadtest.Config) { c.Delete, c.Prefix = true, "mine " })
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.deleted, []string{"mine 1"}) {
		t.Errorf("deleted were %q", f.deleted)
	}
}
