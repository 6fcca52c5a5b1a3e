package webtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// CloseAbnormal is what [Client.Closed] returns for a connection that ended without a close frame (RFC 6455, 7.4.1).
const CloseAbnormal = 1006

// Options says how to dial. The zero value of a field takes its default.
type Options struct {
	// Path is what follows the host. Default "/socket/websocket?vsn=2.0.0".
	Path string
	// Dial opens the connection, such as [Pipe.Dial]. Default TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Header and Subprotocols go into the handshake.
	Header       http.Header
	Subprotocols []string
	// ReadBuffer is the size of the kernel's receive buffer in bytes, so that a client that stops reading is noticed
	// soon. Default the system's.
	ReadBuffer int
	// Mute makes the client leave the server's pings unanswered.
	Mute bool
	// OnFrame is called with each text frame as it came, in order, before it is handed on. It must not block.
	OnFrame func(text []byte)
}

// Client is one socket. Its methods may be called from any goroutine.
type Client struct {
	conn     *websocket.Conn
	wire     *gate
	response *http.Response
	onFrame  func([]byte)
	ended    chan struct{} // closed when the read loop has ended
	err      error         // why; set before ended is closed

	mu      sync.Mutex
	ref     int
	waiting map[string]chan Reply // by ref
	leaving map[string]member     // by the ref of the leave
	joined  map[member]*Channel
	strays  int
}

// member names a membership.
type member struct{ topic, joinRef string }

// Dial opens a socket to the server at url, such as "http://127.0.0.1:8080". A refused handshake is a [*Refused] that
// carries the HTTP status and what the server answered.
func Dial(ctx context.Context, url string, opts *Options) (*Client, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Path == "" {
		o.Path = "/socket/websocket?vsn=2.0.0"
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	c := &Client{
		onFrame: o.OnFrame, ended: make(chan struct{}), waiting: map[string]chan Reply{}, leaving: map[string]member{}, joined: map[member]*Channel{},
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := o.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok && o.ReadBuffer > 0 {
			_ = tcp.SetReadBuffer(o.ReadBuffer)
		}
		c.wire = newGate(conn)
		return c.wire, nil
	}}
	defer transport.CloseIdleConnections()
	dial := &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: o.Header, Subprotocols: o.Subprotocols,
	}
	if o.Mute {
		dial.OnPingReceived = func(context.Context, []byte) bool { return false }
	}
	conn, response, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+o.Path, dial)
	if err != nil {
		return nil, refusedHandshake(response, err)
	}
	conn.SetReadLimit(-1)
	c.conn, c.response = conn, response
	go c.read()
	return c, nil
}

// Response returns the server's answer to the handshake.
func (c *Client) Response() *http.Response { return c.response }

// frame is a frame of the server: [join_ref, ref, topic, event, payload].
type frame struct {
	joinRef, ref *string
	topic, event string
	payload      json.RawMessage
}

func parseFrame(text []byte) (f frame, err error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || len(parts) != 5 {
		return f, fmt.Errorf("the server sent %.200q, which is not a frame", text)
	}
	f.payload = parts[4]
	return f, errors.Join(json.Unmarshal(parts[0], &f.joinRef), json.Unmarshal(parts[1], &f.ref),
		json.Unmarshal(parts[2], &f.topic), json.Unmarshal(parts[3], &f.event))
}

func (c *Client) read() {
	var err error
	for err == nil {
		var text []byte
		if _, text, err = c.conn.Read(context.Background()); err == nil {
			err = c.take(text)
		}
	}
	_ = c.conn.CloseNow()
	c.err = err
	close(c.ended)
}

