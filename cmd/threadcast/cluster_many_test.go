package main_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
	"github.com/threadcast/threadcast/persistence/redislog"
)

// TestManyThreadsShareFewRedisConnections lets many threads run at once on one node, each with five viewers. However many there
// are, the node has the same few connections to Redis, never waits in vain for one, and every viewer has every event.
func TestManyThreadsShareFewRedisConnections(t *testing.T) {
	threads, seconds := sized(1_000, 100), sized(30, 5)
	if underRace {
		threads = 30
	}
	c := startCluster(t, 1, "--log-level", "warn", "--lease", "15s")
	n, r := c.nodes[0], c.look()
	few := c.load(sized(40, 20), 2, func() {}) // so that the connections that any load needs are there
	if !few.OK() {
		t.Fatalf("a small load came out so:\n%+v", few)
	}
	before := r.connections()
	var during []int
	running := 0
	report := c.load(threads, seconds, func() {
		during = append(during, r.connections())
		running = max(running, r.leases())
	})
	after := r.connections()
	if !report.OK() || report.Returns.Reconnects > 0 {
		t.Errorf("the load came out so:\n%+v", report)
	}
	if running != threads {
		t.Errorf("at most %d threads ran at once, not %d", running, threads)
	}
	least, most := slices.Min(during), slices.Max(during)
	if most >= 50 || most > before+4 || after > most {
		t.Errorf("the node has %d connections to Redis, with %d threads between %d and %d, then %d", before, threads, least, most, after)
	}
	if text := n.stderr.String(); strings.Contains(text, "pool timeout") {
		t.Errorf("the node printed:\n%s", text)
	}
	measured(t, "%d threads run at once on one node with %d sockets: connections to Redis %d before, %d to %d during, %d after; %d events, %d deliveries, first event p50 %s, p99 %s; connecting took %s, running %s, %d viewers resumed; memory %d MB",
		running, threads*5, before, least, most, after, report.Events, report.Deliveries, report.FirstEvent.P50, report.FirstEvent.P99,
		report.Connecting, report.Running, report.Returns.Resumes, n.usage().peak>>20)
}

// load runs as many threads at once, for about as many seconds, and calls look again and again meanwhile.
func (c *cluster) load(threads, seconds int, look func()) loadtest.Report {
	c.t.Helper()
	cfg := loadtest.Defaults()
	cfg.Threads, cfg.Viewers, cfg.Restless, cfg.Drops = threads, 5, 10, 1
	cfg.Emit = loadtest.Emit{Count: seconds, Rate: 1, Bytes: 150}
	cfg.Patience, cfg.Connect = patience, 300
	for _, n := range c.nodes {
		cfg.URLs = append(cfg.URLs, n.url)
	}
	type outcome struct {
		report loadtest.Report
		err    error
	}
	over := make(chan outcome, 1)
	go func() {
		report, err := loadtest.Run(context.Background(), cfg)
		over <- outcome{report, err}
	}()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case o := <-over:
			if o.err != nil {
				c.t.Fatal(o.err)
			}
			return o.report
		case <-again.C:
			look()
		}
	}
}

// looker looks into the Redis of a cluster.
type looker struct {
	t testing.TB
	*redis.Client
}

func (c *cluster) look() *looker {
	client := c.redis.Client()
	c.t.Cleanup(func() { _ = client.Close() })
	return &looker{c.t, client}
}

// connections counts those of the nodes.
func (l *looker) connections() int {
	l.t.Helper()
	list, err := l.ClientList(context.Background()).Result()
	if err != nil {
		l.t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name=threadcast ") {
			count++
		} else if !strings.Contains(line, " cmd=client") && !strings.Contains(line, " name= ") {
			l.t.Errorf("whose connection is this? %s", line)
		}
	}
	return count
}

// leases counts the threads that are leased.
func (l *looker) leases() int {
	l.t.Helper()
	pipe := l.Pipeline()
	for g := range redislog.Groups {
		pipe.ZCard(context.Background(), groupKey("leases", g))
	}
	replies, err := pipe.Exec(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	sum := 0
	for _, reply := range replies {
		sum += int(reply.(*redis.IntCmd).Val())
	}
	return sum
}

// groupKey is the name of a key that there is once for every group of threads.
func groupKey(kind string, group int) string {
	return redislog.DefaultPrefix + kind + ":{" + strconv.Itoa(group) + "}"
}
