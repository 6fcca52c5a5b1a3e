package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/threadcast/threadcast/web"
)

func TestGuard(t *testing.T) {
	tests := map[string]struct {
		method, host, origin, site string
		insecure                   bool
		want                       int
	}{
		"by address":                  {"GET", "127.0.0.1:8080", "", "", false, 200},
		"by another loopback address": {"GET", "127.8.0.1:1", "", "", false, 200},
		"by name":                     {"POST", "localhost:8080", "http://localhost:8080", "same-origin", false, 200},
		"by IPv6":                     {"GET", "[::1]:8080", "", "", false, 200},
		"by IPv6 without a port":      {"GET", "[::1]", "", "", false, 200},
		"without a browser":           {"POST", "127.0.0.1:8080", "", "", false, 200},
		"rebound name":                {"GET", "evil.example", "http://evil.example", "same-origin", false, 403},
		"rebound name with a port":    {"POST", "evil.example:8080", "http://evil.example:8080", "same-origin", false, 403},
		"name that looks like ours":   {"GET", "localhost.evil.example", "", "", false, 403},
		"no name":                     {"GET", "", "", "", false, 403},
		"any name when insecure":      {"GET", "chat.example", "", "", true, 200},
		"foreign page posts":          {"POST", "127.0.0.1:8080", "http://evil.example", "cross-site", false, 403},
		"foreign page deletes":        {"DELETE", "localhost:8080", "http://localhost:4000", "same-site", false, 403},
		"foreign page when insecure":  {"POST", "chat.example", "http://evil.example", "cross-site", true, 403},
		"page that is allowed":        {"POST", "127.0.0.1:8080", "http://localhost:3000", "cross-site", false, 200},
		"allowed page of a bad name":  {"POST", "evil.example", "http://localhost:3000", "cross-site", false, 403},
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := guard(ok, config{Listen: "127.0.0.1:8080", Insecure: tt.insecure, Web: web.Config{Origins: []string{"http://localhost:3000"}}}, slog.New(slog.DiscardHandler))
			r := httptest.NewRequest(tt.method, "/api/threads", nil)
			r.Host = tt.host
			r.Header.Set("Origin", tt.origin)
			r.Header.Set("Sec-Fetch-Site", tt.site)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Fatalf("got %d, want %d", w.Code, tt.want)
			}
			var p struct{ Code, Message string }
			if tt.want == 403 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Code != "not_authorized" || p.Message == "") {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}

func TestGuardLetsAllPagesInIfItIsTold(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	h := guard(ok, config{Listen: "127.0.0.1:8080", Web: web.Config{Origins: []string{"*"}}}, slog.New(slog.DiscardHandler))
	for host, want := range map[string]int{"127.0.0.1:8080": 200, "evil.example": 403} {
		r := httptest.NewRequest("POST", "/api/threads", nil)
		r.Host = host
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: got %d, want %d", host, w.Code, want)
		}
	}
}
