package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a history in memory.
type shelf struct {
	mu   sync.Mutex
	runs []thread.Run
	last uint64 // overrules the last run's number
	gone bool
	uses int // of NextRun
}

func (s *shelf) loads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses
}

func (s *shelf) NextRun(_ context.Context, _ thread.ID, after uint64) (thread.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	for _, r := range s.runs {
		if r.Number > after {
			if r.Events == nil {
				return r, thread.ErrCorrupt
			}
			return r, nil
		}
	}
	return thread.Run{}, thread.ErrNotFound
}

func (s *shelf) Thread(_ context.Context, id thread.ID) (thread.Thread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	th := thread.Thread{ID: id, LastRun: s.last, Deleted: s.gone}
	if n := len(s.runs); n > 0 {
		th.Latest = &s.runs[n-1]
		th.LastRun = max(th.LastRun, th.Latest.Number)
	}
	if th.Latest != nil && th.LastRun > th.Latest.Number {
		th.Latest = &thread.Run{Number: th.LastRun} // accepted, and silent
	}
	if th.LastRun == 0 {
		return thread.Thread{}, thread.ErrNotFound
	}
	return th, nil
}

func (s *shelf) save(r thread.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Ended = time.Unix(int64(r.Number), 0)
	s.runs = append(s.runs, r)
}

// bench is a hub over a log and a history, and a thread to write to.
type bench struct {
	*testing.T
	hub   *hub.Hub
	log   *memlog.Log
	shelf *shelf
	id    thread.ID
	lease thread.Lease
	run   uint64
	seq   uint64
}

// pairs merges events two by two: a compaction whose ranges are easy to see.
func pairs(in []thread.Event) []thread.Event {
	var out []thread.Event
	for i := 0; i < len(in); i++ {
		e := in[i]
		if i+1 < len(in) && e.Last+1 == in[i+1].First {
			e = thread.Event{First: e.First, Last: in[i+1].Last, Data: []byte(string(e.Data) + "+" + string(in[i+1].Data))}
			i++
		}
		out = append(out, e)
	}
	return out
}

func setup(t *testing.T, cfg hub.Config) *bench {
	b := &bench{T: t, log: memlog.New(), shelf: &shelf{}, id: "t"}
	b.hub = hub.New(b.log, b.shelf, cfg)
	lease, err := b.log.Acquire(t.Context(), thread.Claim{Thread: b.id, RunID: "any", Owner: "n"}, time.Hour)
	b.must(err)
	b.lease = lease
	t.Cleanup(func() {
		b.hub.Close()
		b.must(b.log.Close())
	})
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// begin starts the next run.
func (b *bench) begin() {
	b.run++
	b.seq = 0
}

func (b *bench) runID() thread.RunID { return thread.RunID(fmt.Sprintf("r%d", b.run)) }

// emit appends n events "<run>.<seq>" in one batch.
func (b *bench) emit(n int) {
	b.Helper()
	entries := make([]thread.Entry, n)
	for i := range entries {
		b.seq++
		entries[i] = thread.Entry{
			Run: b.run, RunID: b.runID(), Seq: b.seq, Kind: thread.KindEvent,
			Data: fmt.Appendf(nil, "%d.%d", b.run, b.seq),
		}
	}
	b.must(b.log.Append(context.Background(), b.lease, entries))
}

// end appends the end entry.
func (b *bench) end() {
	b.Helper()
	b.seq++
	b.must(b.log.Append(context.Background(), b.lease, []thread.Entry{
		{Run: b.run, RunID: b.runID(), Seq: b.seq, Kind: thread.KindEnd, Data: []byte(`{}`)},
	}))
}

// save puts the run into history, in pairs.
func (b *bench) save() {
	b.Helper()
	entries, err := b.log.Read(context.Background(), b.id, thread.Cursor{Run: b.run}, 1<<20)
	b.must(err)
	events := []thread.Event{}
	for _, e := range entries {
		if e.Kind == thread.KindEvent && e.Run == b.run {
			events = append(events, thread.Event{First: e.Seq, Last: e.Seq, Data: e.Data})
		}
	}
	b.shelf.save(thread.Run{Thread: b.id, ID: b.runID(), Number: b.run, LastSeq: b.seq, Events: pairs(events)})
}

// drop takes the run out of the live log.
func (b *bench) drop(run uint64) {
	b.Helper()
	b.must(b.log.Drop(context.Background(), b.id, run, 0))
}

// whole writes a finished run of n events.
func (b *bench) whole(n int) {
	b.Helper()
	b.begin()
	b.emit(n)
	b.end()
	b.save()
}

func (b *bench) subscribe(opts hub.Options) *hub.Subscription {
	b.Helper()
	s, err := b.hub.Subscribe(b.Context(), b.id, opts)
	b.must(err)
	b.Cleanup(s.Close)
	return s
}

// step renders the next batch: "r1 1-0>1-2: 1.1 1.2", "caught up 1-3", "reset r1 1-0".
func (b *bench) step(s *hub.Subscription) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	batch, err := s.Next(ctx)
	if err != nil {
		return "error: " + err.Error()
	}
	return render(batch)
}

func render(batch hub.Batch) string {
	switch batch.Kind {
	case hub.CaughtUp:
		return "caught up " + batch.To.String()
	case hub.Reset:
		return fmt.Sprintf("reset %s %s", batch.RunID, batch.To)
	case hub.Changed:
		return "changed at " + batch.To.String()
	}
	text := fmt.Sprintf("%s %s>%s:", batch.RunID, batch.From, batch.To)
	for _, e := range batch.Events {
		text += " " + string(e)
	}
	return text
}

func (b *bench) expect(s *hub.Subscription, want ...string) {
	b.Helper()
	for _, w := range want {
		if got := b.step(s); got != w {
			b.Fatalf("got  %q\nwant %q", got, w)
		}
	}
}

// follow takes batches up to a position, however they are cut, and checks their events.
func (b *bench) follow(s *hub.Subscription, to thread.Cursor, want string) {
	b.Helper()
	var got []string
	for pos := (thread.Cursor{}); pos != to; {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		batch, err := s.Next(ctx)
		cancel()
		if err != nil {
			b.Fatalf("after %v: %v", got, err)
		}
		for _, e := range batch.Events {
			got = append(got, string(e))
		}
		pos = batch.To
	}
	if text := strings.Join(got, " "); text != want {
		b.Fatalf("got  %q\nwant %q", text, want)
	}
}

// quiet checks that nothing more is there.
func (b *bench) quiet(s *hub.Subscription) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if batch, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		b.Fatalf("got %+v, %v; want nothing", batch, err)
	}
}

func cursor(run, seq uint64) thread.Cursor { return thread.Cursor{Run: run, Seq: seq} }
