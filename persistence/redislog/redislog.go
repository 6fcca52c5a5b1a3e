package redislog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// How long calls to Redis may take. Together they find a dead link within 5 seconds.
const (
	callTimeout = 4 * time.Second
	dialTimeout = 2 * time.Second
	ioTimeout   = 3 * time.Second
)

// How many connections a node has at most to each server: for calls, for appends, and one for each lane.
const (
	commandConns = 8
	appendConns  = 4
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
	opts    Options
	keys    keys
	node    string // another for each Log
	scripts scripts
	first   [Groups]string // of each group's counters, as of New

	dial     *redis.UniversalOptions
	commands redis.UniversalClient
	appends  redis.UniversalClient
	reads    atomic.Pointer[redis.UniversalClient] // dialled anew by the prober

	appenders []*appender
	lanes     [Groups]*lane
	prober    *prober
	holders   holders

	once    sync.Once
	stop    chan struct{} // closed by Close
	running sync.WaitGroup
}

// New connects to Redis and returns the log that is there. A single server, Sentinel (MasterName is set) and Cluster
// (several Addrs, or IsClusterMode) are told apart as [redis.NewUniversalClient] does. Timeouts, pool sizes, retries and
// the protocol's version are the log's own; the rest of dial is used as it is. New starts goroutines, which [Log.Close]
// ends. Servers before 6.2 are refused. ctx is for New alone.
func New(ctx context.Context, dial redis.UniversalOptions, opts Options) (*Log, error) {
	l := &Log{opts: opts.withDefaults(), node: rand.Text(), stop: make(chan struct{})}
	l.keys = keys{prefix: l.opts.Prefix}
	if err := checkPrefix(l.opts.Prefix); err != nil {
		return nil, err
	}
	quiet.Do(func() { redis.SetLogger(chatter{l.opts.Logger}) })
	l.dial = &dial
	l.commands, l.appends = l.client(commandConns), l.client(appendConns)
	reads := l.client(Groups + 2)
	l.reads.Store(&reads)
	l.holders.init()
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the live log in Redis: %w", err), l.closeClients())
	}
	l.start()
	return l, nil
}

// client makes a client with connections of its own.
func (l *Log) client(conns int) redis.UniversalClient {
	o := *l.dial
	o.Protocol = 2
	o.MaxRetries = -1 // callers know better what may be repeated
	o.DialTimeout, o.DialerRetries = dialTimeout, 1
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = ioTimeout, ioTimeout, ioTimeout
	o.ContextTimeoutEnabled = true
	o.PoolSize, o.MaxActiveConns, o.PipelinePoolSize = conns, conns, -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	return redis.NewUniversalClient(&o)
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
}

func (l *Log) clustered() bool {
	_, ok := l.commands.(*redis.ClusterClient)
	return ok
}

// Close ends all tails, and drops the connections. What waits for an answer, and every later call, gets
// [thread.ErrUnavailable]; what was asked may have been done. Leases stay as they are.
func (l *Log) Close() error {
	var err error
	l.once.Do(func() {
		close(l.stop)
		for _, ln := range l.lanes {
			ln.endTails(errClosed)
		}
		err = l.closeClients()
		l.running.Wait()
	})
	return err
}

func (l *Log) closeClients() error {
	return errors.Join(l.commands.Close(), l.appends.Close(), ignoreClosed((*l.reads.Load()).Close()))
}

// ignoreClosed is nil for a client that was closed already.
func ignoreClosed(err error) error {
	if err != nil && strings.Contains(err.Error(), "closed") {
		return nil
	}
	return err
}

func (l *Log) closing() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// enter refuses a call whose context is done, or that comes after Close, and bounds the others.
func (l *Log) enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if l.closing() {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errDeadline)
	return ctx, cancel, nil
}

// pause waits, and tells whether the log is still open.
func (l *Log) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.stop:
		return false
	}
}
