package web

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// lineBuffer is the size of the buffers that the library has of a connection: it reads small frames, and writes control
// frames only, each of which fits.
const lineBuffer = 512

// controlTimeout bounds the library's writes. It waits no longer itself.
const controlTimeout = 5 * time.Second

// line is the connection of a socket. The library reads from it and writes control frames, each in one call; whole frames of
// the session go beside them. Whoever writes has the line for that long, so that frames never mix.
type line struct {
	net.Conn
	early  []byte        // what came with the handshake, to be read first
	turn   chan struct{} // holds one while somebody writes
	gone   chan struct{} // closed by Close
	once   sync.Once
	closed bool // a close frame was written: nothing follows it; belongs to whoever has the turn
}

// take waits for the turn to write, and tells whether anything may be written.
func (l *line) take() bool {
	select {
	case l.turn <- struct{}{}:
	case <-l.gone:
		return false
	}
	if l.closed {
		<-l.turn
		return false
	}
	return true
}

// send writes whole frames at once, which the client has to take within patience.
func (l *line) send(frames []byte, patience time.Duration) error {
	if !l.take() {
		return net.ErrClosed
	}
	defer func() { <-l.turn }()
	_ = l.SetWriteDeadline(time.Now().Add(patience)) // fails with the connection, as the write then does
	_, err := l.Conn.Write(frames)
	return err
}

// Write is for the library, which writes one control frame a call.
func (l *line) Write(p []byte) (int, error) {
	if !l.take() {
		return 0, net.ErrClosed
	}
	defer func() { <-l.turn }()
	if len(p) > 0 && p[0]&0xf == opClose {
		l.closed = true
	}
	_ = l.SetWriteDeadline(time.Now().Add(controlTimeout))
	return l.Conn.Write(p)
}

// Read is for the library.
func (l *line) Read(p []byte) (int, error) {
	if len(l.early) > 0 {
		n := copy(p, l.early)
		l.early = l.early[n:]
		return n, nil
	}
	return l.Conn.Read(p)
}

// Close ends the connection, whoever is writing.
func (l *line) Close() error {
	l.once.Do(func() { close(l.gone) })
	return l.Conn.Close()
}

// lineWriter is the ResponseWriter of a handshake, by way of which the library gets its connection.
type lineWriter struct {
	http.ResponseWriter
	line *line
}

// Hijack takes the connection over, with small buffers in place of those of net/http.
func (w *lineWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.line = &line{Conn: conn, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	early, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err == nil {
		w.line.early = append(w.line.early, early...)
		err = buffered.Writer.Flush() // the answer to the handshake
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return w.line, bufio.NewReadWriter(bufio.NewReaderSize(w.line, lineBuffer), bufio.NewWriterSize(w.line, lineBuffer)), nil
}
