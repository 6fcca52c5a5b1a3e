package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// runRecord is all that is known of a run without its events. Usage and pending, which are carried as they came, are
// written behind it by appendRun.
type runRecord struct {
	RunID         thread.RunID `json:"runId"`
	Number        uint64       `json:"number"`
	AgentID       string       `json:"agentId"`
	ParentRunID   string       `json:"parentRunId,omitempty"`
	PreviousRunID thread.RunID `json:"previousRunId,omitempty"`
	State         string       `json:"state"`
	runEnding
	Discarded   bool       `json:"discarded,omitempty"` // it was replaced, and is left out of replay
	AcceptedAt  time.Time  `json:"acceptedAt"`
	LastEventAt *time.Time `json:"lastEventAt,omitempty"` // of a running run
	EndedAt     *time.Time `json:"endedAt"`
	DurationMs  int64      `json:"durationMs"` // so far, of a running run
	End         string     `json:"end,omitempty"`
	Counts      runCounts  `json:"counts"`
}

// runEnding says how a run ended.
type runEnding struct {
	Outcome   *string `json:"outcome"`
	Code      string  `json:"code,omitempty"`
	Error     string  `json:"error,omitempty"`
	StoppedBy string  `json:"stoppedBy,omitempty"`
}

// runCounts are null where they are not known, or not yet.
type runCounts struct {
	Emitted *uint64 `json:"emitted"` // events, as viewers got them live
	Stored  *int    `json:"stored"`  // events, as history keeps them
	Bytes   *int64  `json:"bytes"`   // of the stored ones
}

// recordOf describes a run at a moment; st is how its thread stands.
func recordOf(r thread.Run, st thread.Status, now time.Time) runRecord {
	v := runRecord{
		RunID: r.ID, Number: r.Number, AgentID: r.Agent, ParentRunID: r.Parent, PreviousRunID: r.Previous,
		State: "running", Discarded: r.Discarded, AcceptedAt: r.Accepted.UTC(), DurationMs: max(0, now.Sub(r.Accepted).Milliseconds()),
	}
	if r.Ended.IsZero() {
		if st.Running && st.RunID == r.ID && !st.LastEvent.IsZero() {
			last, emitted := st.LastEvent.UTC(), st.Cursor.Seq
			v.LastEventAt, v.Counts.Emitted = &last, &emitted
		}
		return v
	}
	ended, outcome := r.Ended.UTC(), string(r.End.Outcome)
	v.State, v.Outcome, v.EndedAt, v.End = outcome, &outcome, &ended, r.Cursor().String()
	v.Code, v.Error, v.StoppedBy = r.End.Code, r.End.Message, r.End.By
	v.DurationMs = max(0, r.Ended.Sub(r.Accepted).Milliseconds())
	emitted := max(r.LastSeq, 1) - 1 // the last entry is the end
	v.Counts.Emitted = &emitted
	if r.EventCount > 0 || r.LastSeq <= 1 { // else it is not in the history yet
		v.Counts.Stored, v.Counts.Bytes = &r.EventCount, &r.Bytes
	}
	return v
}

// appendRun appends a run's record with what is carried as it came.
func appendRun(dst []byte, v runRecord, r thread.Run) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dst = append(dst, text[:len(text)-1]...)
	dst = append(dst, `,"usage":`...)
	if r.Usage == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, r.Usage...)
	}
	dst = appendList(append(dst, `,"pending":`...), r.Pending)
	return append(dst, '}'), nil
}

// settled is r, or what the runner knows of its end a moment before the history does.
func settled(r thread.Run, st thread.Status) thread.Run {
	if r.Ended.IsZero() && st.Latest != nil && st.Latest.ID == r.ID {
		return *st.Latest
	}
	return r
}

// listRuns answers with a page of a thread's runs, latest first.
func (a api) listRuns(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	n, err := limit(c, 50, 500)
	if err != nil {
		return err
	}
	before, err := runsBefore(c, t)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	// Numbers have no holes, so the page is where they say. One more tells whether there is another page.
	after := before - min(before, uint64(n)+2)
	runs, err := a.Directory.Runs(ctx, t.ID, after, n+1)
	if err != nil {
		return err
	}
	st, err := a.Runs.Status(ctx, t.ID)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r thread.Run) bool { return r.Number >= before }) // those of a deletion are missing
	more := len(runs) > n
	runs = runs[max(0, len(runs)-n):]
	slices.Reverse(runs)
	text, err := runsView(runs, st, time.Now(), more)
	if err != nil {
		return err
	}
	return answer(c, [][]byte{text})
}

// runsBefore reads the query's before: the number of the run that ended the page before, which is text to clients.
func runsBefore(c echo.Context, t thread.Thread) (uint64, error) {
	text := c.QueryParam("before")
	if text == "" {
		return t.LastRun + 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: before is not the end of a page of runs", thread.ErrBadCursor)
	}
	return min(n, t.LastRun+1), nil
}

// runsView is the answer of listRuns.
func runsView(runs []thread.Run, st thread.Status, now time.Time, more bool) ([]byte, error) {
	dst := []byte(`{"runs":[`)
	for i, r := range runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		r = settled(r, st)
		var err error
		if dst, err = appendRun(dst, recordOf(r, st, now), r); err != nil {
			return nil, err
		}
	}
	dst = append(dst, `],"next":`...)
	if !more {
		return append(dst, "null}"...), nil
	}
	dst = strconv.AppendUint(append(dst, '"'), runs[len(runs)-1].Number, 10)
	return append(dst, `"}`...), nil
}

// getRun answers with one run of a thread.
func (a api) getRun(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	id, err := pathID(c, "run", "run id")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	r, err := a.Directory.FindRun(ctx, t.ID, thread.RunID(id))
	if errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("%w: thread %q has no run %q", thread.ErrNotFound, t.ID, id)
	}
	if err != nil {
		return err
	}
	st, err := a.Runs.Status(ctx, t.ID)
	if err != nil {
		return err
	}
	r = settled(r, st)
	text, err := appendRun(nil, recordOf(r, st, time.Now()), r)
	if err != nil {
		return err
	}
	return answer(c, [][]byte{text})
}
