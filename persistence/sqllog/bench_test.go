package sqllog_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// eventBytes is the length of a usual event.
const eventBytes = 150

// pen appends to a run of a thread of its own.
type pen struct {
	log   *store
	lease thread.Lease
	seq   uint64
}

func newPen(b *testing.B, log *store, id thread.ID) *pen {
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

// BenchmarkAppend is one run that waits for each batch.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			p := newPen(b, setup(b), "t")
			b.ReportAllocs()
			for b.Loop() {
				if err := p.write(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N*n)
		})
	}
}

// BenchmarkRaw is the yardstick: rows of the same size in the same file, with nothing around them.
func BenchmarkRaw(b *testing.B) {
	for _, n := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			db := setup(b).file.Writer()
			if _, err := db.Exec(`CREATE TABLE raw (thread TEXT, run INTEGER, seq INTEGER, kind INTEGER, data BLOB,
				PRIMARY KEY (thread, run, seq)) WITHOUT ROWID`); err != nil {
				b.Fatal(err)
			}
			seq := 0
			for b.Loop() {
				if err := writeRaw(db, seq, n); err != nil {
					b.Fatal(err)
				}
				seq += n
			}
			perSecond(b, b.N*n)
		})
	}
}

func writeRaw(db *sql.DB, seq, n int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`INSERT INTO raw VALUES ('thread', 1, ?, 1, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range n {
		if _, err := insert.Exec(seq+i, make([]byte, eventBytes)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// BenchmarkAppendRuns is many runs at once, each of which waits for each event: what group commit is for.
func BenchmarkAppendRuns(b *testing.B) {
	for _, runs := range []int{4, 16, 64, 256} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			log := setup(b)
			pens := make([]*pen, runs)
			for i := range pens {
				pens[i] = newPen(b, log, thread.ID(fmt.Sprintf("thread-%d", i)))
			}
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
		})
	}
}

// BenchmarkTail is the time from Append to the tail's function, for one event after the other.
func BenchmarkTail(b *testing.B) {
	log := setup(b)
	p := newPen(b, log, "t")
	ctx, cancel := context.WithCancel(b.Context())
	seen, done := make(chan time.Time, 1), make(chan error)
	go func() {
		done <- log.Tail(ctx, "t", thread.Cursor{}, func(entries []thread.Entry) error {
			if len(entries) > 0 {
				seen <- time.Now()
			}
			return nil
		})
	}()
	var total time.Duration
	for b.Loop() {
		if err := p.write(ctx, 1); err != nil {
			b.Fatal(err)
		}
		acknowledged := time.Now()
		total += (<-seen).Sub(acknowledged)
	}
	cancel()
	<-done
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns-after-append/event")
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
