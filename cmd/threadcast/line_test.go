package main_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// line is what lies between clients and a server: a TCP proxy with the faults of a network, which can tell WebSockets from
// other connections.
type line struct {
	listener net.Listener
	target   string
	done     sync.WaitGroup
	down     atomic.Bool

	mu     sync.Mutex
	wires  map[*wire]struct{}
	closed bool
}

// wire is a connection on a line.
type wire struct {
	near, far *net.TCPConn // of the client, of the server
	once      sync.Once
	socket    atomic.Bool
	held      [2]atomic.Bool // by way: what comes is swallowed
	swallowed atomic.Int64   // bytes
}

// The ways of a wire.
const (
	upward   = iota // from the client to the server
	downward        // from the server to the client
)

// newLine starts a line to an address, which ends when the test does.
func newLine(t testing.TB, target string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, target: target, wires: map[*wire]struct{}{}}
	l.done.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *line) url() string { return "http://" + l.listener.Addr().String() }

// cut ends all WebSockets in the middle of whatever they carry; with a reset, or as if the other side had closed. It returns how
// many there were.
func (l *line) cut(reset bool) (n int) {
	l.each(func(w *wire) {
		w.end(reset)
		n++
	})
	return n
}

// hold swallows what the WebSockets that are there carry in one way. Nothing comes of it any more: they are to be cut.
func (l *line) hold(way int) { l.each(func(w *wire) { w.held[way].Store(true) }) }

// swallowed is how many bytes are lost in WebSockets that are there.
func (l *line) swallowed() (n int64) {
	l.each(func(w *wire) { n += w.swallowed.Load() })
	return n
}

// each does something to every WebSocket.
func (l *line) each(do func(*wire)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.wires {
		if w.socket.Load() {
			do(w)
		}
	}
}

// breakDown ends all connections and lets none through until mend is called.
func (l *line) breakDown() {
	l.down.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.wires {
		w.end(true)
	}
}

func (l *line) mend() { l.down.Store(false) }

func (l *line) close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for w := range l.wires {
		w.end(false)
	}
	l.mu.Unlock()
	l.done.Wait()
}

func (l *line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		var far net.Conn
		if !l.down.Load() {
			far, err = net.Dial("tcp", l.target)
		}
		if far == nil || err != nil {
			_ = near.(*net.TCPConn).SetLinger(0)
			near.Close()
			continue
		}
		l.begin(&wire{near: near.(*net.TCPConn), far: far.(*net.TCPConn)})
	}
}

// begin lets a connection through, unless the line is closed.
func (l *line) begin(w *wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.end(false)
		return
	}
	l.wires[w] = struct{}{}
	l.done.Go(func() {
		var ways sync.WaitGroup
		ways.Go(func() { w.pass(w.far, w.near, upward) })
		ways.Go(func() { w.pass(w.near, w.far, downward) })
		ways.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.wires, w)
	})
}

// end closes the connection on both sides.
func (w *wire) end(reset bool) {
	w.once.Do(func() {
		if reset {
			_ = w.near.SetLinger(0)
			_ = w.far.SetLinger(0)
		}
		w.near.Close()
		w.far.Close()
	})
}

// pass copies what comes one way. The first that a client says tells whether the connection is a WebSocket: a client with such
// makes a connection of its own for it.
func (w *wire) pass(to, from *net.TCPConn, way int) {
	defer w.end(false)
	buf := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := from.Read(buf)
		if first && way == upward && bytes.Contains(buf[:n], []byte("/websocket?")) {
			w.socket.Store(true)
		}
		if w.held[way].Load() {
			w.swallowed.Add(int64(n))
		} else if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		if err != nil {
			return
		}
	}
}
