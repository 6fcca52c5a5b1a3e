package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// The case has 201 viewers and 20,000 events at one a millisecond: more than a test machine can read and judge. Here 40
// viewers (in the short form 15) read 2,000 events (1,000). So that the kernel's buffers do not hide the one that does
// not read, a second thread is poured onto its socket. It reads again after the run. An event's latency is counted from
// when the first viewer had it. The machine has other things to do as well, so the gate is wider than the case's
// factor of two.
func stalledViewerHarmsNobody(s *stage) {
	const mib, chunk = 1 << 20, 64 << 10
	viewers, events := 40, 2000
	if !s.large() {
		viewers, events = 15, 1000
	}
	s.events = strings.Replace(s.events, "20000", strconv.Itoa(events), 1)
	s.anyIDs()
	want := strings.Repeat("0123456789abcdef0123456789abcdef", events)
	s.agent.Handle("second", []agenttest.Step{
		agenttest.Emit(`{"type":"RUN_STARTED","threadId":"{thread}","runId":"{run}"}`),
		agenttest.Repeat(200, `{"type":"CUSTOM","name":"flood","value":"`+strings.Repeat("x", chunk)+`"}`, 0),
		agenttest.Emit(`{"type":"RUN_FINISHED","threadId":"{thread}","runId":"{run}"}`),
	})

	flood := func(n *node, thread string) error {
		return n.tryRun(thread, runRequest{AgentID: "second", RunID: "r1", Messages: json.RawMessage("[]")})
	}
	for i, n := range s.all() {
		s.must(flood(n, fmt.Sprint("flood-before-", i)))
	}
	without := s.spread("without", viewers, want)
	for i, n := range s.all() {
		n.ended(fmt.Sprint("flood-before-", i), "r1")
	}
	before := s.usage()
	stalled, flooded := s.viewer("with", nil), s.viewer("flood", raw)
	s.must(stalled.joinAt(s.next(), &webtest.Options{ReadBuffer: 64 << 10}))
	s.must(flooded.Join(s.ctx, stalled.client))
	group := new(errgroup.Group)
	group.Go(func() error {
		err := stalled.until(has(10))
		stalled.client.StopReading()
		return errors.Join(err, flood(s.next(), "flood"))
	})
	with := s.spread("with", viewers, want)
	s.must(group.Wait())
	eventually(s, patience, "the stalled viewer's socket is closed for being slow", func() bool {
		return slices.ContainsFunc(s.all(), func(n *node) bool {
			return strings.Contains(n.stderr.String(), "its client does not read")
		})
	})
	s.Logf("measured: %s: p99 of %d viewers %s without and %s with a stalled one", s.Name(), viewers, without, with)
	for i, after := range s.usage() {
		s.Logf("measured: %s: RSS of node %d at most %d MiB without and %d with", s.Name(), i+1, before[i].peak/mib, after.peak/mib)
		if grown := after.peak - before[i].peak; grown > 64*mib && !underRace {
			s.Errorf("the memory of node %d grew by %d MiB", i+1, grown/mib)
		}
	}
	allowed := 3*without + 20*time.Millisecond
	if s.shared != nil {
		allowed += 60 * time.Millisecond // what is poured goes through Redis beside the events, and between nodes
	}
	if with > allowed && !underRace {
		s.Errorf("p99 is %s with a stalled viewer and %s without", with, without)
	}
	stalled.client.ResumeReading()
	if err := stalled.until(webtest.Ended("r1")); err != nil {
		s.must(stalled.join())
		s.must(stalled.until(webtest.Ended("r1")))
	}
	if text(s, stalled.Run("r1").Events, "m1") != want {
		s.Error("the stalled viewer has not the complete text")
	}
}

// spread plays the run on a thread before so many viewers, and returns the 99th percentile of how much later than the
// first of them they had an event.
func (s *stage) spread(thread string, viewers int, want string) time.Duration {
	s.Helper()
	seen := make([][]time.Time, viewers)
	all := make([]*viewer, viewers)
	group := new(errgroup.Group)
	for i := range viewers {
		v := s.watch(thread, raw)
		all[i] = v
		group.Go(func() error {
			return v.until(func(v *webtest.Viewer) bool {
				now := time.Now()
				for n := count(v); len(seen[i]) < n; {
					seen[i] = append(seen[i], now)
				}
				return webtest.Ended("r1")(v)
			})
		})
	}
	s.run(thread, "r1")
	s.must(group.Wait())
	var late []time.Duration
	for k := range seen[0] {
		first := slices.MinFunc(seen, func(a, b []time.Time) int { return a[k].Compare(b[k]) })[k]
		for i := range seen {
			late = append(late, seen[i][k].Sub(first))
		}
	}
	for i, v := range all {
		if text(s, v.Run("r1").Events, "m1") != want {
			s.Errorf("viewer %d of %s has not the complete text", i, thread)
		}
		v.drop()
	}
	return percentile(late, 0.99)
}

