package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// origins are where pages come from that may use the server besides its own: [Config.Origins].
type origins struct {
	allowed []string
	log     *slog.Logger
	mu      sync.Mutex
	told    map[string]bool // those whose refusal has been logged
}

// foreign tells whether a browser asks on behalf of a page that the server does not let in.
func (o *origins) foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || o.lists(origin) || o.lists("*") {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

func (o *origins) lists(origin string) bool { return slices.Contains(o.allowed, origin) }

// tell logs once per origin that its pages are refused: in the browser nobody learns why.
func (o *origins) tell(origin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = map[string]bool{}
	}
	if len(o.told) < 100 && !o.told[origin] {
		o.told[origin] = true
		o.log.Warn("socket refused: its page is not from this origin", "origin", origin)
	}
}

// shared lets pages of allowed origins read what the route answers.
func (o *origins) shared(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		o.share(c)
		return next(c)
	}
}

// share says whether the page that asks may read the answer.
func (o *origins) share(c echo.Context) bool {
	if len(o.allowed) == 0 {
		return false
	}
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderOrigin)
	switch origin := c.Request().Header.Get(echo.HeaderOrigin); {
	case origin == "":
		return false
	case o.lists(origin):
		h.Set(echo.HeaderAccessControlAllowOrigin, origin)
		h.Set(echo.HeaderAccessControlAllowCredentials, "true")
	case o.lists("*"):
		h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	default:
		return false
	}
	h.Set(echo.HeaderAccessControlExposeHeaders, "Retry-After")
	return true
}

// preflight tells a browser what a page of an allowed origin may send.
func (o *origins) preflight(c echo.Context) error {
	if o.share(c) {
		h := c.Response().Header()
		h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
		h.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS")
		if headers := c.Request().Header.Get(echo.HeaderAccessControlRequestHeaders); headers != "" {
			h.Set(echo.HeaderAccessControlAllowHeaders, headers) // all of them: a "*" would not do for Authorization
		}
		h.Set(echo.HeaderAccessControlMaxAge, "600")
	}
	return c.NoContent(http.StatusNoContent)
}

// sockets is the address at which clients of CopilotKit find the sockets.
func (s *Server) sockets(r *http.Request) string {
	// Of a proxy that took the request over TLS, only the header tells. Whoever makes it up misleads nobody else.
	secure, at := r.TLS != nil || strings.EqualFold(r.Header.Get(echo.HeaderXForwardedProto), "https"), r.Host
	if scheme, rest, ok := strings.Cut(s.cfg.PublicURL, "://"); ok {
		secure, at = scheme == "https", strings.TrimSuffix(rest, "/")
	}
	if secure {
		return "wss://" + at + "/client"
	}
	return "ws://" + at + "/client"
}
