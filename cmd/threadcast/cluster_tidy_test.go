package main_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
	"github.com/threadcast/threadcast/persistence/redislog"
)

// lasting are the kinds of keys of which there is one for every group of threads, whatever happens. Of these the counters stay
// for ever; the others go when nothing happens for long.
var lasting = []string{"counters", "news", "probe", "leases"}

// whose is the key that tells which database the keys belong to. It stays, too.
const whose = "history"

// TestFinishedThreadsLeaveNothingInRedis runs thousands of threads and waits for their retention to pass. Then Redis holds
// nothing of any of them, and not more than before: keys and memory are back where they were but for the news of each
// group, which are bounded. The node has no more goroutines than a fresh one.
func TestFinishedThreadsLeaveNothingInRedis(t *testing.T) {
	threads := sized(10_000, 500)
	if underRace {
		threads = 60
	}
	c := startCluster(t, 1, "--retention", "1s", "--redis-lock", "1s", "--log-level", "warn")
	n, r := c.nodes[0], c.look()
	c.sprints(60)
	r.awaitRest()
	keys, memory, rss := r.size(), r.memory(), n.usage().rss

	began := time.Now()
	report := c.sprints(threads)
	took := time.Since(began)
	most := r.size()
	for _, key := range r.keys() {
		stays := key == redislog.DefaultPrefix+whose || strings.HasPrefix(key, redislog.DefaultPrefix+"counters:{")
		if r.life(key) < 0 && !stays {
			t.Errorf("the key %q would stay for ever", key)
		}
	}
	began = time.Now()
	r.awaitRest()
	rest := time.Since(began)
	left, used, news := r.size(), r.memory(), r.news()
	if left > keys {
		t.Errorf("Redis has %d keys; before it had %d", left, keys)
	}
	// What comes to the baseline is the news, at most 4,096 short lines of each group and the rest of a node of the stream,
	// and a megabyte for what the server's allocator and its tables have grown by.
	if used-news > memory+1<<20 || news > redislog.Groups*5_000*200 {
		t.Errorf("Redis uses %d bytes, %d of them for news; before it used %d", used, news, memory)
	}
	after := n.usage().rss
	client.CloseIdleConnections()
	n.atRest()
	fresh := c.add()
	goroutines, normal := n.goroutines(), fresh.goroutines()
	if goroutines > normal+10 {
		t.Errorf("the node has %d goroutines; a fresh one has %d", goroutines, normal)
	}
	measured(t, "%d threads of %d events in all, in %s, %s a thread; keys in Redis %d before, %d at the end of the load, %d after %s more; memory %d kB before, %d kB then, %d kB of them news; goroutines %d, of a fresh node %d; memory of the node %d and %d MB",
		threads, report.Events, took.Round(100*time.Millisecond), (took / time.Duration(threads)).Round(100*time.Microsecond),
		keys, most, left, rest.Round(100*time.Millisecond), memory>>10, used>>10, news>>10, goroutines, normal, rss>>20, after>>20)
}

// sprints runs one short run on each of so many new threads, 32 at a time, and checks what a viewer sees of each.
func (c *cluster) sprints(threads int) loadtest.Report {
	c.t.Helper()
	cfg := loadtest.Defaults()
	cfg.Threads, cfg.Viewers, cfg.AtOnce, cfg.Restless, cfg.Connect = threads, 1, 32, 5, 0
	cfg.Emit = loadtest.Emit{Count: 6, Bytes: 120}
	cfg.Patience = patience
	for _, n := range c.nodes {
		cfg.URLs = append(cfg.URLs, n.url)
	}
	report, err := loadtest.Run(context.Background(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	if !report.OK() || report.Runs.Finished != int64(threads) {
		c.t.Fatalf("the load came out so:\n%+v", report)
	}
	return report
}

// awaitRest waits until there are none but the lasting keys.
func (l *looker) awaitRest() {
	l.t.Helper()
	var others []string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("there are %d others, such as %q", len(others), others[:min(len(others), 5)])
		}
	}()
	eventually(l.t, time.Minute, "only lasting keys are left in Redis", func() bool {
		others = slices.DeleteFunc(l.keys(), lasts)
		return len(others) == 0
	})
}

// lasts tells whether a key is a lasting one.
func lasts(key string) bool {
	key = strings.TrimPrefix(key, redislog.DefaultPrefix)
	if key == whose {
		return true
	}
	kind, rest, _ := strings.Cut(key, ":{")
	group, node, _ := strings.Cut(rest, "}")
	n, err := strconv.Atoi(group)
	return err == nil && n < redislog.Groups && (node == "" || kind == "probe") && slices.Contains(lasting, kind)
}

// keys returns the names of all keys.
func (l *looker) keys() []string {
	l.t.Helper()
	var all []string
	scan := l.Scan(context.Background(), 0, "*", 1_000).Iterator()
	for scan.Next(context.Background()) {
		all = append(all, scan.Val())
	}
	if err := scan.Err(); err != nil {
		l.t.Fatal(err)
	}
	return all
}

func (l *looker) size() int { return int(must(l.DBSize(context.Background()).Result())(l.t)) }

// life is how long a key has to live, negative for ever. One that has gone meanwhile has no time left.
func (l *looker) life(key string) time.Duration {
	l.t.Helper()
	d := must(l.PTTL(context.Background(), key).Result())(l.t)
	if d == -2 {
		return 0
	}
	return d
}

// memory is how many bytes the server has in use.
func (l *looker) memory() int {
	l.t.Helper()
	info := must(l.Info(context.Background(), "memory").Result())(l.t)
	_, used, _ := strings.Cut(info, "\r\nused_memory:")
	used, _, _ = strings.Cut(used, "\r\n")
	return must(strconv.Atoi(used))(l.t)
}

// news is how many bytes the news of all groups take.
func (l *looker) news() (sum int) {
	l.t.Helper()
	for g := range redislog.Groups {
		size, err := l.MemoryUsage(context.Background(), groupKey("news", g), 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			l.t.Fatal(err)
		}
		sum += int(size)
	}
	return sum
}

// must returns the value, or ends the test if there is an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
