package web_test

import (
	"net/http"
	"testing"

	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestPagesOfOtherOrigins(t *testing.T) {
	const app, evil = "http://localhost:3000", "http://evil.example"
	for name, tt := range map[string]struct {
		allowed         []string
		origin          string
		want, withLogin string // Access-Control-Allow-Origin and -Credentials
		headers         string // that may be sent
		socket          bool
	}{
		"none is allowed":      {nil, app, "", "", "", false},
		"one is allowed":       {[]string{"https://x.example", app}, app, app, "true", "authorization,x-mine", true},
		"another is not":       {[]string{app}, evil, "", "", "", false},
		"one that looks alike": {[]string{app}, app + "1", "", "", "", false},
		"all are allowed":      {[]string{"*"}, evil, "*", "", "authorization,x-mine", true},
		"all, and one by name": {[]string{"*", app}, app, app, "true", "authorization,x-mine", true},
		"without a page":       {[]string{app}, "", "", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{cfg: web.Config{Origins: tt.allowed}})
			for _, path := range []string{"/api/threads", copilotPath + "/info", "/agui/threads/t/events?until=idle", "/api/threads/nobody"} {
				response, err := s.ask("GET", path, "", "Origin", tt.origin)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				h := response.Header
				if h.Get("Access-Control-Allow-Origin") != tt.want || h.Get("Access-Control-Allow-Credentials") != tt.withLogin {
					t.Errorf("%s: %v", path, h)
				}
				if (h.Get("Vary") == "Origin") != (tt.allowed != nil) {
					t.Errorf("%s: Vary is %q", path, h.Get("Vary"))
				}
			}
			for _, path := range []string{"/agui/demo", copilotPath + "/agent/demo/run", copilotPath, ssePath + "/", "/api/threads/t"} {
				response, err := s.ask("OPTIONS", path, "", "Origin", tt.origin, "Access-Control-Request-Method", "POST",
					"Access-Control-Request-Headers", "authorization,x-mine")
				if err != nil || response.StatusCode != 204 {
					t.Fatalf("%s: %v, %v", path, response, err)
				}
				h := response.Header
				methods := ""
				if tt.want != "" {
					methods = "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS"
				}
				if h.Get("Access-Control-Allow-Origin") != tt.want || h.Get("Access-Control-Allow-Methods") != methods ||
					h.Get("Access-Control-Allow-Headers") != tt.headers {
					t.Errorf("preflight of %s: %v", path, h)
				}
			}
			_, err := webtest.Dial(within(t), s.url, &webtest.Options{Header: http.Header{"Origin": {tt.origin}}})
			if (err == nil) != tt.socket {
				t.Errorf("a socket: %v", err)
			}
		})
	}
}
