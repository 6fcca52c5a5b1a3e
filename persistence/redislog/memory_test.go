package redislog_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// When the memory of the server is used up, no events are let in; what ends runs is.
func TestMemoryUsedUp(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true, Args: []string{"--maxmemory", "30mb"}})
	log := open(t, server.Addr(), "")
	v := view(t, log, "t")
	w := newWriter(t, log, "t", 1)
	var err error
	for err == nil && len(w.all) < 1000 {
		e := event(1, uint64(len(w.all)+1))
		e.Data = bytes.Repeat([]byte("x"), 100<<10)
		if err = log.Append(t.Context(), w.current(), []thread.Entry{e}); err == nil {
			w.all = append(w.all, e)
		}
	}
	if !errors.Is(err, thread.ErrFull) || errors.Is(err, thread.ErrUnavailable) {
		t.Fatalf("after %d entries of 100 kB: got %v, want %v", len(w.all), err, thread.ErrFull)
	}
	if head, err := log.Head(t.Context(), "t"); err != nil || head.Seq != uint64(len(w.all)) {
		t.Fatalf("Head = %s, %v; want seq %d", head, err, len(w.all))
	}
	if _, err := log.Renew(t.Context(), w.current(), time.Hour); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	last := uint64(len(w.all))
	ending := []thread.Entry{event(1, last+1), {Run: 1, RunID: runID(1), Seq: last + 2, Kind: thread.KindEnd, Data: []byte("{}")}}
	if err := log.Append(t.Context(), w.current(), ending); err != nil {
		t.Fatalf("Append of the end: %v", err)
	}
	w.all = append(w.all, ending...)
	v.has(w.all)
	if err := log.Drop(t.Context(), "t", 1, 0); err != nil {
		t.Fatal(err)
	}
	other := newWriter(t, log, "u", 1)
	eventually(t, "there is room again", func() bool {
		return log.Append(t.Context(), other.current(), []thread.Entry{event(1, 1)}) == nil
	})
}
