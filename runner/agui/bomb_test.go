package agui_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agui"
)

// bomb is a snapshot, and n deltas of which each doubles the document.
func bomb(n int, snapshot string) []string {
	out := []string{`{"type":"STATE_SNAPSHOT","metadata":{"s":1},"snapshot":` + snapshot + `}`}
	for i := range n {
		out = append(out, fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"copy","from":"","path":"/b%d"}],"metadata":{"d":%d}}`, i, i))
	}
	return out
}

// spent compacts events and tells how many bytes that allocated, and how long it took.
func spent(events []agui.Event) ([]agui.Event, uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	out := agui.Compact(events)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return out, after.TotalAlloc - before.TotalAlloc, took
}

func TestCompactLeavesPatchesThatCopyTooMuch(t *testing.T) {
	kilobyte := `{"a":"` + strings.Repeat("x", 1000) + `"}`
	for name, events := range map[string][]string{
		"TextIsCopied":  bomb(40, kilobyte),
		"NodesAreMade":  bomb(40, `{}`),
		"InOnePatch":    {`{"type":"STATE_SNAPSHOT","snapshot":{}}`, inOnePatch(40)},
		"OldIsReplaced": append(bomb(3, kilobyte), bomb(40, kilobyte)...),
	} {
		t.Run(name, func(t *testing.T) {
			compacted, bytes, took := spent(lines(events...))
			if bytes > 8<<20 {
				t.Errorf("%d bytes were allocated", bytes)
			}
			if took > time.Second {
				t.Errorf("it took %v", took)
			}
			if size := len(texts(compacted)); size > 64<<10 {
				t.Errorf("%d bytes are left", size)
			}
			if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
				t.Errorf("compacted again:\n%s", diff)
			}
		})
	}
}

func inOnePatch(n int) string {
	ops := make([]string, n)
	for i := range ops {
		ops[i] = fmt.Sprintf(`{"op":"copy","from":"","path":"/b%d"}`, i)
	}
	return `{"type":"STATE_DELTA","delta":[` + strings.Join(ops, ",") + `]}`
}

func TestCompactedCopiesReplayEqual(t *testing.T) {
	for n := range 13 {
		for _, snapshot := range []string{`{}`, ` { "a" : [ 1 , {"x": 2} ] , "a" : {"k":0} }`, `{"a":"` + strings.Repeat("x", 1000) + `"}`} {
			older := `{"type":"STATE_SNAPSHOT","metadata":{"old":1},"snapshot":1}`
			events := lines(append([]string{older}, bomb(n, snapshot)...)...)
			compacted := agui.Compact(events)
			sameReplay(t, events, compacted)
			covered(t, events, compacted)
			if diff := cmp.Diff(written(compacted), written(agui.Compact(compacted))); diff != "" {
				t.Errorf("%d copies, compacted again:\n%s", n, diff)
			}
			if n <= 1 && len(compacted) != 1 {
				t.Errorf("%d copies were not folded:\n%s", n, texts(compacted))
			}
		}
	}
}

// A snapshot whose deltas stay behind it takes no metadata from them, but does from the snapshot before it.
func TestUnfoldedSnapshotKeepsMetadataApart(t *testing.T) {
	older := `{"type":"STATE_SNAPSHOT","metadata":{"old":1},"snapshot":1}`
	events := lines(append([]string{older}, bomb(40, `{ "a": 1 }`)...)...)
	compacted := agui.Compact(events)
	if len(compacted) != 41 {
		t.Fatalf("%d events, want the snapshot and all 40 deltas", len(compacted))
	}
	want := `{"type":"STATE_SNAPSHOT","metadata":{"old":1,"s":1},"snapshot":{ "a": 1 }}`
	if got := string(compacted[0].Data); got != want {
		t.Errorf("snapshot %s, want %s", got, want)
	}
	if diff := cmp.Diff(written(events[2:]), written(compacted[1:])); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

// Many small bombs, each within its room, must not add up.
func TestManyFoldsGrowLittle(t *testing.T) {
	var events []string
	for range 200 {
		events = append(append(events, bomb(9, `{"a":"x"}`)...), `{"type":"MESSAGES_SNAPSHOT","messages":[]}`)
	}
	before := len(strings.Join(events, ""))
	if after := len(texts(agui.Compact(lines(events...)))); after > 8*before {
		t.Errorf("%d bytes became %d", before, after)
	}
}

// What was added bit by bit stays folded however large it is, and copies of a moderate size do too.
func TestCompactFoldsManyPatches(t *testing.T) {
	events := []string{`{"type":"STATE_SNAPSHOT","snapshot":{"l":[],"now":{"k":0}}}`}
	for i := range 20000 {
		ops := fmt.Sprintf(`{"op":"add","path":"/l/-","value":{"i":%d,"t":"some text"}},{"op":"replace","path":"/now/k","value":%d}`, i, i)
		if i%100 == 0 {
			ops += `,{"op":"copy","from":"/now","path":"/before"}`
		}
		events = append(events, `{"type":"STATE_DELTA","delta":[`+ops+`]}`)
	}
	compacted, _, took := spent(lines(events...))
	if len(compacted) != 1 {
		t.Fatalf("%d events, want one", len(compacted))
	}
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	var e struct {
		Snapshot struct {
			L           []any
			Now, Before struct{ K int }
		}
	}
	if err := json.Unmarshal(compacted[0].Data, &e); err != nil {
		t.Fatal(err)
	}
	if s := e.Snapshot; len(s.L) != 20000 || s.Now.K != 19999 || s.Before.K != 19900 {
		t.Errorf("%d elements, now %d, before %d", len(s.L), s.Now.K, s.Before.K)
	}
}

// Wide documents whose parts are moved over and over: a few bytes move as many parts as there are.
func TestPatchesThatMoveTooMuchAreLeft(t *testing.T) {
	object := func(members, pairs int) (snapshot, delta string) {
		var s, d strings.Builder
		for i := range members {
			fmt.Fprintf(&s, `,"k%d":1`, i)
		}
		for i := range pairs {
			fmt.Fprintf(&d, `,{"op":"remove","path":"/k%[1]d"},{"op":"add","path":"/k%[1]d","value":2}`, i)
		}
		return "{" + s.String()[1:] + "}", "[" + d.String()[1:] + "]"
	}
	array := func(elements, inserts int) (snapshot, delta string) {
		return "[" + strings.Repeat("1,", elements) + "1]",
			"[" + strings.Repeat(`{"op":"add","path":"/0","value":2},`, inserts) + `{"op":"add","path":"/0","value":2}]`
	}
	for name, c := range map[string]struct {
		make func(n, m int) (string, string)
		n, m int
		left bool
	}{
		"a wide object": {object, 50_000, 5_000, true}, "a narrow object": {object, 100, 50, false},
		"a long array": {array, 300_000, 20_000, true}, "a short array": {array, 500, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, delta := c.make(c.n, c.m)
			in := []agui.Event{
				{First: 1, Last: 1, Data: []byte(`{"type":"STATE_SNAPSHOT","snapshot":` + snapshot + `}`)},
				{First: 2, Last: 2, Data: []byte(`{"type":"STATE_DELTA","delta":` + delta + `}`)},
			}
			began := time.Now()
			out := agui.Compact(in)
			if again := agui.Compact(out); len(again) != len(out) {
				t.Errorf("compacting again makes %d of %d events", len(again), len(out))
			}
			var r agui.Reducer
			for _, e := range in {
				if err := r.Apply(e.Data); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("took %s", time.Since(began))
			if left := len(out) == 2; left != c.left || r.Truncated() != c.left {
				t.Errorf("left is %t, and truncated %t", left, r.Truncated())
			}
		})
	}
}
