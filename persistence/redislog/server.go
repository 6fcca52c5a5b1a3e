package redislog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
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

// How many connections a node has at most to each server: for what viewers ask; for what runs need, so that they lose nothing
// while a thousand viewers come at once; and one for each lane. On a machine that is busy a call takes many times as long as
// Redis does, so that few connections carry few calls, and others wait in vain.
const (
	commandConns = 16
	runConns     = 8
)

// server is Redis, as a node sees it: its connections, and what is called over them.
type server struct {
	opts    Options
	keys    keys
	node    string // another for each Log
	scripts scripts

	dial     redis.UniversalOptions
	commands redis.UniversalClient
	runs     redis.UniversalClient                 // appends, leases and probes
	reads    atomic.Pointer[redis.UniversalClient] // dialled anew by the prober

	stop chan struct{} // closed by Close
}

func newServer(dial redis.UniversalOptions, opts Options) *server {
	s := &server{opts: opts, keys: keys{prefix: opts.Prefix}, node: rand.Text(), dial: dial, stop: make(chan struct{})}
	s.commands, s.runs = s.client(commandConns), s.client(runConns)
	reads := s.client(Groups + 2)
	s.reads.Store(&reads)
	return s
}

// client makes a client with connections of its own.
func (s *server) client(conns int) redis.UniversalClient {
	o := s.dial
	o.ClientName = cmp.Or(o.ClientName, "threadcast")
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

func (s *server) clustered() bool {
	_, ok := s.commands.(*redis.ClusterClient)
	return ok
}

func (s *server) closeClients() error {
	return errors.Join(s.commands.Close(), s.runs.Close(), ignoreClosed((*s.reads.Load()).Close()))
}

// ignoreClosed is nil for a client that was closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

func (s *server) closing() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// enter refuses a call whose context is done, or that comes after Close, and bounds the others.
func (s *server) enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if s.closing() {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errDeadline)
	return ctx, cancel, nil
}

// pause waits, and tells whether the log is still open.
func (s *server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}
