package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replayCases are the replay cases of testdata/cases, what each needs of the node, and how it is played. Where a case
// speaks of several nodes, the one node is all of them. Where it speaks of SQL, that is what a viewer gets who takes the
// finished run compacted, which always comes from the history; of the stream, who takes it raw within the retention.
var replayCases = []struct {
	id    string
	flags []string
	play  func(*stage)
}{
	{"c01-handoff-no-gap", nil, handoffHasNoGap},
	{"c02-cursor-unique", nil, cursorsAreUnique},
	{"c03-subscribe-twice", nil, subscribingTwiceIsHarmless},
	{"c04-bad-run-does-not-hide-thread", []string{"--lease", "1s"}, badRunDoesNotHideTheThread},
	{"c05-parallel-tools-order", nil, parallelToolsKeepTheirOrder},
	{"c06-run-ids-in-replay", nil, eventsKeepTheirRunID},
	{"c07-double-tool-start", nil, repeatedToolStartMakesNoSecondCall},
	{"c08-run-id-reuse", nil, runIDExecutesOnce},
	{"c09-recover-twice", nil, secondRecoveryBringsNothingOld},
	{"c10-connect-never-starts", []string{"--retention", "1s"}, connectingStartsNothing},
	{"c11-long-run-not-trimmed", []string{"--retention", "1s"}, longRunIsNotTrimmed},
	{"c12-huge-event", nil, hugeEventHarmsNoNeighbour},
	{"c13-falsy-values", nil, falsyValuesSurvive},
	{"c14-stale-client-history", nil, staleListsOverwriteNothing},
	{"c15-cursor-before-first-event", nil, acknowledgementHasAPosition},
	{"c16-snapshot-then-live", nil, latecomerRebuildsTheState},
	{"c17-stop-then-run", nil, stopFreesTheThread},
	{"c18-bad-cursors", nil, badCursorsGetTypedAnswers},
	{"c19-ended-while-away", nil, returningViewerLearnsTheEnd},
	{"c20-node-crash", []string{"--lease", "2s"}, crashLosesNothingThatWasSeen},
	{"c22-long-silence", []string{"--lease", "1s"}, silenceIsNotDeath},
	{"c23-busy-is-typed", nil, busyIsTyped},
	{"c24-stop-from-anywhere", nil, stopWorksFromAnywhere},
	{"c25-nothing-after-terminal", nil, nothingFollowsTheTerminal},
	{"c26-delete-while-running", nil, deletionEndsTheRun},
	{"c27-agent-panics", nil, brokenAgentHarmsNobody},
	{"c28-interrupt-resolved", nil, interruptIsResolved},
	{"c29-one-stalled-viewer", []string{"--write-timeout", "1s"}, stalledViewerHarmsNobody},
	{"c30-many-short-runs", []string{"--retention", "1s", "--log-level", "warn"}, manyRunsLeaveNothingBehind},
	{"c32-isolation", []string{"--log-level", "warn"}, threadsAreIsolated},
	{"c33-split-emoji", nil, splitEmojiSurvives},
	{"c34-sse-variants", []string{"--log-level", "warn"}, allShapesOfSSEAreRead},
	{"c35-nul-and-lone-surrogate", nil, strangeTextSurvives},
	{"c36-numbers-and-bytes", nil, bytesAreCarried},
	{"c37-two-tabs-answer", nil, callIsAnsweredOnce},
}

// laterCases are the replay cases that this version cannot play, and why.
var laterCases = map[string]string{
	"c21-stale-owner-fenced": "needs a second node that takes the thread over: cluster mode; what one process can show of it, " +
		"two owners of one log, is tested with the runner (TestLeaseIsTaken)",
	"c31-origins": "needs cookies and a list of allowed origins: authentication",
}

// playReplayCases plays all cases, each as a test, and calls after with each stage as its case leaves it.
func playReplayCases(t *testing.T, after func(*stage)) {
	for _, c := range replayCases {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.id, c.flags)
			c.play(s)
			after(s)
		})
	}
}

// Every case in the folder is either played or has a reason why not.
func TestNoReplayCaseIsForgotten(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil || len(files) != 37 {
		t.Fatalf("there are %d cases, not 37 (%v)", len(files), err)
	}
	var known []string
	for _, c := range replayCases {
		known = append(known, c.id)
	}
	for id := range laterCases {
		known = append(known, id)
	}
	slices.Sort(known)
	var there []string
	for _, file := range files {
		there = append(there, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	if !slices.Equal(known, there) {
		t.Errorf("the suite knows\n%v\nand the folder has\n%v", known, there)
	}
}

// readCase reads a file of the folder.
func readCase(t testing.TB, id string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
