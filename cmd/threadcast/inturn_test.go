package main_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// inTurn stands before several nodes and hands requests and sockets out to them in turn. A node that is gone is passed
// over, and so is one that says that it is about to go, as by the nginx of docs/nginx.md.
type inTurn struct {
	nodes func() []*node
	turn  atomic.Int64
	to    *http.Transport
}

// beforeNodes starts one, and returns its address.
func beforeNodes(t testing.TB, nodes func() []*node) string {
	t.Helper()
	r := &inTurn{nodes: nodes, to: &http.Transport{MaxIdleConnsPerHost: 32}}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Transport: r,
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.Host = "http", p.In.Host },
		ErrorLog:  log.New(io.Discard, "", 0),
	})
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		r.to.CloseIdleConnections()
	})
	where, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	return where.Host
}

// RoundTrip asks the next node, and the one after it if that will not do.
func (r *inTurn) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	var body []byte
	if req.Body != nil {
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	nodes := r.nodes()
	for range nodes {
		next := req.Clone(req.Context())
		next.URL.Host = nodes[int(r.turn.Add(1))%len(nodes)].addr
		if req.Body != nil {
			next.Body = io.NopCloser(bytes.NewReader(body))
		}
		if resp != nil {
			resp.Body.Close()
		}
		if resp, err = r.to.RoundTrip(next); err == nil && resp.StatusCode != http.StatusServiceUnavailable {
			break
		}
	}
	return resp, err
}
