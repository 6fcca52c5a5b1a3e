package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Report is what a load was, and what was found.
type Report struct {
	Nodes   int  `json:"nodes"`
	Threads int  `json:"threads"`
	Viewers int  `json:"viewers"` // of each thread
	Runs    Runs `json:"runs"`
	// Events is how many events the runs have, by the API, and Deliveries how many the viewers got.
	Events     int64 `json:"events"`
	Deliveries int64 `json:"deliveries"`
	Connecting Ms    `json:"connecting"` // until the first run could begin
	Running    Ms    `json:"running"`    // from then to the end of the last run
	// FirstEvent is the time from the request for a run to its first event, at each viewer who was connected. Stop is the
	// time until a stop was answered.
	FirstEvent Latency `json:"firstEvent"`
	Stop       Latency `json:"stop"`
	Returns    Returns `json:"returns"`
	Faults     Faults  `json:"faults"`
	// Unchecked is how many times a viewer's bytes of a run could not be compared, because the live log had let the run
	// go, so that it came compacted.
	Unchecked int64 `json:"unchecked"`
	// Messages tell of the first faults.
	Messages []string `json:"messages,omitempty"`
}

// Runs are the runs, by what became of them.
type Runs struct {
	Accepted   int64 `json:"accepted"`
	Finished   int64 `json:"finished"`
	Stopped    int64 `json:"stopped"`
	Failed     int64 `json:"failed"`
	Unfinished int64 `json:"unfinished"` // whose end some viewer has not seen
}

// Returns are how viewers came back.
type Returns struct {
	Resumes    int64 `json:"resumes"`    // after they cut their connections
	Reconnects int64 `json:"reconnects"` // after they lost them
	Resets     int64 `json:"resets"`
}

// Faults are what must not be. Events are counted once for every viewer.
type Faults struct {
	Lost      int64 `json:"lost"`
	Repeated  int64 `json:"repeated"`
	Swapped   int64 `json:"swapped"`   // came, but later than what follows them
	Late      int64 `json:"late"`      // came after the end of their run
	Different int64 `json:"different"` // runs whose bytes are not those that the API has
	Refused   int64 `json:"refused"`   // requests that were refused, or not answered
	Protocol  int64 `json:"protocol"`  // pushes that cannot be understood
}

// Latency is a distribution of times, in milliseconds where it is JSON.
type Latency struct {
	Count int `json:"count"`
	P50   Ms  `json:"p50"`
	P99   Ms  `json:"p99"`
	Max   Ms  `json:"max"`
}

// Ms is a time, in milliseconds where it is JSON.
type Ms time.Duration

// MarshalJSON writes milliseconds.
func (m Ms) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.1f", float64(m)/float64(time.Millisecond)), nil
}

func (m Ms) String() string {
	if d := time.Duration(m); d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond).String()
	}
	return time.Duration(m).Round(time.Millisecond).String()
}

// OK tells whether every run was accepted and ended as it should, and nothing is wrong with what viewers saw.
func (r Report) OK() bool {
	return r.Faults == Faults{} && r.Runs.Failed == 0 && r.Runs.Unfinished == 0 && len(r.Messages) == 0
}

// PerSecond is how many events were delivered in a second, while runs were running.
func (r Report) PerSecond() float64 {
	if r.Running <= 0 {
		return 0
	}
	return float64(r.Deliveries) / time.Duration(r.Running).Seconds()
}

// MarshalJSON writes the report for machines: its fields, and besides ok and deliveriesPerSecond.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	return json.Marshal(struct {
		OK bool `json:"ok"`
		plain
		PerSecond float64 `json:"deliveriesPerSecond"`
	}{r.OK(), plain(r), math.Round(r.PerSecond())})
}

// WriteTo writes the report for people to read.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs on %d threads, %d viewers each, on %d node(s)\n", r.Runs.Accepted, r.Threads, r.Viewers, r.Nodes)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("time", "%s to connect, %s to run", r.Connecting, r.Running)
	row("runs", "%d finished, %d stopped, %d failed, %d unfinished", r.Runs.Finished, r.Runs.Stopped, r.Runs.Failed, r.Runs.Unfinished)
	row("events", "%d", r.Events)
	row("deliveries", "%d, %.0f/s", r.Deliveries, r.PerSecond())
	row("first event", "%s", r.FirstEvent)
	if r.Stop.Count > 0 {
		row("stop", "%s", r.Stop)
	}
	row("returns", "%d resumes, %d lost connections, %d resets", r.Returns.Resumes, r.Returns.Reconnects, r.Returns.Resets)
	f := r.Faults
	row("faults", "%d lost, %d repeated, %d swapped, %d late, %d different, %d refused, %d not understood",
		f.Lost, f.Repeated, f.Swapped, f.Late, f.Different, f.Refused, f.Protocol)
	if r.Unchecked > 0 {
		row("unchecked", "%d passages came compacted: only their positions were checked (--retention of the nodes is too short)", r.Unchecked)
	}
	for _, m := range r.Messages {
		row("wrong", "%s", m)
	}
	if r.OK() {
		b.WriteString("Every viewer has every event, once and in order.\n")
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (l Latency) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, max %s", l.P50, l.P99, l.Max)
}
