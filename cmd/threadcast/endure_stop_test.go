//go:build integration

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// TestStopAndRunAgainAtOnce stops a run that is emitting and starts the next one as soon as the stop is answered, many times in a
// row on one thread: it must be accepted each time, and what viewers see must be one run after the other,
// each with one terminal and nothing of it after that.
func TestStopAndRunAgainAtOnce(t *testing.T) {
	times := sized(1_000, 50)
	n := start(t, "--log-level", "warn")
	s := &stopper{rng: rand.New(rand.NewPCG(5, 6)), ends: map[uint64]bool{}}
	s.follower = follower{n: n, thread: "again", replay: "raw", take: s.see}
	if err := s.join(); err != nil {
		t.Fatal(err)
	}
	defer s.drop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := s.run(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= uint64(times); i++ {
		if err := s.stopAndRun(ctx, i); err != nil {
			t.Fatalf("stop %d: %v", i, err)
		}
	}
	last := uint64(times) + 1
	if err := s.until(func() bool { return s.pos.Run == last }); err != nil {
		t.Fatal(err)
	}
	if len(s.ends) != times {
		t.Errorf("%d runs were stopped, and %d terminals came", times, len(s.ends))
	}
	measured(t, "%d stops, %d events; stop answered after p50 %s p99 %s, next run, asked for at once, accepted after p50 %s p99 %s; never busy",
		times, s.events, percentile(s.stops, 0.5), percentile(s.stops, 0.99), percentile(s.runs, 0.5), percentile(s.runs, 0.99))
}

// stopper stops runs and watches them.
type stopper struct {
	follower
	rng  *rand.Rand
	ends map[uint64]bool // runs whose terminal has come

	stops, runs []time.Duration
}

// run starts run number i. Some runs emit slowly, some quickly, and some as fast as the server takes it.
func (s *stopper) run(ctx context.Context, i uint64) error {
	rate := []int{200, 2_000, 2_000, 20_000}[i%4]
	if i%50 == 0 {
		rate = 0
	}
	_, err := s.channel.Push(ctx, "run", load(runID(i), 1_000_000, rate, 120, true))
	return err
}

// stopAndRun waits until some events of run i have come, stops it, and starts the next run at once.
func (s *stopper) stopAndRun(ctx context.Context, i uint64) error {
	enough := thread.Cursor{Run: i, Seq: uint64(s.rng.IntN(20))}
	if err := s.until(func() bool { return !s.pos.Before(enough) }); err != nil {
		return err
	}
	asked := time.Now()
	data, err := s.channel.Push(ctx, "stop", map[string]string{"runId": runID(i)})
	if err != nil {
		return err
	}
	answered := time.Now()
	err = s.run(ctx, i+1)
	s.stops = append(s.stops, answered.Sub(asked))
	s.runs = append(s.runs, time.Since(answered))
	if err != nil {
		return fmt.Errorf("right after the stop: %w", err)
	}
	var reply struct {
		Stopped bool
		RunID   string
		Cursor  string
	}
	if err := json.Unmarshal(data, &reply); err != nil || !reply.Stopped || reply.RunID != runID(i) {
		return fmt.Errorf("it was answered %s", data)
	}
	// The answer names the end of the run: nothing of it may come after that place.
	end, err := thread.ParseCursor(reply.Cursor)
	if err != nil {
		return err
	}
	if err := s.until(func() bool { return !s.pos.Before(end) }); err != nil {
		return err
	}
	if !s.ends[i] || s.pos.Run == i && s.pos != end {
		return fmt.Errorf("the run ended at %s, and the viewer is at %s, terminal seen: %v", end, s.pos, s.ends[i])
	}
	return nil
}

// see checks that terminals are last.
func (s *stopper) see(from, _ thread.Cursor, b batch) error {
	if b.RunID != runID(from.Run) {
		return fmt.Errorf("run %d is %s", from.Run, b.RunID)
	}
	if from.Seq == 0 && from.Run > 1 && !s.ends[from.Run-1] {
		return fmt.Errorf("run %d begins before the terminal of the run before it", from.Run)
	}
	for _, e := range b.Events {
		if s.ends[from.Run] {
			return fmt.Errorf("after its terminal run %d has %.100s", from.Run, e)
		}
		if isTerminal(e) {
			s.ends[from.Run] = true
		}
	}
	return nil
}
