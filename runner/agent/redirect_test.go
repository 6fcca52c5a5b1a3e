package agent

import (
	"net/http"
	"testing"
)

func TestRedirects(t *testing.T) {
	tests := map[string]struct {
		method, from, to string
		hops             int
		follow           bool
	}{
		"same place":            {"POST", "http://a:1/x", "http://a:1/y", 1, true},
		"to https":              {"POST", "http://a:1/x", "https://a/x", 1, true},
		"many times":            {"POST", "http://a/x", "http://a/x", 6, false},
		"as GET":                {"GET", "http://a/x", "http://a/y", 1, false},
		"to another host":       {"POST", "https://a/x", "https://b/x", 1, false},
		"to another port":       {"POST", "http://a:1/x", "http://a:2/x", 1, false},
		"from https to http":    {"POST", "https://a/x", "http://a/x", 1, false},
		"to https, other host":  {"POST", "http://a/x", "https://a.b/x", 1, false},
		"to another kind of it": {"POST", "http://a/x", "ws://a/x", 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, err := http.NewRequest("POST", test.from, nil)
			if err != nil {
				t.Fatal(err)
			}
			to, err := http.NewRequest(test.method, test.to, nil)
			if err != nil {
				t.Fatal(err)
			}
			via := make([]*http.Request, test.hops)
			for i := range via {
				via[i] = from
			}
			if err := checkRedirect(to, via); (err == nil) != test.follow {
				t.Errorf("got %v", err)
			}
		})
	}
}
