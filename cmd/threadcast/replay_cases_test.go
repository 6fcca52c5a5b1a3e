package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replayCases are the replay cases of testdata/cases, what each needs of the nodes, and how it is played. Where a case
// speaks of several nodes and the deployment has one, that is all of them. Where it speaks of SQL, that is what a viewer gets
// who takes the finished run compacted, which always comes from the history; of the stream, who takes it raw within the
// retention. Which node is asked, a case leaves to chance unless it says so: each has its turn.
var replayCases = []replayCase{
	{id: "c01-handoff-no-gap", play: handoffHasNoGap},
	{id: "c02-cursor-unique", play: cursorsAreUnique},
	{id: "c03-subscribe-twice", play: subscribingTwiceIsHarmless},
	{id: "c04-bad-run-does-not-hide-thread", flags: []string{"--lease", "2s"}, play: badRunDoesNotHideTheThread},
	{id: "c05-parallel-tools-order", play: parallelToolsKeepTheirOrder},
	{id: "c06-run-ids-in-replay", play: eventsKeepTheirRunID},
	{id: "c07-double-tool-start", play: repeatedToolStartMakesNoSecondCall},
	{id: "c08-run-id-reuse", play: runIDExecutesOnce},
	{id: "c09-recover-twice", play: secondRecoveryBringsNothingOld},
	{id: "c10-connect-never-starts", flags: []string{"--retention", "1s"}, play: connectingStartsNothing},
	{id: "c11-long-run-not-trimmed", flags: []string{"--retention", "1s"}, play: longRunIsNotTrimmed},
	{id: "c12-huge-event", play: hugeEventHarmsNoNeighbour},
	{id: "c13-falsy-values", play: falsyValuesSurvive},
	{id: "c14-stale-client-history", play: staleListsOverwriteNothing},
	{id: "c15-cursor-before-first-event", play: acknowledgementHasAPosition},
	{id: "c16-snapshot-then-live", play: latecomerRebuildsTheState},
	{id: "c17-stop-then-run", several: true, play: stopFreesTheThread},
	{id: "c18-bad-cursors", play: badCursorsGetTypedAnswers},
	{id: "c19-ended-while-away", play: returningViewerLearnsTheEnd},
	{id: "c20-node-crash", several: true, flags: []string{"--lease", "2s"}, play: crashLosesNothingThatWasSeen},
	{id: "c21-stale-owner-fenced", several: true, flags: []string{"--lease", "3s"}, play: staleOwnerIsFenced,
		alone: "nobody can take a thread over from the only node; of two owners of one log TestLeaseIsTaken tells"},
	{id: "c22-long-silence", flags: []string{"--lease", "2s"}, play: silenceIsNotDeath},
	{id: "c23-busy-is-typed", several: true, play: busyIsTyped},
	{id: "c24-stop-from-anywhere", several: true, play: stopWorksFromAnywhere},
	{id: "c25-nothing-after-terminal", play: nothingFollowsTheTerminal},
	{id: "c26-delete-while-running", several: true, play: deletionEndsTheRun},
	{id: "c27-agent-panics", play: brokenAgentHarmsNobody},
	{id: "c28-interrupt-resolved", play: interruptIsResolved},
	{id: "c29-one-stalled-viewer", flags: []string{"--write-timeout", "1s"}, play: stalledViewerHarmsNobody},
	{id: "c30-many-short-runs", flags: []string{"--retention", "1s", "--log-level", "warn"}, play: manyRunsLeaveNothingBehind},
	{id: "c32-isolation", flags: []string{"--log-level", "warn"}, play: threadsAreIsolated},
	{id: "c33-split-emoji", play: splitEmojiSurvives},
	{id: "c34-sse-variants", flags: []string{"--log-level", "warn"}, play: allShapesOfSSEAreRead},
	{id: "c35-nul-and-lone-surrogate", play: strangeTextSurvives},
	{id: "c36-numbers-and-bytes", play: bytesAreCarried},
	{id: "c37-two-tabs-answer", several: true, play: callIsAnsweredOnce},
}

type replayCase struct {
	id      string
	several bool // it is about what nodes have to do with each other
	flags   []string
	play    func(*stage)
	alone   string // why it cannot be played where there is one node; empty if it can
}

// in tells whether the case is played in a deployment: without the tag integration, outside of the embedded one only if it is
// about several nodes.
func (c replayCase) in(d deployment) bool {
	if d.nodes == 1 && c.alone != "" {
		return false
	}
	return full || !d.redis || c.several && d.nodes > 1
}

// laterCases are the replay cases that this version cannot play, and why.
var laterCases = map[string]string{
	"c31-origins": "needs cookies and a list of allowed origins: authentication",
}

// playReplayCases plays all cases in each deployment, each as a test, and calls after with each stage as its case leaves it.
func playReplayCases(t *testing.T, after func(*stage)) {
	for _, d := range deployments {
		cases := slices.DeleteFunc(slices.Clone(replayCases), func(c replayCase) bool { return !c.in(d) })
		if len(cases) == 0 {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			redis := d.sharedRedis(t)
			for _, c := range cases {
				t.Run(c.id, func(t *testing.T) {
					t.Parallel()
					s := newStage(t, c.id)
					s.open(d, redis, c.flags)
					c.play(s)
					after(s)
				})
			}
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
