package redislog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// ways are what can happen to a server in mid run.
var ways = []struct {
	name string
	do   func(*redistest.Server) error
}{
	{"restarted with its data", func(s *redistest.Server) error { return s.Restart() }},
	{"restarted without its data", func(s *redistest.Server) error { return s.RestartEmpty() }},
	{"flushed", func(s *redistest.Server) error { return s.FlushAll() }},
	{"made to evict the run", func(s *redistest.Server) error {
		c := s.Client()
		defer c.Close()
		names, err := c.Keys(context.Background(), "*stream:*").Result()
		if err != nil || len(names) != 1 {
			return fmt.Errorf("streams %q: %w", names, err)
		}
		return c.Del(context.Background(), names...).Err()
	}},
	{"paused", func(s *redistest.Server) error {
		s.Pause()
		pause(4500 * time.Millisecond)
		s.Continue()
		return nil
	}},
}

// Whatever happens to the server, a run goes on whose writer lives, under its lease, and every viewer, on the writer's
// node and on others, gets every entry once.
func TestRunOutlivesItsServer(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Run(t, redistest.Config{})
			home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
			w := newWriter(t, home, "t", 1)
			token := w.current().Token
			near, far := view(t, home, "t"), view(t, away, "t")
			w.write(40)
			far.reach(20)
			if err := way.do(server); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.write(40)
			near.reach(80)
			far.reach(80)
			t.Logf("both viewers had everything %v after the server was back", time.Since(began).Round(time.Millisecond))
			late := view(t, away, "t")
			w.end()
			for _, v := range []*viewer{near, far, late} {
				v.has(w.all)
			}
			held, err := away.Holder(t.Context(), "t")
			if err != nil || held.Token != token {
				t.Fatalf("Holder = %+v, %v; want token %d", held, err, token)
			}
			eventually(t, "both nodes are healthy", func() bool {
				return home.Healthy(t.Context()) == nil && away.Healthy(t.Context()) == nil
			})
		})
	}
}

// silent starts a server with a run whose holder says nothing from then on, and empties the server.
func silent(t *testing.T) (server *redistest.Server, home, away *redislog.Log, lease thread.Lease) {
	server = redistest.Run(t, redistest.Config{Memory: true})
	home, away = open(t, server.Addr(), ""), open(t, server.Addr(), "")
	lease, err := home.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: runID(1), Owner: "node-a"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 1), event(1, 2)}); err != nil {
		t.Fatal(err)
	}
	if err := server.FlushAll(); err != nil {
		t.Fatal(err)
	}
	return server, home, away, lease
}

func TestLeaseAfterLoss(t *testing.T) {
	t.Parallel()
	claim := thread.Claim{Thread: "t", RunID: runID(2), Owner: "node-b"}
	t.Run("its holder is woken within two seconds", func(t *testing.T) {
		t.Parallel()
		_, _, _, lease := silent(t)
		select {
		case <-lease.Asked:
		case <-time.After(2 * time.Second):
			t.Fatal("the holder was not woken")
		}
	})
	t.Run("nobody else gets it for a moment", func(t *testing.T) {
		t.Parallel()
		_, home, away, lease := silent(t)
		if _, err := away.Acquire(t.Context(), claim, time.Hour); !errors.Is(err, thread.ErrUnavailable) {
			t.Fatalf("Acquire: got %v, want %v", err, thread.ErrUnavailable)
		}
		if _, err := home.Renew(t.Context(), lease, time.Hour); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		if _, err := away.Acquire(t.Context(), claim, time.Hour); !errors.Is(err, thread.ErrUnavailable) {
			t.Fatalf("Acquire: got %v, want %v", err, thread.ErrUnavailable)
		}
		eventually(t, "the moment passes", func() bool {
			_, err := away.Acquire(t.Context(), claim, time.Hour)
			return errors.Is(err, thread.ErrRunning)
		})
	})
	t.Run("an append writes it again, and asks for the run from its beginning", func(t *testing.T) {
		t.Parallel()
		_, home, away, lease := silent(t)
		if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 3)}); !errors.Is(err, thread.ErrGap) {
			t.Fatalf("Append: got %v, want %v", err, thread.ErrGap)
		}
		if held, err := away.Holder(t.Context(), "t"); err != nil || held.Token != lease.Token || held.RunID != lease.RunID {
			t.Fatalf("Holder = %+v, %v; want %+v", held, err, lease)
		}
		if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 1), event(1, 2), event(1, 3)}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("whoever took the thread since keeps it, with a greater token", func(t *testing.T) {
		t.Parallel()
		_, home, away, lease := silent(t)
		var taken thread.Lease
		eventually(t, "another takes the thread", func() bool {
			var err error
			taken, err = away.Acquire(t.Context(), claim, time.Hour)
			return err == nil
		})
		if taken.Token <= lease.Token {
			t.Fatalf("token %d after token %d", taken.Token, lease.Token)
		}
		stale := func() {
			t.Helper()
			if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 3)}); !errors.Is(err, thread.ErrLeaseLost) {
				t.Fatalf("Append: got %v, want %v", err, thread.ErrLeaseLost)
			}
			if _, err := home.Renew(t.Context(), lease, time.Hour); !errors.Is(err, thread.ErrLeaseLost) {
				t.Fatalf("Renew: got %v, want %v", err, thread.ErrLeaseLost)
			}
		}
		stale()
		if err := away.Release(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		stale()
	})
}

// A lease whose record alone is gone was given in the data at hand: it is lost.
func TestLeaseWithoutRecord(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	w := newWriter(t, open(t, server.Addr(), "p:"), "t", 1)
	w.write(3)
	c := server.Client()
	defer c.Close()
	names, err := c.Keys(t.Context(), "p:lock:*").Result()
	if err != nil || len(names) != 1 {
		t.Fatalf("locks %q, %v", names, err)
	}
	if err := c.Del(t.Context(), names...).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder is told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return errors.Is(w.lost, thread.ErrLeaseLost)
	})
}

// When the log lost entries that a viewer has, and who takes the run over ends it before that point, there is nothing
// that the viewer could be given.
func TestRunThatEndsBeforeWhatWasShown(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]int{"on another node": 0, "on the same node": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, home, away, lease := silent(t)
			if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 1), event(1, 2), event(1, 3)}); err != nil {
				t.Fatal(err)
			}
			v := view(t, away, "t")
			v.reach(3)
			if err := home.Drop(t.Context(), "t", 1, 0); err != nil {
				t.Fatal(err)
			}
			by := []*redislog.Log{home, away}[node]
			if err := by.Append(t.Context(), lease, []thread.Entry{
				event(1, 1), {Run: 1, RunID: runID(1), Seq: 2, Kind: thread.KindEnd, Data: []byte("{}")},
			}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-v.done:
			case <-time.After(patience):
				t.Fatal("Tail goes on")
			}
			if !errors.Is(v.err, thread.ErrUnavailable) {
				t.Fatalf("Tail returned %v, want %v", v.err, thread.ErrUnavailable)
			}
		})
	}
}
