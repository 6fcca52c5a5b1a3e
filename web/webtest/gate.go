package webtest

import (
	"net"
	"sync"
)

// gate is a connection whose reads can be held back.
type gate struct {
	net.Conn
	mu     sync.Mutex
	pass   chan struct{} // closed while reads may return
	shutIn bool
	closed bool
}

func newGate(conn net.Conn) *gate {
	pass := make(chan struct{})
	close(pass)
	return &gate{Conn: conn, pass: pass}
}

// Read holds back before the read, and again after one that was under way when the gate was shut.
func (g *gate) Read(p []byte) (int, error) {
	g.wait()
	n, err := g.Conn.Read(p)
	g.wait()
	return n, err
}

func (g *gate) wait() {
	g.mu.Lock()
	pass := g.pass
	g.mu.Unlock()
	<-pass
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shutIn && !g.closed {
		g.shutIn, g.pass = true, make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shutIn {
		g.shutIn = false
		close(g.pass)
	}
}

// Close closes the connection and lets go whoever is held back.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.open()
	return g.Conn.Close()
}

// cut ends the connection without the goodbye of TCP.
func (g *gate) cut() {
	if tcp, ok := g.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = g.Close()
}
