package redislog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// eventBytes is the length of a usual event.
const eventBytes = 150

// pen appends to a run of a thread of its own.
type pen struct {
	log   *redislog.Log
	lease thread.Lease
	seq   uint64
}

func newPen(b *testing.B, log *redislog.Log, id thread.ID) *pen {
	b.Helper()
	lease, err := log.Acquire(b.Context(), thread.Claim{Thread: id, RunID: "run", Owner: "node"}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	return &pen{log: log, lease: lease}
}

// write appends n events as one batch.
func (p *pen) write(ctx context.Context, n int) error {
	batch := make([]thread.Entry, n)
	for i := range batch {
		p.seq++
		batch[i] = thread.Entry{Run: 1, RunID: "run", Seq: p.seq, Kind: thread.KindEvent, Data: make([]byte, eventBytes)}
	}
	return p.log.Append(ctx, p.lease, batch)
}

// perSecond reports how many events a second there were.
func perSecond(b *testing.B, events int) {
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// scriptTime returns how long the scripts of the shared server have taken.
func scriptTime(b *testing.B) time.Duration {
	b.Helper()
	c := sharedServer(b).Client()
	defer c.Close()
	info, err := c.Info(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, rest, ok := strings.Cut(line, "cmdstat_evalsha:"); ok {
			var calls, micros int64
			if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &micros); err != nil {
				b.Fatal(err)
			}
			return time.Duration(micros) * time.Microsecond
		}
	}
	return 0
}

// BenchmarkAppend is one run that waits for each batch.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			p := newPen(b, setup(b), "t")
			before := scriptTime(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.write(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N*n)
			b.ReportMetric(float64((scriptTime(b)-before).Nanoseconds())/float64(b.N*n), "redis-ns/event")
		})
	}
}

// BenchmarkAppendRuns is many runs at once, each of which waits for each event: what the appender is for.
func BenchmarkAppendRuns(b *testing.B) {
	for _, runs := range []int{4, 16, 64, 256} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			log := setup(b)
			pens := make([]*pen, runs)
			for i := range pens {
				pens[i] = newPen(b, log, thread.ID(fmt.Sprintf("thread-%d", i)))
			}
			before := scriptTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for i, p := range pens {
				share := b.N / runs
				if i < b.N%runs {
					share++
				}
				group.Go(func() {
					for range share {
						if err := p.write(b.Context(), 1); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			perSecond(b, b.N)
			b.ReportMetric(float64((scriptTime(b)-before).Nanoseconds())/float64(b.N), "redis-ns/event")
		})
	}
}

// BenchmarkTail is the time from Append to the tail's function, for one event after the other: on the node that
// appends, and on another.
func BenchmarkTail(b *testing.B) {
	for _, node := range []string{"same", "other"} {
		b.Run("node="+node, func(b *testing.B) {
			addr, prefix := sharedServer(b).Addr(), newPrefix()
			log := open(b, addr, prefix)
			reader := log
			if node == "other" {
				reader = open(b, addr, prefix)
			}
			p := newPen(b, log, "t")
			ctx, cancel := context.WithCancel(b.Context())
			seen, done := make(chan struct{}, 1), make(chan error)
			go func() {
				done <- reader.Tail(ctx, "t", thread.Cursor{}, func(entries []thread.Entry) error {
					if len(entries) > 0 {
						seen <- struct{}{}
					}
					return nil
				})
			}()
			for b.Loop() {
				if err := p.write(ctx, 1); err != nil {
					b.Fatal(err)
				}
				<-seen
			}
			cancel()
			<-done
		})
	}
}

// BenchmarkRead is reading a run of 10,000 events back.
func BenchmarkRead(b *testing.B) {
	const events = 10_000
	log := setup(b)
	p := newPen(b, log, "t")
	for range events / 100 {
		if err := p.write(b.Context(), 100); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		got, err := log.Read(b.Context(), "t", thread.Cursor{}, events)
		if err != nil || len(got) != events {
			b.Fatalf("%d entries, %v", len(got), err)
		}
	}
	perSecond(b, b.N*events)
}
