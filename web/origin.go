package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// isForeign tells whether a browser asks on behalf of a page that the server does not let in.
func (s *Server) isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || s.lists(origin) || s.lists("*") {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

func (s *Server) lists(origin string) bool { return slices.Contains(s.cfg.Origins, origin) }

// shared lets pages of allowed origins read what the route answers.
func (s *Server) shared(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		s.share(c)
		return next(c)
	}
}

// share says whether the page that asks may read the answer.
func (s *Server) share(c echo.Context) bool {
	if len(s.cfg.Origins) == 0 {
		return false
	}
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderOrigin)
	switch origin := c.Request().Header.Get(echo.HeaderOrigin); {
	case origin == "":
		return false
	case s.lists(origin):
		h.Set(echo.HeaderAccessControlAllowOrigin, origin)
		h.Set(echo.HeaderAccessControlAllowCredentials, "true")
	case s.lists("*"):
		h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	default:
		return false
	}
	h.Set(echo.HeaderAccessControlExposeHeaders, "Retry-After")
	return true
}

// preflight tells a browser what a page of an allowed origin may send.
func (s *Server) preflight(c echo.Context) error {
	if s.share(c) {
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
