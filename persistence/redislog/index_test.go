package redislog_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// named returns the names of the keys of a kind.
func named(t *testing.T, c *redis.Client, pattern string) []string {
	t.Helper()
	names, err := c.Keys(t.Context(), pattern).Result()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The index of a thread that is in steady use holds those of its runs that are in the log, and no others.
func TestExpiredRunsLeaveTheIndex(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	log := open(t, server.Addr(), "")
	c := server.Client()
	defer c.Close()
	for number := uint64(1); number <= 20; number++ {
		lease, err := log.Acquire(t.Context(), thread.Claim{Thread: "t", RunID: runID(number), Owner: "node-a"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), lease, []thread.Entry{event(number, 1)}); err != nil {
			t.Fatal(err)
		}
		// The one before has expired by now.
		if err := log.Drop(t.Context(), "t", number, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := log.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the run expires", func() bool { return len(named(t, c, "*stream:*")) == 0 })
	}
	for _, name := range named(t, c, "*active:*") {
		if n, err := c.ZCard(t.Context(), name).Result(); err != nil || n > 1 {
			t.Errorf("the index has %d runs, %v", n, err)
		}
	}
}

// An index that is gone while a run goes on is made again, by what is appended or by the next renewal.
func TestLostIndex(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(w *writer) error{
		"and the lease is renewed": func(w *writer) error { _, err := w.log.Renew(t.Context(), w.current(), time.Hour); return err },
		"and entries are repeated": func(w *writer) error {
			return w.log.Append(t.Context(), w.current(), []thread.Entry{event(1, 2), event(1, 3)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Run(t, redistest.Config{Memory: true})
			home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
			c := server.Client()
			defer c.Close()
			w := newWriter(t, home, "t", 1)
			w.write(3)
			if err := c.Del(t.Context(), named(t, c, "*active:*")...).Err(); err != nil {
				t.Fatal(err)
			}
			if err := mend(w); err != nil {
				t.Fatal(err)
			}
			if entries, err := away.Read(t.Context(), "t", thread.Cursor{}, 10); err != nil || len(entries) != 3 {
				t.Errorf("another node reads %d entries, %v", len(entries), err)
			}
			v := view(t, away, "t")
			v.reach(3)
			w.write(2)
			v.reach(5)
		})
	}
}

// When Redis has lost its data, the log sees to it that they still belong to its history, and says so if they do not.
func TestClaimAfterLoss(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	log := open(t, server.Addr(), "")
	if err := log.Claim(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	c := server.Client()
	defer c.Close()
	if err := server.FlushAll(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim is there again", func() bool { return c.Get(t.Context(), "threadcast:history").Val() == "mine" })
	if err := c.Set(t.Context(), "threadcast:history", "another's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is not healthy", func() bool { return log.Healthy(t.Context()) != nil })
	if err := c.Del(t.Context(), "threadcast:history").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is healthy", func() bool { return log.Healthy(t.Context()) == nil })
}

// A node may come to a Redis whose memory is used up.
func TestClaimWhenMemoryIsUsedUp(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	log := open(t, server.Addr(), "")
	c := server.Client()
	defer c.Close()
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := log.Claim(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
	if err := open(t, server.Addr(), "").Claim(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
}
