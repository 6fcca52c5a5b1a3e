package main_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
)

// TestExactnessCheckNoticesFaults makes sure of the measure before it is used.
func TestExactnessCheckNoticesFaults(t *testing.T) {
	r := newRecording("t", "r", 2_000, rand.New(rand.NewPCG(1, 2)))
	all := slices.Clone(r.events)
	all[0] = append(slices.Clone(all[0][:len(all[0])-1]), `,"input":{}}`...)
	small := compactAll(all)
	n := uint64(len(all))
	if len(small)*4 > len(all) {
		t.Fatalf("%d of %d events are left after compaction", len(small), len(all))
	}
	other := slices.Clone(all)
	other[0] = append(slices.Clone(r.events[0][:len(r.events[0])-1]), `,"input":{"a":1}}`...)
	swapped := slices.Clone(all)
	i := slices.IndexFunc(r.parsed, func(e emitted) bool { return e.lane != "" })
	swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
	tests := map[string]struct {
		from, to  uint64
		events    [][]byte
		compacted bool
		wrong     bool
	}{
		"everything":             {0, n + 1, all, false, false},
		"a part":                 {7, 300, all[7:300], false, false},
		"the end entry":          {n, n + 1, nil, false, false},
		"compacted":              {0, n + 1, small, true, false},
		"compacted, unallowed":   {0, n + 1, small, false, true},
		"as they are, compacted": {7, 300, all[7:300], true, false},
		"one lost":               {7, 300, slices.Delete(slices.Clone(all[7:300]), 5, 6), false, true},
		"the last lost":          {7, 300, all[7:299], false, true},
		"one repeated":           {7, 300, all[6:300], false, true},
		"two swapped":            {0, n, swapped, false, true},
		"lost, compacted":        {0, n + 1, compactAll(slices.Delete(slices.Clone(all), i, i+1)), true, true},
		"repeated, compacted":    {0, n + 1, compactAll(slices.Insert(slices.Clone(all), i, all[i])), true, true},
		"swapped, compacted":     {0, n + 1, compactAll(swapped), true, true},
		"beyond the end":         {n, n + 2, nil, true, true},
		"another beginning":      {0, n + 1, other, false, true},
	}
	if err := r.check(0, 1, all[:1], false); err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := r.check(test.from, test.to, test.events, test.compacted)
			if (err != nil) != test.wrong {
				t.Errorf("the check says: %v", err)
			}
		})
	}
}

func compactAll(events [][]byte) [][]byte {
	var in []thread.Event
	for i, e := range events {
		in = append(in, thread.Event{First: uint64(i) + 1, Last: uint64(i) + 1, Data: e})
	}
	var out [][]byte
	for _, e := range runner.Compact(in) {
		out = append(out, e.Data)
	}
	return out
}
