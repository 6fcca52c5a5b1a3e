package redislog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options are the choices of [New]. The zero value is right for a server.
type Options struct {
	// Prefix is what the names of all keys begin with; [DefaultPrefix] if empty.
	Prefix string
	// Active is how long a run stays that nobody finishes, from its last entry or the last renewal of its lease on, and
	// the record of a lease that nobody takes over, from its deadline on: garbage, of which nothing but an outage of
	// all nodes should make any. A week if zero.
	Active time.Duration
	// Lock is how long it is remembered that a lease was released; 5 minutes if zero.
	Lock time.Duration
	// Logger hears of what fails with nobody there to be told; [slog.Default] if nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.Active = cmp.Or(o.Active, 7*24*time.Hour)
	o.Lock = cmp.Or(o.Lock, 5*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Log is a live log with its leases. Its methods are safe for concurrent use.
type Log struct {
	*server
	first     [Groups]string // of each group's counters, as of New
	appenders []*appender
	lanes     [Groups]*lane
	prober    *prober
	holders   holders
	board     atomic.Pointer[Board] // nil if nobody listens
	lists     atomic.Pointer[ListBoard]
	poster    poster
	history   atomic.Pointer[string] // whose runs these are; nil before Claim

	once    sync.Once
	running sync.WaitGroup
}

// New connects to Redis and returns the log that is there. A single server, Sentinel (MasterName is set) and Cluster
// (several Addrs, or IsClusterMode) are told apart as [redis.NewUniversalClient] does. Timeouts, pool sizes, retries and
// the protocol's version are the log's own; the rest of dial is used as it is. New starts goroutines, which [Log.Close]
// ends. Servers before 6.2 are refused. ctx is for New alone.
func New(ctx context.Context, dial redis.UniversalOptions, opts Options) (*Log, error) {
	opts = opts.withDefaults()
	if err := checkPrefix(opts.Prefix); err != nil {
		return nil, err
	}
	quiet.Do(func() { redis.SetLogger(chatter{opts.Logger}) })
	l := &Log{server: newServer(dial, opts), poster: newPoster()}
	l.holders.init()
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the live log in Redis at %s: %s%w", strings.Join(dial.Addrs, ", "), hint(err), err), l.closeClients())
	}
	l.start()
	return l, nil
}

// open looks at the server, and makes the counters that are not there.
func (l *Log) open(ctx context.Context) error {
	version, err := l.version(ctx)
	if err != nil {
		return err
	}
	l.scripts = loadScripts(version.atLeast(7, 0))
	calls := make([]call, Groups)
	for g := range calls {
		calls[g] = l.probeCall(g, 0)
	}
	replies, err := l.runAll(ctx, l.commands, calls)
	if err != nil {
		return err
	}
	for g, r := range replies {
		if r.err != nil {
			return r.err
		}
		l.first[g] = fields(r.list)[0]
	}
	return nil
}

func (l *Log) start() {
	n := 1
	if l.clustered() {
		n = Groups // so that a server that is away does not hold up the others
	}
	for range n {
		l.appenders = append(l.appenders, newAppender(l))
	}
	for g := range Groups {
		l.lanes[g] = newLane(l, g)
	}
	l.prober = newProber(l)
	for _, a := range l.appenders {
		l.running.Go(a.run)
	}
	for _, ln := range l.lanes {
		l.running.Go(ln.run)
	}
	l.running.Go(l.prober.run)
	l.running.Go(l.prober.wakeAll)
	l.running.Go(l.postAll)
}

// Close ends all tails, and drops the connections. What waits for an answer, and every later call, gets
// [thread.ErrUnavailable]; what was asked may have been done. Leases stay as they are. What waits to be told to other nodes
// is told before, unless Redis takes too long over it.
func (l *Log) Close() error {
	var err error
	l.once.Do(func() {
		l.flush()
		close(l.stop)
		for _, ln := range l.lanes {
			ln.endTails(errClosed)
		}
		err = l.closeClients()
		l.running.Wait()
	})
	return err
}
