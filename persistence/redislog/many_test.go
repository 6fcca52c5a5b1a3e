//go:build integration

package redislog_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func clusterOf(servers []*redistest.Server) redis.UniversalOptions {
	var dial redis.UniversalOptions
	for _, s := range servers {
		dial.Addrs = append(dial.Addrs, s.Addr())
	}
	return dial
}

func TestCluster(t *testing.T) {
	dial := clusterOf(redistest.RunCluster(t, 3))
	t.Run("conformance", func(t *testing.T) {
		logtest.Run(t, func(t *testing.T) logtest.Log {
			return openWith(t, dial, redislog.Options{Prefix: newPrefix()})
		})
	})
	t.Run("conformance of two nodes", func(t *testing.T) {
		logtest.Run(t, func(t *testing.T) logtest.Log {
			prefix := newPrefix()
			return &pair{nodes: [2]*redislog.Log{
				openWith(t, dial, redislog.Options{Prefix: prefix}), openWith(t, dial, redislog.Options{Prefix: prefix}),
			}}
		})
	})
}

// A server of a Cluster that is away holds up its own threads only, and those until it is back.
func TestClusterServerAway(t *testing.T) {
	servers := redistest.RunCluster(t, 3)
	dial := clusterOf(servers)
	home, away := openWith(t, dial, redislog.Options{}), openWith(t, dial, redislog.Options{})
	const threads = 12
	writers, viewers := make([]*writer, threads), make([]*viewer, threads)
	for i := range writers {
		id := thread.ID(fmt.Sprintf("thread %d", i))
		writers[i], viewers[i] = newWriter(t, home, id, 1), view(t, away, id)
		writers[i].write(5)
	}
	n := 0
	for _, s := range servers {
		n += connections(t, s)
	}
	t.Logf("two nodes have %d connections to three servers", n)
	if n > 100 {
		t.Errorf("two nodes have %d connections, want less than 50 each", n)
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	for i, w := range writers {
		w.write(20)
		w.end()
		viewers[i].has(w.all)
	}
}

// When the primary dies, the replica takes its place: a run goes on, and its viewers miss nothing.
func TestSentinelFailover(t *testing.T) {
	w := redistest.RunSentinel(t)
	dial := redis.UniversalOptions{Addrs: []string{w.Sentinel}, MasterName: w.Name}
	home, away := openWith(t, dial, redislog.Options{}), openWith(t, dial, redislog.Options{})
	run := newWriter(t, home, "t", 1)
	near, far, idle := view(t, home, "t"), view(t, away, "t"), view(t, away, "u")
	run.write(50)
	far.reach(50)
	w.Primary.Kill()
	died := time.Now()
	eventually(t, "health is red", func() bool { return errors.Is(away.Healthy(t.Context()), thread.ErrUnavailable) })
	run.write(50)
	far.reach(100)
	t.Logf("the viewers had everything %v after the primary died", time.Since(died).Round(time.Millisecond))
	eventually(t, "health is green", func() bool {
		return home.Healthy(t.Context()) == nil && away.Healthy(t.Context()) == nil
	})
	t.Logf("health was green %v after the primary died", time.Since(died).Round(time.Millisecond))
	other := newWriter(t, home, "u", 1)
	other.write(1)
	idle.reach(1)
	run.end()
	near.has(run.all)
	far.has(run.all)
}
