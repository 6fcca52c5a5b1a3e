package hub_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
)

// viewer follows a thread and checks that it gets every seq once and in order, whatever the form.
type viewer struct {
	pos  thread.Cursor
	seen map[uint64]uint64 // by run: the seq up to which it has everything
}

// take applies a batch of events "<run>.<seq>" joined by "+".
func (v *viewer) take(b hub.Batch) error {
	switch b.Kind {
	case hub.CaughtUp:
		return nil
	case hub.Reset:
		if b.RunID == "" {
			v.seen = map[uint64]uint64{}
		}
		delete(v.seen, b.From.Run)
		v.pos = b.To
		return nil
	}
	if !v.pos.Before(b.To) {
		return fmt.Errorf("at %s came a batch to %s", v.pos, b.To)
	}
	if b.From.Run == v.pos.Run && b.From != v.pos {
		return fmt.Errorf("at %s came a batch from %s", v.pos, b.From)
	}
	for _, event := range b.Events {
		for part := range splitPlus(string(event)) {
			var run, seq uint64
			if _, err := fmt.Sscanf(part, "%d.%d", &run, &seq); err != nil {
				return err
			}
			if run != b.To.Run || seq != v.seen[run]+1 {
				return fmt.Errorf("after %d.%d came %s", run, v.seen[run], part)
			}
			v.seen[run] = seq
		}
	}
	v.pos = b.To
	return nil
}

func splitPlus(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i <= len(s); i++ {
			if i == len(s) || s[i] == '+' {
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
	}
}

// TestAnyMixDeliversEachOnce lets rapid choose what is written, dropped and compacted, where readers join, leave and
// resume, and how small ring, pages and batches are.
func TestAnyMixDeliversEachOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := setup(t, hub.Config{
			Compact:     pairs,
			RingBytes:   rapid.IntRange(1, 2000).Draw(rt, "ring"),
			Page:        rapid.IntRange(1, 6).Draw(rt, "page"),
			BatchEvents: rapid.IntRange(1, 5).Draw(rt, "batch"),
		})
		type reader struct {
			viewer
			sub *hub.Subscription
		}
		var readers []*reader
		live, saved := false, map[uint64]bool{}
		counts := map[uint64]uint64{}
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1:
				if !live {
					b.begin()
					live = true
				}
				b.emit(rapid.IntRange(1, 9).Draw(rt, "events"))
				counts[b.run] = b.seq
			case 2:
				if live && b.seq > 0 {
					b.end()
					b.save()
					live, saved[b.run] = false, true
				}
			case 3:
				if run := rapid.Uint64Range(1, 6).Draw(rt, "drop"); saved[run] {
					b.drop(run)
				}
			case 4:
				replay := hub.Replay(rapid.IntRange(0, 1).Draw(rt, "replay"))
				readers = append(readers, &reader{
					viewer{seen: map[uint64]uint64{}}, b.subscribe(hub.Options{Replay: replay}),
				})
			case 5:
				for _, r := range readers {
					r.sub.Close()
					r.sub = b.subscribe(hub.Options{After: r.pos})
				}
			default:
				for _, r := range readers {
					for range rapid.IntRange(0, 6).Draw(rt, "reads") {
						ctx, cancel := context.WithCancel(context.Background())
						cancel()
						batch, err := r.sub.Next(ctx)
						if err != nil {
							break
						}
						if err := r.take(batch); err != nil {
							rt.Fatal(err)
						}
					}
				}
			}
		}
		for i, r := range readers {
			r.sub.Sync()
			for {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				batch, err := r.sub.Next(ctx)
				cancel()
				if err != nil {
					rt.Fatalf("reader %d at %s: %v", i, r.pos, err)
				}
				if err := r.take(batch); err != nil {
					rt.Fatalf("reader %d: %v", i, err)
				}
				if batch.Kind == hub.CaughtUp && batch.To == (thread.Cursor{Run: b.run, Seq: b.seq}) {
					break
				}
				if batch.Kind == hub.CaughtUp {
					r.sub.Sync()
				}
			}
			for run, n := range counts {
				if r.seen[run] != n {
					rt.Fatalf("reader %d has %d of %d events of run %d", i, r.seen[run], n, run)
				}
			}
			r.sub.Close()
		}
	})
}

// TestReadersRaceAWriter is the same with goroutines, for the race detector.
func TestReadersRaceAWriter(t *testing.T) {
	b := setup(t, hub.Config{Compact: pairs, RingBytes: 4000, Page: 50, BatchEvents: 20})
	const runs, events, readers = 6, 800, 30
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			v := viewer{seen: map[uint64]uint64{}}
			for v.pos != (thread.Cursor{Run: runs, Seq: events + 1}) {
				s, err := b.hub.Subscribe(context.Background(), b.id, hub.Options{
					After: v.pos, Replay: hub.Replay(rng.IntN(2)),
				})
				if err != nil {
					t.Errorf("reader %d at %s: %v", i, v.pos, err)
					return
				}
				for range rng.IntN(40) {
					batch, err := s.Next(context.Background())
					if err == nil {
						err = v.take(batch)
					}
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						s.Close()
						return
					}
					if v.pos == (thread.Cursor{Run: runs, Seq: events + 1}) {
						break
					}
				}
				s.Close()
			}
			for run := uint64(1); run <= runs; run++ {
				if v.seen[run] != events {
					t.Errorf("reader %d has %d events of run %d", i, v.seen[run], run)
				}
			}
		})
	}
	for range runs {
		b.begin()
		for b.seq < events {
			b.emit(1 + int(b.seq)%7)
			if b.seq+7 > events {
				b.emit(int(events - b.seq))
				break
			}
		}
		b.end()
		b.save()
		if b.run > 1 {
			b.drop(b.run - 1)
		}
	}
	wg.Wait()
}
