package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

const maxRedirects = 5

// newClient returns a client of its own for one agent. It has no overall timeout: a run takes what it takes.
func newClient(dialTimeout, headerTimeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: headerTimeout,
			// Usual agent servers hang up after 5 idle seconds. A POST that crosses with that would fail for no
			// good reason, and is not to be sent again; so this side is the first to hang up.
			IdleConnTimeout:        2 * time.Second,
			MaxIdleConnsPerHost:    32,
			MaxResponseHeaderBytes: 1 << 20,
			DisableCompression:     true, // compression would hold events back
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		},
	}
}

// checkRedirect follows what repeats the POST at the same place, be it over https instead of http. The conversation and
// the configured header, which may hold a credential, go nowhere else.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	samePlace := req.URL.Scheme == from.URL.Scheme && req.URL.Host == from.URL.Host
	upgrade := req.URL.Scheme == "https" && from.URL.Scheme == "http" && req.URL.Hostname() == from.URL.Hostname()
	if req.Method != http.MethodPost || !(samePlace || upgrade) || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

func (a *AGUI) post(ctx context.Context, input []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	req.Header = a.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", eventStream) // not */*, which would admit protobuf
	req.Header.Set("Accept-Encoding", "identity")
	return a.client.Do(req)
}

// checkHeader refuses at the start what every request would fail with.
func checkHeader(header http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if !isToken(name) {
			return fmt.Errorf("header %q: the name is not one of HTTP", name)
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection":
			return fmt.Errorf("header %s: it cannot be set", name)
		}
		for _, value := range header[name] {
			if strings.ContainsFunc(value, isControl) {
				return fmt.Errorf("header %s: the value holds a control character", name)
			}
		}
	}
	return nil
}

// isToken tells whether s can name a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(others, r)
	})
}

func isControl(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }
