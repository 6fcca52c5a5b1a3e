package agui_test

import (
	"encoding/json"
	"testing"

	"github.com/threadcast/threadcast/runner/agui"
)

// A usual event: 130 bytes, a few words.
const usualEvent = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_0a1b2c3d4e5f","delta":"and so the ship went on, past the last of all the islands"}`

// costs are what is done with the events of an agent, and what that is measured against. A run tracks each of its events, and
// reads the header of those before its start.
var costs = []struct {
	name   string
	allocs float64 // at most
	do     func(t *agui.Tracker, event []byte) error
}{
	{"json.Valid alone", 0, func(_ *agui.Tracker, event []byte) error {
		if !json.Valid(event) {
			return json.Unmarshal(event, new(any))
		}
		return nil
	}},
	{"header", 1, func(_ *agui.Tracker, event []byte) error {
		_, err := agui.ParseHeader(event)
		return err
	}},
	{"tracker", 0, func(t *agui.Tracker, event []byte) error {
		_, err := t.Observe(event)
		return err
	}},
	{"header and tracker", 1, func(t *agui.Tracker, event []byte) error {
		if _, err := agui.ParseHeader(event); err != nil {
			return err
		}
		_, err := t.Observe(event)
		return err
	}},
}

// writing returns the tracker of a run that writes the message of the usual event.
func writing(t testing.TB) *agui.Tracker {
	t.Helper()
	tracker := agui.NewTracker("t", "r")
	for _, e := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"msg_0a1b2c3d4e5f","role":"assistant"}`,
	} {
		if _, err := tracker.Observe([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	return tracker
}

// What time an event costs depends on the machine, so that only its allocations are judged: at most two are allowed.
func TestAnEventCostsFewAllocations(t *testing.T) {
	if len(usualEvent) != 130 {
		t.Fatalf("the event has %d bytes", len(usualEvent))
	}
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			tracker, event := writing(t), []byte(usualEvent)
			got := testing.AllocsPerRun(1000, func() {
				if err := c.do(tracker, event); err != nil {
					t.Fatal(err)
				}
			})
			if got > c.allocs {
				t.Errorf("%v allocations, want at most %v", got, c.allocs)
			}
		})
	}
}

// BenchmarkEvent prints the cost of one event beside that of json.Valid. It should be at most 1 µs and 2 allocations.
func BenchmarkEvent(b *testing.B) {
	for _, c := range costs {
		b.Run(c.name, func(b *testing.B) {
			tracker, event := writing(b), []byte(usualEvent)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.do(tracker, event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
