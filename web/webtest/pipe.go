package webtest

import (
	"context"
	"net"
	"sync"
	"time"
)

// Pipe is a listener in memory, for servers in a bubble of testing/synctest. A connection is a [net.Pipe]: a write of
// the server waits until the client reads. A write of the client does not wait: if both could, a reply and the
// answer to a ping would now and then wait for each other, which the buffers of TCP prevent.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipe returns a listener that [http.Server] can serve.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to whoever accepts. Network and address are ignored.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return newEager(here), nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next connection, or [net.ErrClosed].
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections live on.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns a name.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// eager is a connection whose writes do not wait. Its goroutine ends with it.
type eager struct {
	net.Conn
	mu      sync.Mutex
	pending []byte
	err     error         // of the connection, or of Close
	more    chan struct{} // holds one value when there is something to do
}

func newEager(conn net.Conn) *eager {
	e := &eager{Conn: conn, more: make(chan struct{}, 1)}
	go e.flush()
	return e
}

func (e *eager) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return 0, e.err
	}
	e.pending = append(e.pending, p...)
	e.wake()
	return len(p), nil
}

func (e *eager) wake() {
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// flush writes what is pending, and closes the connection when that is done and Close was called.
func (e *eager) flush() {
	defer e.Conn.Close()
	for range e.more {
		e.mu.Lock()
		data, last := e.pending, e.err != nil
		e.pending = nil
		e.mu.Unlock()
		var err error
		if len(data) > 0 { // a pipe waits for a reader of nothing, too
			_, err = e.Conn.Write(data)
		}
		if last {
			return
		}
		if err != nil {
			e.mu.Lock()
			e.err = err
			e.mu.Unlock()
			return
		}
	}
}

// lastWrite is how long a connection that was closed waits for its peer to take what was written before: one that only writes
// itself never does.
const lastWrite = time.Second

// Close ends reads at once; what was written before is still delivered, to a peer that reads.
func (e *eager) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = net.ErrClosed
		e.wake()
		if err := e.Conn.SetWriteDeadline(time.Now().Add(lastWrite)); err != nil {
			return err
		}
	}
	return e.Conn.SetReadDeadline(time.Unix(1, 0))
}
