package client_test

import (
	"errors"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestNext(t *testing.T) {
	at := thread.Cursor{Run: 2, Seq: 7}
	tests := map[string]struct {
		event, payload string
		to             string
		broken, skips  bool
	}{
		"a batch":               {"ag_ui_events", `{"from":"2-7","to":"2-9","events":[1,2]}`, "2-9", false, false},
		"the next run":          {"ag_ui_events", `{"from":"3-0","to":"3-1","events":[1]}`, "3-1", false, false},
		"a reset":               {"reset", `{"runId":"r","from":"2-0"}`, "2-0", false, false},
		"caught up":             {"caught_up", `{"cursor":"2-7"}`, "2-7", false, false},
		"a gap":                 {"ag_ui_events", `{"from":"2-8","to":"2-9","events":[1]}`, "", true, false},
		"a repetition":          {"ag_ui_events", `{"from":"2-6","to":"2-7","events":[1]}`, "", true, false},
		"half a repetition":     {"ag_ui_events", `{"from":"2-6","to":"2-8","events":[1,2]}`, "", true, false},
		"backwards":             {"ag_ui_events", `{"from":"2-7","to":"2-7","events":[]}`, "", true, false},
		"over the end of a run": {"ag_ui_events", `{"from":"2-7","to":"3-1","events":[1]}`, "", true, false},
		"a run left out":        {"ag_ui_events", `{"from":"4-0","to":"4-1","events":[1]}`, "", true, true},
		"caught up ahead":       {"caught_up", `{"cursor":"3-4"}`, "", true, true},
		"caught up elsewhere":   {"caught_up", `{"cursor":"2-8"}`, "", true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			step, err := client.Next(at, test.event, []byte(test.payload))
			var broken *client.Break
			if errors.As(err, &broken) != test.broken || !test.broken && (err != nil || step.To.String() != test.to) {
				t.Errorf("got %+v, %v", step, err)
			}
			if test.broken && (broken.At != at || broken.Skips() != test.skips) {
				t.Errorf("it broke at %s, skipping: %t", broken.At, broken.Skips())
			}
		})
	}
}
