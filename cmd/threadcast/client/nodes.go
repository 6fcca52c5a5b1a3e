package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// ErrUnreachable is what an error wraps when there was no answer at all.
var ErrUnreachable = errors.New("no answer")

// Options say which nodes there are, and how to ask them.
type Options struct {
	// URLs are the nodes', such as "http://127.0.0.1:8080". There is at least one, and all of them pass [CheckURL].
	URLs []string
	// Token, if it is not empty, goes along as "Authorization: Bearer".
	Token string
	// Patience is for how long a request is repeated that no node answers, or that a node cannot answer now.
	Patience time.Duration
	// Timeout bounds one try of a request. 0 is Patience.
	Timeout time.Duration
	// Hasty gives up at once what cannot be reached, as long as nobody has ever answered: the address may be wrong.
	Hasty bool
}

// Nodes are one or more nodes of an installation, and the connections to them. They are safe for concurrent use.
type Nodes struct {
	opts     Options
	urls     []string
	http     *http.Client
	answered atomic.Bool
}

// New returns the nodes. It opens no connection; [Nodes.Close] ends those that requests open.
func New(opts Options) *Nodes {
	if opts.Timeout == 0 {
		opts.Timeout = opts.Patience
	}
	n := &Nodes{opts: opts}
	for _, u := range opts.URLs {
		n.urls = append(n.urls, strings.TrimRight(u, "/"))
	}
	n.http = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 32}}
	return n
}

// CheckURL tells, with a sentence for people, if u is not the URL of a node.
func CheckURL(u string) error {
	parsed, err := url.Parse(u)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("%q is not the URL of a node, such as http://127.0.0.1:8080", u)
	}
	return nil
}

// URL returns the URL of one of the nodes, without a slash at the end: the ith, counted round and round.
func (n *Nodes) URL(i int) string { return n.urls[i%len(n.urls)] }

// Any returns the URL of some node.
func (n *Nodes) Any() string { return n.URL(rand.IntN(len(n.urls))) }

// Close ends the connections that are not in use.
func (n *Nodes) Close() { n.http.CloseIdleConnections() }

// Request is one of the HTTP API.
type Request struct {
	Method, Path string
	Body         any // is sent as JSON, if it is not nil
}

// Call asks one node after the other until one answers, and decodes the answer into value unless that is nil. It may ask
// more than once, so the request has to be one that may be repeated. An answer that is none of those hoped for is
// a [*Refusal]; without any answer the error wraps [ErrUnreachable].
func (n *Nodes) Call(ctx context.Context, r Request, value any) error {
	deadline := time.Now().Add(n.opts.Patience)
	for try := 0; ; try++ {
		err := n.once(ctx, r, value)
		if err == nil || !n.again(err) || time.Now().After(deadline) {
			return err
		}
		if paused := Backoff(ctx, try); paused != nil {
			return paused
		}
	}
}

// again tells whether it is worth asking once more.
func (n *Nodes) again(err error) bool {
	var refused *Refusal
	if errors.As(err, &refused) {
		return refused.Again()
	}
	return n.answered.Load() || !n.opts.Hasty
}

func (n *Nodes) once(ctx context.Context, r Request, value any) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.Timeout)
	defer cancel()
	var reader io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(data)
	}
	target := n.Any() + r.Path
	req, err := http.NewRequestWithContext(ctx, r.Method, target, reader)
	if err != nil {
		return err
	}
	req.Header = n.header()
	resp, err := n.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	n.answered.Store(true)
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it has been read
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, r.Method, target, err)
	case resp.StatusCode >= 300:
		return newRefusal(resp.StatusCode, data)
	case value == nil:
		return nil
	}
	return json.Unmarshal(data, value)
}

// header is what goes along with every request.
func (n *Nodes) header() http.Header {
	h := http.Header{}
	if n.opts.Token != "" {
		h.Set("Authorization", "Bearer "+n.opts.Token)
	}
	return h
}

// ThreadPath is the path of a thread in the HTTP API.
func ThreadPath(id string) string { return "/api/threads/" + url.PathEscape(id) }

// Backoff waits longer from one try to the next, up to some seconds and with chance in it. Its error is the cause of ctx.
func Backoff(ctx context.Context, try int) error {
	longest := min(50*time.Millisecond<<min(try, 6), 2*time.Second)
	return Pause(ctx, longest/2+rand.N(longest))
}

// Pause waits for d, or returns the cause of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
