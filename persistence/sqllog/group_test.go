package sqllog

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/thread"
)

func open(t *testing.T) *Log {
	t.Helper()
	return openWith(t, Options{})
}

func openWith(t *testing.T, opts Options) *Log {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(t.Context(), file.Writer(), file.Reader(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), file.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func leaseOf(t *testing.T, l *Log, id thread.ID) thread.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), thread.Claim{Thread: id, RunID: "r", Owner: "node"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func entry(run, seq uint64) thread.Entry {
	return thread.Entry{Run: run, RunID: "r", Seq: seq, Kind: thread.KindEvent, Data: []byte("{}")}
}

// inCommitter has fn called by the committer, in a group of its own.
func inCommitter(t *testing.T, l *Log, fn func()) {
	t.Helper()
	if err := l.do(context.Background(), &request{op: func(*group) error { fn(); return nil }}); err != nil {
		t.Error(err)
	}
}

// gathered makes requests that the committer takes as one group, in this order, and returns their results.
func gathered(t *testing.T, l *Log, calls ...func(context.Context) error) []error {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	go inCommitter(t, l, func() { close(entered); <-gate })
	<-entered
	results := make([]chan error, len(calls))
	for i, call := range calls {
		results[i] = make(chan error, 1)
		go func() { results[i] <- call(context.Background()) }()
		for len(l.queue) <= i {
			runtime.Gosched() // until the goroutine has queued its request
		}
	}
	close(gate)
	errs := make([]error, len(calls))
	for i := range calls {
		errs[i] = <-results[i]
	}
	return errs
}

func TestGroup(t *testing.T) {
	t.Run("a request that is refused does not harm the others", func(t *testing.T) {
		l := open(t)
		a, b := leaseOf(t, l, "a"), leaseOf(t, l, "b")
		stale := a
		stale.Token = 99
		add := func(lease thread.Lease, entries ...thread.Entry) func(context.Context) error {
			return func(ctx context.Context) error { return l.Append(ctx, lease, entries) }
		}
		errs := gathered(t, l,
			add(a, entry(1, 1)), add(stale, entry(1, 2)), add(a, entry(1, 3)), add(b, entry(1, 1), entry(1, 2)),
			add(a, entry(1, 2)), add(b, entry(1, 2), entry(1, 3)))
		for i, want := range []error{nil, thread.ErrLeaseLost, thread.ErrGap, nil, nil, nil} {
			if !errors.Is(errs[i], want) {
				t.Errorf("request %d: got %v, want %v", i, errs[i], want)
			}
		}
		for id, want := range map[thread.ID]uint64{"a": 2, "b": 3} {
			if head, err := l.Head(t.Context(), id); err != nil || head.Seq != want {
				t.Errorf("thread %s: head %s, %v; want %d", id, head, err, want)
			}
		}
	})
	t.Run("each request sees those before it", func(t *testing.T) {
		l := open(t)
		lease := leaseOf(t, l, "a")
		take := func(ctx context.Context) error {
			_, err := l.Acquire(ctx, thread.Claim{Thread: "a", RunID: "r2", Owner: "other"}, time.Hour)
			return err
		}
		errs := gathered(t, l, take,
			func(ctx context.Context) error { return l.Append(ctx, lease, []thread.Entry{entry(1, 1), entry(1, 2)}) },
			func(ctx context.Context) error { return l.Drop(ctx, "a", 1, 0) },
			func(ctx context.Context) error { return l.Append(ctx, lease, []thread.Entry{entry(1, 3)}) },
			func(ctx context.Context) error { return l.Append(ctx, lease, []thread.Entry{entry(1, 1)}) },
			func(ctx context.Context) error { return l.Release(ctx, lease) }, take, take)
		for i, want := range []error{thread.ErrRunning, nil, nil, thread.ErrGap, nil, nil, nil, thread.ErrRunning} {
			if !errors.Is(errs[i], want) {
				t.Errorf("request %d: got %v, want %v", i, errs[i], want)
			}
		}
		if got, err := l.Read(t.Context(), "a", thread.Cursor{}, 10); err != nil || len(got) != 1 {
			t.Errorf("%d entries, %v; want 1", len(got), err)
		}
	})
	t.Run("a statement that fails refuses all, and the index stays as it was", func(t *testing.T) {
		l := open(t)
		lease := leaseOf(t, l, "a")
		errs := gathered(t, l,
			func(ctx context.Context) error { return l.Append(ctx, lease, []thread.Entry{entry(1, 1)}) },
			func(ctx context.Context) error {
				return l.do(ctx, &request{op: func(g *group) error { g.exec(updateDropAt, "no number", 1, 2, 3); return nil }})
			},
			func(ctx context.Context) error { return l.Release(ctx, lease) })
		for i, err := range errs {
			if !errors.Is(err, thread.ErrUnavailable) {
				t.Errorf("request %d: got %v, want %v", i, err, thread.ErrUnavailable)
			}
		}
		if err := l.Append(t.Context(), lease, []thread.Entry{entry(1, 1)}); err != nil {
			t.Errorf("the next append: %v", err)
		}
	})
}

func TestReload(t *testing.T) {
	l := open(t)
	lease := leaseOf(t, l, "a")
	for seq := uint64(1); seq <= 50; seq++ {
		if err := l.Append(t.Context(), lease, []thread.Entry{entry(1, seq)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := make(chan uint64, 100)
	done := make(chan error)
	go func() {
		done <- l.Tail(ctx, "a", thread.Cursor{}, func(entries []thread.Entry) error {
			if len(entries) > 0 {
				seen <- entries[len(entries)-1].Seq
			}
			return nil
		})
	}()
	for last := uint64(0); last < 50; last = <-seen {
	}
	// As if the commit of entry 51 had taken place and its reply were lost.
	inCommitter(t, l, func() {
		if _, err := l.writer.Exec(recentTable.insert(1), 51, 1, 51, 1, []byte("{}")); err != nil {
			t.Error(err)
		}
		l.stale = true
	})
	renewed, err := l.Renew(t.Context(), lease, 2*time.Hour)
	if err != nil || renewed.Asked != lease.Asked {
		t.Fatalf("the lease did not outlive it: %v", err)
	}
	if last := <-seen; last != 51 {
		t.Fatalf("the tail got entry %d, want 51", last)
	}
	if err := l.Append(t.Context(), lease, []thread.Entry{entry(1, 50), entry(1, 51), entry(1, 52)}); err != nil {
		t.Fatal(err)
	}
	if last := <-seen; last != 52 {
		t.Fatalf("the tail got entry %d, want 52", last)
	}
	if _, err := l.AskStop(t.Context(), "a", thread.StopRequest{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	<-lease.Asked
	cancel(errClosed)
	if err := <-done; !errors.Is(err, errClosed) {
		t.Fatal(err)
	}
}

func TestTidy(t *testing.T) {
	l := open(t)
	for _, id := range []thread.ID{"a", "b", "c"} {
		lease := leaseOf(t, l, id)
		if err := l.Append(t.Context(), lease, []thread.Entry{entry(1, 1)}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Release(t.Context(), lease), l.Drop(t.Context(), id, 1, 0)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Tail(ctx, id, thread.Cursor{}, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if n := len(l.index.topics); n != 0 {
		t.Fatalf("%d threads are remembered of which there is nothing", n)
	}
}
