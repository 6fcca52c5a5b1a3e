package redislog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// patience is how long a test waits for a fact before it says that the fact does not come.
const patience = 30 * time.Second

const leaseTTL = 6 * time.Second

// writer writes a run as the runner does: it keeps the lease, keeps what it wrote, tries again while the log is away,
// and appends everything again when the log lost it.
type writer struct {
	t   testing.TB
	log *redislog.Log
	run uint64
	all []thread.Entry

	mu    sync.Mutex
	lease thread.Lease
	lost  error

	cancel context.CancelFunc
	done   chan struct{}
}

func runID(run uint64) thread.RunID { return thread.RunID(fmt.Sprintf("run-%d", run)) }

func newWriter(t testing.TB, log *redislog.Log, id thread.ID, run uint64) *writer {
	t.Helper()
	lease, err := log.Acquire(t.Context(), thread.Claim{Thread: id, RunID: runID(run), Owner: "node-a"}, leaseTTL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{t: t, log: log, run: run, lease: lease, cancel: cancel, done: make(chan struct{})}
	go w.keep(ctx)
	t.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// keep renews the lease, as the runner's keeper does.
func (w *writer) keep(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(leaseTTL / 3)
	defer tick.Stop()
	for {
		asked := w.current().Asked
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-asked:
		}
		renewed, err := w.log.Renew(ctx, w.current(), leaseTTL)
		w.mu.Lock()
		switch {
		case err == nil:
			w.lease = renewed
		case errors.Is(err, thread.ErrLeaseLost):
			w.lost = err
		}
		w.mu.Unlock()
	}
}

func (w *writer) current() thread.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

func event(run, seq uint64) thread.Entry {
	return thread.Entry{
		Run: run, RunID: runID(run), Seq: seq, Kind: thread.KindEvent,
		Data: fmt.Appendf(nil, `{"type":"CUSTOM","name":"n","value":"%d-%d"}`, run, seq),
	}
}

// write appends n events, one after the other, and fails the test unless that succeeds in the end.
func (w *writer) write(n int) {
	w.t.Helper()
	for range n {
		w.add(event(w.run, uint64(len(w.all)+1)))
	}
}

func (w *writer) end() {
	w.t.Helper()
	w.add(thread.Entry{
		Run: w.run, RunID: runID(w.run), Seq: uint64(len(w.all) + 1), Kind: thread.KindEnd, Data: []byte(`{"outcome":"finished"}`),
	})
}

func (w *writer) add(e thread.Entry) {
	w.t.Helper()
	w.all = append(w.all, e)
	if err := w.append(w.all[len(w.all)-1:]); err != nil {
		w.t.Errorf("append %s: %v", e.Cursor(), err)
	}
}

func (w *writer) append(entries []thread.Entry) error {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		err := w.log.Append(context.Background(), w.current(), entries)
		if errors.Is(err, thread.ErrGap) {
			err = w.log.Append(context.Background(), w.current(), w.all)
		}
		if !errors.Is(err, thread.ErrUnavailable) || time.Now().After(deadline) {
			return err
		}
		pause(wait)
	}
}

// pause waits in the place of something that tries again.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// viewer tails a thread, and sees to it that each entry comes once and in order.
type viewer struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan struct{}
	more   chan struct{}
	err    error // of Tail; to be read after done

	mu  sync.Mutex
	got []thread.Entry
}

func view(t testing.TB, log *redislog.Log, id thread.ID) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	v := &viewer{t: t, cancel: cancel, done: make(chan struct{}), more: make(chan struct{}, 1)}
	ready := make(chan struct{})
	once := sync.OnceFunc(func() { close(ready) })
	go func() {
		defer close(v.done)
		defer once()
		var last thread.Cursor
		v.err = log.Tail(ctx, id, thread.Cursor{}, func(batch []thread.Entry) error {
			once()
			for _, e := range batch {
				at := e.Cursor()
				if at.Run == last.Run && at.Seq != last.Seq+1 || at.Run != last.Run && at.Seq != 1 || at.Run < last.Run {
					return fmt.Errorf("entry %s came after %s", at, last)
				}
				last = at
			}
			v.mu.Lock()
			v.got = append(v.got, batch...)
			v.mu.Unlock()
			select {
			case v.more <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-v.done
	})
	<-ready
	return v
}

func (v *viewer) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.got)
}

// reach waits until n entries have come.
func (v *viewer) reach(n int) {
	v.t.Helper()
	deadline := time.After(patience)
	for v.count() < n {
		select {
		case <-v.more:
		case <-v.done:
			if v.count() < n {
				v.t.Fatalf("Tail returned %v after %d entries of %d", v.err, v.count(), n)
			}
		case <-deadline:
			v.t.Fatalf("waited %v for %d entries; %d came", patience, n, v.count())
		}
	}
}

// has expects that exactly these entries have come.
func (v *viewer) has(want []thread.Entry) {
	v.t.Helper()
	v.reach(len(want))
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.got) != len(want) {
		v.t.Fatalf("%d entries came, want %d", len(v.got), len(want))
	}
	for i, e := range v.got {
		if e.Cursor() != want[i].Cursor() || string(e.Data) != string(want[i].Data) || e.Kind != want[i].Kind {
			v.t.Fatalf("entry %d is %s %q, want %s %q", i, e.Cursor(), e.Data, want[i].Cursor(), want[i].Data)
		}
	}
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
		pause(5 * time.Millisecond)
	}
}
