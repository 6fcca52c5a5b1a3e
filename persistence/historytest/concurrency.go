package historytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/threadcast/threadcast/persistence/thread"
)

// testConcurrency holds F121 to F123: writers that meet lose nothing.
func testConcurrency(b *bench) {
	b.run("100 runs finish at once while others page", func(b *bench) {
		const n = 100
		runs := make([]thread.Run, n)
		for i := range runs {
			runs[i] = b.start(newRun(thread.ID(name("t", i)), "r1"))
		}
		reading, stop := context.WithCancel(b.Context())
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for reading.Err() == nil {
					if _, _, err := b.Threads(context.WithoutCancel(reading), thread.Page{Limit: 7}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		together(n, func(i int) {
			run := finished(runs[i], fmt.Sprintf(`{"n":%d}`, i))
			run.Messages = []string{"m"}
			if err := b.SaveRun(b.Context(), run); err != nil {
				b.Errorf("run %d: %v", i, err)
			}
		})
		stop()
		readers.Wait()
		for i := range n {
			b.same("events", []string{fmt.Sprintf(`{"n":%d}`, i)}, texts(b.replay(thread.ID(name("t", i)))[0]))
		}
		open, err := b.Unfinished(b.Context(), "", 0, n)
		b.want(nil, err)
		b.same("unfinished", 0, len(open))
	})
	b.run("one of many starts on a thread wins", func(b *bench) {
		var won, refused atomic.Int32
		together(20, func(i int) {
			_, err := b.StartRun(b.Context(), newRun("t", thread.RunID(name("r", i))))
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, thread.ErrUnfinished):
				refused.Add(1)
			default:
				b.Error(err)
			}
		})
		b.same("won", int32(1), won.Load())
		b.same("refused", int32(19), refused.Load())
		b.same("last run", uint64(1), b.thread("t").LastRun)
	})
	b.run("one of many uses of an id wins", func(b *bench) {
		var won, refused atomic.Int32
		together(20, func(int) {
			run, err := b.StartRun(b.Context(), newRun("t", "r"))
			if errors.Is(err, thread.ErrRunIDUsed) {
				refused.Add(1)
				return
			}
			if err == nil {
				err = b.SaveRun(b.Context(), finished(run))
				won.Add(1)
			}
			if err != nil {
				b.Error(err)
			}
		})
		b.same("won", int32(1), won.Load())
		b.same("refused", int32(19), refused.Load())
	})
	b.run("runs and deletions of one thread take turns", func(b *bench) {
		var accepted atomic.Int64
		together(16, func(i int) {
			if i%4 == 0 {
				if err := b.DeleteThread(b.Context(), Holding("t")); err != nil && !isNotFound(err) {
					b.Error(err)
				}
				return
			}
			run, err := b.StartRun(b.Context(), newRun("t", thread.RunID(name("r", i))))
			if errors.Is(err, thread.ErrUnfinished) {
				return
			}
			if err != nil {
				b.Error(err)
				return
			}
			accepted.Add(1)
			if err := b.SaveRun(b.Context(), finished(run)); err != nil && !isNotFound(err) {
				b.Error(err)
			}
		})
		b.same("last run", uint64(accepted.Load()), b.thread("t").LastRun)
	})
}

// together calls do(0) to do(n-1) at the same time and waits for all.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

func testContext(b *bench) {
	b.run("a cancelled call changes nothing and says so", func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err := b.StartRun(ctx, newRun("t", "r1"))
		b.want(context.Canceled, err)
		b.same("unavailable", false, errors.Is(err, thread.ErrUnavailable))
		_, err = b.Thread(ctx, "t")
		b.want(context.Canceled, err)
		_, err = b.Thread(b.Context(), "t")
		b.want(thread.ErrNotFound, err)
	})
	b.run("a deadline that passed is the storage's failure", func(b *bench) {
		ctx, cancel := context.WithDeadline(b.Context(), at(-1_000_000))
		defer cancel()
		run := b.start(newRun("t", "r1"))
		err := b.SaveRun(ctx, finished(run))
		b.want(thread.ErrUnavailable, err)
		b.want(context.DeadlineExceeded, err)
	})
}
