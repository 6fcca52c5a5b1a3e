package redislog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// A node that watches a thousand threads, half of which run elsewhere, has no more connections than one that watches
// none, and sees within 200 ms when a run begins on any of them.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	const threads, runs = 1000, 400
	server := redistest.Run(t, redistest.Config{Memory: true})
	home, away := open(t, server.Addr(), ""), open(t, server.Addr(), "")
	id := func(i int) thread.ID { return thread.ID(fmt.Sprintf("thread %d", i)) }
	viewers := make([]*viewer, threads)
	for i := range viewers {
		viewers[i] = view(t, away, id(i))
	}
	if n := connections(t, server); n > 100 {
		t.Errorf("two nodes have %d connections, want less than 50 each", n)
	}
	var took []time.Duration
	leases := make([]thread.Lease, runs)
	for i := range runs {
		lease, err := home.Acquire(t.Context(), thread.Claim{Thread: id(i), RunID: runID(1), Owner: "node-a"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := home.Append(t.Context(), lease, []thread.Entry{event(1, 1)}); err != nil {
			t.Fatal(err)
		}
		viewers[i].reach(1)
		took = append(took, time.Since(began))
		leases[i] = lease
	}
	slices.Sort(took)
	t.Logf("a new run was seen after %v (median), %v (p99), %v (most)", took[runs/2], took[runs*99/100], took[runs-1])
	if p99 := took[runs*99/100]; p99 > 200*time.Millisecond {
		t.Errorf("a new run was seen after %v (p99)", p99)
	}
	for seq := uint64(2); seq <= 5; seq++ {
		for _, lease := range leases {
			if err := home.Append(t.Context(), lease, []thread.Entry{event(1, seq)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, v := range viewers[:runs] {
		v.reach(5)
	}
	if n := connections(t, server); n > 100 {
		t.Errorf("two nodes have %d connections, want less than 50 each", n)
	} else {
		t.Logf("two nodes have %d connections", n)
	}
}

func connections(t *testing.T, server *redistest.Server) int {
	t.Helper()
	c := server.Client()
	defer c.Close()
	list, err := c.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n") - 1
}

// When runs have been dropped and leases released, nothing is left but what is there of each group.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	prefix := newPrefix()
	log := openWith(t, redis.UniversalOptions{Addrs: []string{server.Addr()}}, redislog.Options{
		Prefix: prefix, Lock: 50 * time.Millisecond,
	})
	for i := range 500 {
		id := thread.ID(fmt.Sprintf("thread %d", i))
		lease, err := log.Acquire(t.Context(), thread.Claim{Thread: id, RunID: runID(1), Owner: "node-a"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(
			log.Append(t.Context(), lease, []thread.Entry{event(1, 1), event(1, 2)}),
			log.Drop(t.Context(), id, 1, time.Duration(i%3)*20*time.Millisecond),
			log.Release(t.Context(), lease),
		); err != nil {
			t.Fatal(err)
		}
	}
	c := server.Client()
	defer c.Close()
	eventually(t, "all keys of threads go", func() bool {
		names, err := c.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			kind, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), ":")
			if kind != "counters" && kind != "news" && kind != "probe" {
				return false
			}
		}
		return true
	})
}

// Every key has a life, but for the counters, of which there is a constant number.
func TestEveryKeyHasALife(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	log := open(t, server.Addr(), "")
	w := newWriter(t, log, "t", 1)
	w.write(300)
	if err := logtest.Wipe(t.Context(), log, "u"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.AskStop(t.Context(), "t", thread.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	c := server.Client()
	defer c.Close()
	names, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(names) < 10 {
		t.Fatalf("keys %q, %v", names, err)
	}
	kinds := make(map[string]bool)
	for _, name := range names {
		life, err := c.PTTL(t.Context(), name).Result()
		kind := strings.Split(name, ":")[1]
		kinds[kind] = true
		if err != nil || life <= 0 && kind != "counters" {
			t.Errorf("%s lives for %v, %v", name, life, err)
		}
	}
	for _, kind := range []string{"stream", "active", "lock", "news", "leases"} {
		if !kinds[kind] {
			t.Errorf("there is no key of kind %s", kind)
		}
	}
}
