package redislog_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/thread"
)

// stuck is a connection on which nobody gets to read a stream until the gate is open.
type stuck struct {
	net.Conn
	gate, waiting chan struct{}
}

func (c stuck) Write(data []byte) (int, error) {
	if bytes.Contains(bytes.ToUpper(data), []byte("XRANGE\r\n")) {
		c.waiting <- struct{}{}
		<-c.gate
	}
	return c.Conn.Write(data)
}

// However many viewers read at once, and however slowly: what runs need does not wait for them.
func TestRunsDoNotWaitForViewers(t *testing.T) {
	addr, prefix := sharedServer(t).Addr(), newPrefix()
	gate, waiting := make(chan struct{}), make(chan struct{}, 1024)
	home := openWith(t, redis.UniversalOptions{
		Addrs: []string{addr},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return stuck{conn, gate, waiting}, err
		},
	}, redislog.Options{Prefix: prefix})
	away := open(t, addr, prefix)
	run := newWriter(t, home, "t", 1)
	run.write(1)
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() { _, _ = home.Read(t.Context(), "t", thread.Cursor{}, 10) }) // it may take too long
	}
	for range 16 { // all connections that they have
		<-waiting
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := home.Renew(ctx, run.current(), time.Hour)
	_, stopErr := home.AskStop(ctx, "t", thread.StopRequest{By: "ann"})
	other, acquireErr := home.Acquire(ctx, thread.Claim{Thread: "u", RunID: "r", Owner: "node"}, time.Hour)
	appendErr := home.Append(ctx, run.current(), []thread.Entry{event(1, 2)})
	if err := errors.Join(err, stopErr, acquireErr, appendErr, home.Release(ctx, other)); err != nil {
		t.Error(err)
	}
	close(gate)
	crowd.Wait()
	if entries, err := away.Read(t.Context(), "t", thread.Cursor{}, 10); err != nil || len(entries) != 2 {
		t.Errorf("the run has %d entries, %v", len(entries), err)
	}
}