// take hands a frame to whom it is for.
func (c *Client) take(text []byte) error {
	if c.onFrame != nil {
		c.onFrame(text)
	}
	f, err := parseFrame(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.event == "phx_reply" && f.ref != nil {
		var r Reply
		if err := json.Unmarshal(f.payload, &r); err != nil {
			return fmt.Errorf("the server sent a reply %.200q: %w", text, err)
		}
		if waiting := c.waiting[*f.ref]; waiting != nil {
			delete(c.waiting, *f.ref)
			delete(c.joined, c.leaving[*f.ref]) // here, so that what follows counts as stray
			delete(c.leaving, *f.ref)
			waiting <- r
			return nil
		}
		c.strays++
		return nil
	}
	for m, ch := range c.joined {
		if m.topic == f.topic && (f.joinRef == nil || *f.joinRef == m.joinRef) {
			ch.push(Push{Event: f.event, Payload: f.payload})
			return nil
		}
	}
	c.strays++
	return nil
}

// Strays returns how many frames came that no membership and no request of this client waited for.
func (c *Client) Strays() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strays
}

// nextRef reserves a ref, as text, and the place where its reply arrives.
func (c *Client) nextRef() (string, chan Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ref++
	ref, reply := strconv.Itoa(c.ref), make(chan Reply, 1)
	c.waiting[ref] = reply
	return ref, reply
}

// Message is a request as it goes over the wire. An empty JoinRef is sent as null.
type Message struct {
	JoinRef, Topic, Event string
	Payload               any // JSON text as string or bytes, a value to be marshalled, or nil for {}
}

// Request sends a message under a fresh ref and waits for its reply, whatever its status.
func (c *Client) Request(ctx context.Context, m Message) (Reply, error) {
	ref, reply := c.nextRef()
	if m.Event == "phx_leave" {
		c.mu.Lock()
		c.leaving[ref] = member{m.Topic, m.JoinRef}
		c.mu.Unlock()
	}
	if err := c.send(ref, m); err != nil {
		return Reply{}, err
	}
	return c.await(ctx, reply)
}

// Heartbeat sends the heartbeat of Phoenix and waits for its reply.
func (c *Client) Heartbeat(ctx context.Context) error {
	r, err := c.Request(ctx, Message{Topic: "phoenix", Event: "heartbeat"})
	if err != nil {
		return err
	}
	return r.refusal()
}

func (c *Client) send(ref string, m Message) error {
	payload, err := encode(m.Payload)
	if err != nil {
		return err
	}
	var joinRef *string
	if m.JoinRef != "" {
		joinRef = &m.JoinRef
	}
	head, err := json.Marshal([]any{joinRef, ref, m.Topic, m.Event})
	if err != nil {
		return err
	}
	return c.SendText(append(append(append(head[:len(head)-1], ','), payload...), ']'))
}

// SendText sends a text message as it is.
func (c *Client) SendText(text []byte) error {
	return c.conn.Write(context.Background(), websocket.MessageText, text)
}

// SendBinary sends a binary message as it is.
func (c *Client) SendBinary(data []byte) error {
	return c.conn.Write(context.Background(), websocket.MessageBinary, data)
}

func (c *Client) await(ctx context.Context, reply chan Reply) (Reply, error) {
	select {
	case r := <-reply:
		return r, nil
	case <-c.ended:
		return Reply{}, fmt.Errorf("no reply: the socket ended: %w", c.err)
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("no reply: %w", context.Cause(ctx))
	}
}

// Close says goodbye with code 1001, as a browser does that leaves the page. It may be called more than once.
func (c *Client) Close() {
	c.ResumeReading()
	_ = c.conn.Close(websocket.StatusGoingAway, "")
	<-c.ended
}

// Drop cuts the connection without a word: on TCP the server gets a reset.
func (c *Client) Drop() {
	c.wire.cut()
	<-c.ended
}

// StopReading makes the client take nothing more off the connection; it does not answer pings either. What the
// server writes then fills the buffers in between, or blocks at once on a [Pipe].
func (c *Client) StopReading() { c.wire.shut() }

// ResumeReading goes on after [Client.StopReading].
func (c *Client) ResumeReading() { c.wire.open() }

// Closed waits for the end of the socket and returns its close code, or [CloseAbnormal] if there was none.
func (c *Client) Closed(ctx context.Context) (int, error) {
	select {
	case <-c.ended:
	case <-ctx.Done():
		return 0, fmt.Errorf("the socket is still open: %w", context.Cause(ctx))
	}
	if code := websocket.CloseStatus(c.err); code > 0 {
		return int(code), nil
	}
	return CloseAbnormal, nil
}
