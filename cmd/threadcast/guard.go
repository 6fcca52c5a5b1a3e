package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
)

// guard keeps away what a website, opened in a browser on this machine, could do to a server that asks nobody to log in:
// requests that change something from pages of other origins than those allowed, and pages whose name was pointed at this
// address (DNS rebinding), which the browser takes for our own.
func guard(next http.Handler, cfg config, log *slog.Logger) http.Handler {
	g := &refusals{log: log, told: map[string]bool{}}
	if !slices.Contains(cfg.Web.Origins, "*") {
		next = sameOrigin(next, cfg, g)
	}
	if cfg.Insecure {
		return next
	}
	own, _, _ := net.SplitHostPort(cfg.Listen) // it was checked
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		if host != own && !loopback(trimBrackets(host)) {
			g.refuse(w, "it was called "+r.Host,
				"This server answers to localhost only, since nobody has to log in. With --insecure it answers to any name.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests that change something from pages of origins that are not allowed.
func sameOrigin(next http.Handler, cfg config, g *refusals) http.Handler {
	cross := http.NewCrossOriginProtection()
	for _, origin := range cfg.Web.Origins {
		_ = cross.AddTrustedOrigin(origin) // it was checked
	}
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, "a page from "+r.Header.Get("Origin")+" asked", "Pages from other origins cannot change anything here. "+
			"Serve the page from this origin, or through a proxy, or allow its origin with --allow-origin.")
	}))
	return cross.Handler(next)
}

func trimBrackets(host string) string {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		return host[1 : n-1]
	}
	return host
}

// refusals are told once each, so that a page that keeps trying does not fill the log.
type refusals struct {
	log  *slog.Logger
	mu   sync.Mutex
	told map[string]bool
}

func (g *refusals) refuse(w http.ResponseWriter, why, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `{"code":"not_authorized","message":%q}`, message)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.told) < 100 && !g.told[why] {
		g.told[why] = true
		g.log.Warn("request refused", "why", why)
	}
}
