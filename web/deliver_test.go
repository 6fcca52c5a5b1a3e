package web_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// watched lets viewers watch a run of 300 words, most of which are a frame of their own, and returns what was allocated by
// the whole server meanwhile, for each event.
func watched(t *testing.T, s *site, id string, viewers int) (allocs, size float64) {
	readers := make([]*rawReader, viewers)
	for i := range readers {
		readers[i] = s.raw(id)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.start(id, "r1")
	var group sync.WaitGroup
	for _, r := range readers {
		group.Go(r.untilFinished)
	}
	group.Wait()
	runtime.ReadMemStats(&after)
	for _, r := range readers {
		_ = r.conn.Close()
		if r.frames < 240 {
			t.Errorf("a viewer got %d frames: they say nothing of single ones", r.frames)
		}
	}
	return float64(after.Mallocs-before.Mallocs) / 300, float64(after.TotalAlloc-before.TotalAlloc) / 300
}

func TestAFrameToAFurtherViewerAllocatesLittle(t *testing.T) {
	s := open(t, plan{agent: agenttest.New(said(300, time.Millisecond))})
	watched(t, s, "warm", 1)
	one, oneSize := watched(t, s, "one", 1)
	many, manySize := watched(t, s, "many", 11)
	allocs, size := (many-one)/10, (manySize-oneSize)/10
	t.Logf("measured: a frame to a further viewer: %.1f allocations, %.0f bytes", allocs, size)
	if allocs > 12 {
		t.Errorf("%.1f allocations", allocs)
	}
}

// rawReader is a client that takes frames and allocates nothing.
type rawReader struct {
	conn   net.Conn
	in     *bufio.Reader
	buf    []byte
	frames int64
	ping   bool // the last frame is one, and has been answered
}

// raw watches a thread.
func (s *site) raw(id string) *rawReader {
	s.Helper()
	r := s.rawAt("/socket/websocket?vsn=2.0.0", fmt.Sprintf(`["1","1","thread:%s","phx_join",{}]`, id))
	for !bytes.Contains(r.next(), []byte("caught_up")) {
		continue
	}
	return r
}

// rawAt opens a socket and joins.
func (s *site) rawAt(path, join string) *rawReader {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	r := &rawReader{conn: conn, in: bufio.NewReader(conn), buf: make([]byte, 1<<20)}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path)
	for line := "x"; line != "\r\n"; {
		if line, err = r.in.ReadString('\n'); err != nil {
			s.Fatal(err)
		}
	}
	conn.Write(append([]byte{0x81, 0x80 | byte(len(join)), 0, 0, 0, 0}, join...))
	return r
}

// next returns the next frame, which is good until the one after it, and answers pings.
func (r *rawReader) next() []byte {
	head, _ := r.in.Peek(2)
	if len(head) < 2 {
		return nil
	}
	r.ping = head[0] == 0x89
	n, skip := int(head[1]), 2
	switch n {
	case 126:
		head, _ = r.in.Peek(4)
		n, skip = int(head[2])<<8|int(head[3]), 4
	case 127:
		head, _ = r.in.Peek(10)
		n, skip = int(binary.BigEndian.Uint64(head[2:])), 10
	}
	_, _ = r.in.Discard(skip)
	_, _ = io.ReadFull(r.in, r.buf[:n])
	if r.ping {
		_, _ = r.conn.Write(append([]byte{0x8a, 0x80 | byte(n), 0, 0, 0, 0}, r.buf[:n]...))
		return r.buf[:n]
	}
	r.frames++
	return r.buf[:n]
}

func (r *rawReader) untilFinished() {
	for {
		if f := r.next(); f == nil || bytes.Contains(f, []byte("RUN_FINISHED")) {
			return
		}
	}
}
