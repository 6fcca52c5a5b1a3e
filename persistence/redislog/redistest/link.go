package redistest

import (
	"net"
	"sync"
	"testing"
)

// Link is a TCP proxy in front of a server, that can fail as a network does.
type Link struct {
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	target string
	thawed chan struct{} // closed while bytes pass
	conns  map[net.Conn]struct{}
	closed bool
}

// NewLink starts a proxy to an address, which ends when the test does.
func NewLink(tb testing.TB, target string) *Link {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l := &Link{listener: listener, target: target, thawed: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	close(l.thawed)
	l.done.Go(l.accept)
	tb.Cleanup(l.close)
	return l
}

// Addr is where the proxy listens, host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Freeze makes the link a black hole: connections stay, new ones are accepted, and nothing passes in either direction.
func (l *Link) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.thawed:
		l.thawed = make(chan struct{})
	default:
	}
}

// Thaw undoes Freeze. What was sent meanwhile passes.
func (l *Link) Thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.thawed:
	default:
		close(l.thawed)
	}
}

// Cut closes all connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
}

// Aim has new connections go to another address.
func (l *Link) Aim(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

func (l *Link) close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Cut()
	l.Thaw()
	l.done.Wait()
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		target := l.target
		l.mu.Unlock()
		far, err := net.Dial("tcp", target)
		if err != nil {
			near.Close()
			continue
		}
		if !l.keep(near, far) {
			return
		}
		l.done.Go(func() { l.pass(near, far) })
		l.done.Go(func() { l.pass(far, near) })
	}
}

// keep notes the connections of a link that is open.
func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.closed {
			c.Close()
		}
		l.conns[c] = struct{}{}
	}
	return !l.closed
}

// pass copies from one connection to the other while the link is not frozen.
func (l *Link) pass(to, from net.Conn) {
	defer func() {
		to.Close()
		from.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, from)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		thawed := l.thawed
		l.mu.Unlock()
		<-thawed
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
