package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/threadcast/threadcast/web"
)

var built = fstest.MapFS{
	"index.html":        {Data: []byte("<!doctype html><title>page</title>")},
	"favicon.svg":       {Data: []byte("<svg/>")},
	"assets/app-1a2.js": {Data: []byte("console.log(1)")},
}

func withPage(p *web.Parts) { p.Page = built }

func TestPageIsServed(t *testing.T) {
	s := open(t, plan{parts: withPage})
	const year = "public, max-age=31536000, immutable"
	tests := map[string]struct {
		status                int
		kind, cache, contains string
	}{
		"/":                  {200, "text/html", "no-cache", "<title>page"},
		"/t/some%2Fthread":   {200, "text/html", "no-cache", "<title>page"},
		"/t/":                {200, "text/html", "no-cache", "<title>page"},
		"/assets/app-1a2.js": {200, "text/javascript", year, "console.log"},
		"/favicon.svg":       {200, "image/svg+xml", "", "<svg/>"},
		"/assets/old-9z9.js": {404, "application/json", "", "not_found"},
		"/assets/":           {404, "application/json", "", "not_found"},
		"/assets":            {404, "application/json", "", "not_found"},
		"/nowhere":           {404, "application/json", "", "not_found"},
		"/..%2Findex.html":   {404, "application/json", "", "not_found"},
		"/api/nowhere":       {404, "application/json", "", "not_found"},
		"/socket/longpoll":   {404, "application/json", "", "not_found"},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			s := &site{T: t, url: s.url, dial: s.dial}
			response, body := s.request("GET", path, "")
			h := response.Header
			if response.StatusCode != tt.status || !strings.HasPrefix(h.Get("Content-Type"), tt.kind) || !strings.Contains(body, tt.contains) {
				t.Fatalf("%d %s %s", response.StatusCode, h.Get("Content-Type"), body)
			}
			if tt.status == 200 && (h.Get("Cache-Control") != tt.cache || h.Get("X-Content-Type-Options") != "nosniff") {
				t.Fatalf("%v", h)
			}
			if head, body := s.request("HEAD", path, ""); head.StatusCode != tt.status || body != "" {
				t.Fatalf("HEAD: %d %s", head.StatusCode, body)
			}
		})
	}
}

func TestPageIsGuarded(t *testing.T) {
	s := open(t, plan{parts: withPage})
	response, _ := s.request("GET", "/", "")
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "SAMEORIGIN",
		"Content-Security-Policy": "default-src 'self';",
	} {
		if got := response.Header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWithoutAPageTheServerSaysSo(t *testing.T) {
	s := open(t, plan{})
	for _, path := range []string{"/", "/t/x"} {
		if response, body := s.request("GET", path, ""); response.StatusCode != 200 || body != "<p>no page</p>" {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if response, _ := s.request("GET", "/assets/app.js", ""); response.StatusCode != 404 {
		t.Errorf("an asset: %d", response.StatusCode)
	}
}

func TestAPageWithoutIndexIsAnError(t *testing.T) {
	s := open(t, plan{parts: func(p *web.Parts) { p.Page = fstest.MapFS{} }})
	response, body := s.request("GET", "/", "")
	if response.StatusCode != 500 || !strings.Contains(body, `"internal"`) || strings.Contains(body, "index.html") {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
}

func TestReadinessFollowsTheStores(t *testing.T) {
	var err error
	s := open(t, plan{parts: func(p *web.Parts) { p.Ready = func(context.Context) error { return err } }})
	if response, body := s.request("GET", "/readyz", ""); response.StatusCode != 200 || body != "ready\n" {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	err = errors.New("/secret/path: disk I/O error")
	if response, body := s.request("GET", "/readyz", ""); response.StatusCode != 503 || strings.Contains(body, "secret") {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	if !strings.Contains(s.log.String(), "disk I/O error") {
		t.Fatalf("the log does not tell: %s", s.log)
	}
}
