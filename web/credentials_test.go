package web_test

import (
	"net/http"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

func TestATokenIsReadWhereverItComes(t *testing.T) {
	seen := make(chan string, 1)
	s := open(t, plan{parts: func(p *web.Parts) {
		p.Identify = func(r *http.Request) (thread.User, error) {
			seen <- r.Header.Get("Authorization")
			return "u", nil
		}
	}})
	bearer := func(text string) webtest.Options {
		return webtest.Options{Subprotocols: []string{"phoenix", "base64url.bearer.phx." + text}}
	}
	header := http.Header{"Authorization": {"Bearer mine"}}
	for name, tt := range map[string]struct {
		opts webtest.Options
		want string
	}{
		"none":                       {webtest.Options{}, ""},
		"the header":                 {webtest.Options{Header: header}, "Bearer mine"},
		"the query":                  {webtest.Options{Path: "/socket/websocket?token=a%2Bb&vsn=2.0.0"}, "Bearer a+b"},
		"a subprotocol":              {bearer("dG9rZW4"), "Bearer token"},
		"with padding":               {bearer("dG9rZW4="), "Bearer token"},
		"in the standard alphabet":   {bearer("Pj4+Pz8/"), "Bearer >>>???"},
		"in the alphabet of URLs":    {bearer("Pj4-Pz8_"), "Bearer >>>???"},
		"the subprotocol goes first": {webtest.Options{Path: "/socket/websocket?token=b&vsn=2.0.0", Subprotocols: bearer("YQ").Subprotocols}, "Bearer a"},
		"the header goes first":      {webtest.Options{Header: header, Subprotocols: bearer("YQ").Subprotocols}, "Bearer mine"},
		"no base64":                  {bearer("!!"), ""},
		"a line break":               {bearer("YQpi"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := (&site{T: t, url: s.url, dial: s.dial}).client(tt.opts)
			if got := <-seen; got != tt.want {
				t.Errorf("Identify read %q, want %q", got, tt.want)
			}
			if tt.opts.Subprotocols != nil {
				if got := c.Response().Header.Get("Sec-WebSocket-Protocol"); got != "phoenix" {
					t.Errorf("selected %q", got)
				}
			}
		})
	}
}
