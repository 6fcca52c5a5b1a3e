package loadtest

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// tally is the report while it is being made.
type tally struct {
	mu    sync.Mutex
	r     Report
	first []time.Duration
	stops []time.Duration
	begun time.Time // when the first run could begin
	ended time.Time // when the last run did
}

// most is how many messages a report has.
const most = 20

// note changes the report.
func (t *tally) note(change func(*Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.r)
}

// fault notes that something is wrong, and says what.
func (t *tally) fault(count func(*Faults), format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count(&t.r.Faults)
	t.say(format, args...)
}

// say adds a message. The caller holds mu.
func (t *tally) say(format string, args ...any) {
	if len(t.r.Messages) < most {
		t.r.Messages = append(t.r.Messages, fmt.Sprintf(format, args...))
	}
}

func (t *tally) took(list *[]time.Duration, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*list = append(*list, d)
}

// begin notes that runs can begin.
func (t *tally) begin(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = time.Now()
	t.r.Connecting = Ms(t.begun.Sub(since))
}

// end notes what became of a run.
func (t *tally) end(end terminal, events int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
	t.r.Events += int64(events)
	switch {
	case end.Code == "stopped" || end.Outcome.Type == "cancelled":
		t.r.Runs.Stopped++
	case end.Type == "RUN_ERROR":
		t.r.Runs.Failed++
		t.say("a run ended with RUN_ERROR, code %q", end.Code)
	default:
		t.r.Runs.Finished++
	}
}

// report returns what is known now.
func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.r
	r.Messages = slices.Clone(r.Messages)
	if t.ended.After(t.begun) {
		r.Running = Ms(t.ended.Sub(t.begun))
	}
	r.FirstEvent, r.Stop = latency(t.first), latency(t.stops)
	return r
}

func latency(times []time.Duration) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(part float64) Ms { return Ms(sorted[min(len(sorted)-1, int(float64(len(sorted))*part))]) }
	return Latency{Count: len(sorted), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