// 20,000 runs take minutes. Here there are 2,000 (in the short form 500), 50 at a time on 500 threads; with the race detector,
// and with Redis, there are 100, 10 at a time on 100 threads. THREADCAST_TEST_RUNS sets another number, a multiple of 500.
// Goroutines are not to be seen from outside: threads and open files stand for them.
func manyRunsLeaveNothingBehind(s *stage) {
	const mib, threadsEach = 1 << 20, 10
	total, workers := 2000, 50
	switch {
	case underRace, s.shared != nil:
		total, workers = 100, 10
	case !full:
		total = 500
	}
	if text := os.Getenv("THREADCAST_TEST_RUNS"); text != "" {
		var err error
		total, err = strconv.Atoi(text)
		s.must(err)
	}
	each := total / workers
	var mu sync.Mutex
	var done int
	var samples [][]usage
	group := new(errgroup.Group)
	for w := range workers {
		group.Go(func() error {
			client, err := webtest.Dial(s.ctx, s.next().url, nil)
			if err != nil {
				return err
			}
			defer client.Drop()
			viewers := make([]*viewer, threadsEach)
			for i := range viewers {
				viewers[i] = s.viewer(fmt.Sprintf("many-%d-%d", w, i), map[string]any{"from": "now"})
				if err := viewers[i].Join(s.ctx, client); err != nil {
					return err
				}
			}
			for i := range each {
				v, run := viewers[i%threadsEach], fmt.Sprintf("r%d", i)
				if err := v.push("run", runRequest{RunID: run, Messages: json.RawMessage("[]")}, nil); err != nil {
					return err
				}
				if err := v.until(webtest.Ended(run)); err != nil {
					return err
				}
				mu.Lock()
				if done++; done%(total/20) == 0 {
					samples = append(samples, s.usage())
				}
				mu.Unlock()
			}
			return nil
		})
	}
	began := time.Now()
	s.must(group.Wait())
	s.Logf("measured: %s: %d runs in %s", s.Name(), done, time.Since(began))
	for i, last := range samples[len(samples)-1] {
		half := samples[len(samples)/2][i]
		s.Logf("measured: %s: node %d: after half of the runs RSS %d MiB, %d threads, %d files; at the end %d MiB, %d, %d",
			s.Name(), i+1, half.rss/mib, half.threads, half.fds, last.rss/mib, last.threads, last.fds)
		if last.rss > half.rss*5/4+16*mib || last.threads > half.threads+10 || last.fds > half.fds+20 {
			s.Errorf("node %d grows: %+v", i+1, samples)
		}
	}
	s.checkComplete("many-7-3", each/threadsEach)
}

// checkComplete checks that the history of a thread has so many runs, all whole.
func (s *stage) checkComplete(thread string, runs int) {
	s.Helper()
	last := fmt.Sprintf("r%d", 3+10*(runs-1))
	s.next().ended(thread, last)
	batches := s.next().record(thread, "", "compact")
	verify(s, thread, allEvents(batches))
	n := 0
	for i := range runs {
		if text(s, eventsOf(batches, fmt.Sprintf("r%d", 3+10*i)), "m1") == strings.Repeat("lorem ipsum ", 20) {
			n++
		}
	}
	if n != runs {
		s.Errorf("of %d runs of thread %s %d are complete", runs, thread, n)
	}
}

// In the short form there are 60 threads instead of 200 (20 with the race detector, which makes SQLite very slow), and a
// tenth as many sockets that watch ten each.
func threadsAreIsolated(s *stage) {
	threads := s.script.Parallel
	switch {
	case underRace:
		threads = 20
	case !s.large():
		threads = 60
	}
	name := func(i int) string { return fmt.Sprintf("iso-%03d", i) }
	group := new(errgroup.Group)
	var viewers []*viewer
	for i := range threads {
		viewers = append(viewers, s.watch(name(i), raw))
	}
	for i := range threads / 10 {
		client, err := webtest.Dial(s.ctx, s.next().url, nil)
		s.must(err)
		s.Cleanup(client.Drop)
		for j := range 10 {
			v := s.viewer(name((i*37+j*11)%threads), nil)
			s.must(v.Join(s.ctx, client))
			viewers = append(viewers, v)
		}
	}
	for _, v := range viewers {
		group.Go(func() error { return v.until(webtest.Ended("r1")) })
	}
	forEach(threads, threads, func(i int) {
		if err := s.next().tryRun(name(i), runRequest{RunID: "r1", Messages: json.RawMessage("[]")}); err != nil {
			s.Error(err)
		}
	})
	s.must(group.Wait())
	marker := regexp.MustCompile(`iso-\d+`)
	for _, v := range viewers {
		events := v.Events()
		verify(s, v.Thread, events)
		if got := text(s, events, "m1"); got != strings.Repeat(v.Thread+";", 50) {
			s.Errorf("the text of %s is %.200q", v.Thread, got)
		}
		for _, data := range events {
			for _, found := range marker.FindAll(data, -1) {
				if string(found) != v.Thread {
					s.Errorf("a viewer of %s sees %s", v.Thread, data)
				}
			}
		}
	}
}
