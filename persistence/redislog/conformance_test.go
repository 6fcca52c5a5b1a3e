package redislog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofrs/flock"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestMain(m *testing.M) {
	if logtest.Child(openDurable) {
		return
	}
	code := m.Run()
	if shared.server != nil {
		shared.server.Kill()
		os.RemoveAll(shared.server.Dir())
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is a server for all tests that do nothing to it.
var shared struct {
	once   sync.Once
	server *redistest.Server
	err    error
	prefix atomic.Int64
}

func sharedServer(tb testing.TB) *redistest.Server {
	tb.Helper()
	redistest.Need(tb)
	shared.once.Do(func() {
		shared.server, shared.err = redistest.Start(redistest.Config{Memory: true})
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

// newPrefix returns a prefix that no other test has.
func newPrefix() string { return fmt.Sprintf("test%d:", shared.prefix.Add(1)) }

// open opens a log of a server, which is closed when the test ends.
func open(tb testing.TB, addr, prefix string) *redislog.Log {
	tb.Helper()
	return openWith(tb, redis.UniversalOptions{Addrs: []string{addr}}, redislog.Options{Prefix: prefix})
}

func openWith(tb testing.TB, dial redis.UniversalOptions, opts redislog.Options) *redislog.Log {
	tb.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	log, err := redislog.New(tb.Context(), dial, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := log.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return log
}

func setup(tb testing.TB) *redislog.Log {
	tb.Helper()
	return open(tb, sharedServer(tb).Addr(), newPrefix())
}

func TestConformance(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Log { return setup(t) })
}

// Two nodes: whatever is asked, it is now one of them that answers and now the other.
func TestConformanceOfTwoNodes(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Log {
		prefix := newPrefix()
		return &pair{nodes: [2]*redislog.Log{
			open(t, sharedServer(t).Addr(), prefix), open(t, sharedServer(t).Addr(), prefix),
		}}
	})
}

func TestDurable(t *testing.T) {
	sharedServer(t)
	logtest.RunDurable(t, openDurable)
}

// durable is a log with a server of its own, whose data are in a directory.
type durable struct {
	*redislog.Log
	server *redistest.Server
	lock   *flock.Flock
}

// Close closes the log and then the server.
func (d *durable) Close() error {
	err := d.Log.Close()
	d.server.Kill()
	if err := d.lock.Unlock(); err != nil {
		return err
	}
	return err
}

// openDurable starts a server on a directory and opens the log in it. A log on Redis outlives its nodes, and with it
// their leases do: it is opened as if their deadlines had passed meanwhile.
func openDurable(dir string) (logtest.Log, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return nil, fmt.Errorf("the directory is in use: %w", thread.ErrUnavailable)
	}
	server, err := redistest.Start(redistest.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := expireLeases(server); err != nil {
		return nil, err
	}
	log, err := redislog.New(context.Background(), redis.UniversalOptions{Addrs: []string{server.Addr()}}, redislog.Options{
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return &durable{Log: log, server: server, lock: lock}, nil
}

// expireLeases puts the deadlines of all leases into the past.
func expireLeases(server *redistest.Server) error {
	c := server.Client()
	defer c.Close()
	return c.Eval(context.Background(), `
		for _, key in ipairs(redis.call('KEYS', '*lock:{*')) do
			if redis.call('HGET', key, 'held') then redis.call('HSET', key, 'deadline', '1') end
		end
		for _, key in ipairs(redis.call('KEYS', '*leases:{*')) do
			for _, thread in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZADD', key, 1, thread) end
		end
		return 1`, nil).Err()
}
