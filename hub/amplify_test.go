package hub_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// counted counts the bytes that are read from a log.
type counted struct {
	*memlog.Log
	read int
}

func (c *counted) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	entries, err := c.Log.Read(ctx, id, after, limit)
	for _, e := range entries {
		c.read += len(e.Data)
	}
	return entries, err
}

// TestLargeEntriesAreReadOnce checks that a reader far behind does not read what it cannot take yet over and over.
func TestLargeEntriesAreReadOnce(t *testing.T) {
	for _, replay := range []hub.Replay{hub.Raw, hub.Compact} {
		log := &counted{Log: memlog.New()}
		lease, err := log.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: "r", Owner: "n"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		const entries, size = 500, 50_000
		for seq := range uint64(entries) {
			e := thread.Entry{Run: 1, RunID: "r", Seq: seq + 1, Kind: thread.KindEvent, Data: bytes.Repeat([]byte("x"), size)}
			if err := log.Append(t.Context(), lease, []thread.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
		h := hub.New(log, &shelf{}, hub.Config{})
		s, err := h.Subscribe(t.Context(), "t", hub.Options{Replay: replay})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for got < entries {
			b, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got += len(b.Events)
		}
		if log.read > 3*entries*size {
			t.Errorf("to deliver %d bytes %d were read", entries*size, log.read)
		}
		s.Close()
		h.Close()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
