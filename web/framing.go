package web

import (
	"encoding/binary"
	"sync"

	"github.com/threadcast/threadcast/web/wire"
)

// The first bytes of frames that the server writes by itself (RFC 6455, section 5.2): whole, and without a mask.
const (
	textFrame = 0x80 | 0x1
	pingFrame = 0x80 | 0x9
	opClose   = 0x8
)

// headRoom is how long the head of a frame is at most.
const headRoom = 10

// frames are whole WebSocket frames on their way to one socket, to be written at once.
type frames struct {
	bytes []byte
	open  int // where the head of the frame goes that is being written
}

var spare = sync.Pool{New: func() any { return new(frames) }}

// newFrames returns an empty one. Whoever hands it to [session.write] has it no more.
func newFrames() *frames { return spare.Get().(*frames) }

// maxSpare is how large a buffer may be that is kept for the next use.
const maxSpare = 64 << 10

func (f *frames) release() {
	if cap(f.bytes) <= maxSpare {
		f.bytes = f.bytes[:0]
		spare.Put(f)
	}
}

// begin leaves room for the head of a text frame. What is appended to bytes until seal is its payload.
func (f *frames) begin() {
	f.open = len(f.bytes)
	f.bytes = append(f.bytes, make([]byte, headRoom)...)
}

// seal writes the head of the frame that begin began.
func (f *frames) seal() {
	payload := f.bytes[f.open+headRoom:]
	head := appendHead(f.bytes[f.open:f.open], textFrame, len(payload))
	n := copy(f.bytes[f.open+len(head):], payload)
	f.bytes = f.bytes[:f.open+len(head)+n]
}

// appendHead appends the head of a frame of the server.
func appendHead(dst []byte, first byte, size int) []byte {
	switch {
	case size < 126:
		return append(dst, first, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, first, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, first, 127), uint64(size))
}

// push adds a push of the server.
func (f *frames) push(ch *channel, event string, payload []byte) *frames {
	f.begin()
	f.bytes = wire.AppendPush(f.bytes, ch.joinRef, ch.topic, event, payload)
	f.seal()
	return f
}

// reply adds the answer to a request.
func (f *frames) reply(to wire.Frame, status string, response []byte) *frames {
	f.begin()
	f.bytes = wire.AppendReply(f.bytes, to, status, response)
	f.seal()
	return f
}

// ping adds a ping. Its payload, of up to 125 bytes, comes back with the pong.
func (f *frames) ping(payload []byte) *frames {
	f.bytes = append(appendHead(f.bytes, pingFrame, len(payload)), payload...)
	return f
}
