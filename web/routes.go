package web

import (
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Register adds the server's routes to e, and answers all errors of e in the form of [Problem].
func (s *Server) Register(e *echo.Echo) {
	e.HTTPErrorHandler = s.answerError
	e.GET("/socket/websocket", s.socket)
	e.GET("//socket/websocket", s.socket)
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.ready)
	api := e.Group("/api", middleware.BodyLimit(strconv.FormatInt(s.cfg.MaxFrame, 10)))
	api.GET("/agents", s.listAgents)
	api.GET("/threads", s.listThreads)
	api.GET("/threads/:id", s.getThread)
	api.DELETE("/threads/:id", s.deleteThread)
	api.GET("/threads/:id/events", s.getEvents)
	api.POST("/threads/:id/runs", s.postRun)
	api.POST("/threads/:id/stop", s.postStop)
	s.registerPage(e)
}

// ready is green while the node takes work and its stores answer.
func (s *Server) ready(c echo.Context) error {
	if s.draining.Load() {
		return c.String(http.StatusServiceUnavailable, "draining\n")
	}
	if s.Ready != nil {
		if err := s.Ready(c.Request().Context()); err != nil {
			s.cfg.Logger.Warn("not ready", "err", err)
			return c.String(http.StatusServiceUnavailable, "storage does not answer\n")
		}
	}
	return c.String(http.StatusOK, "ready\n")
}

// answerError writes an error as a [Problem].
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p := problem(err)
	var he *echo.HTTPError
	if p.Code == "internal" && errors.As(err, &he) {
		p.Code, p.status = statusCode(he.Code), he.Code
		p.Message = http.StatusText(he.Code) + "."
	}
	s.report(p, "request failed", err)
	if c.Request().Method == http.MethodHead {
		_ = c.NoContent(p.status)
		return
	}
	_ = c.JSONBlob(p.status, p.json())
}

// statusCode names what echo refuses by itself.
func statusCode(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found"
	case http.StatusMethodNotAllowed:
		return "method_not_allowed"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "not_authorized"
	}
	if status < http.StatusInternalServerError {
		return "bad_input"
	}
	return "internal"
}

// registerPage serves the page: its files, and index.html wherever a person may open or reload it.
func (s *Server) registerPage(e *echo.Echo) {
	index := func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "SAMEORIGIN")
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data: https:; "+
			"style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; frame-ancestors 'self'")
		if s.Page == nil {
			return c.HTMLBlob(http.StatusOK, s.NoPage)
		}
		html, err := fs.ReadFile(s.Page, "index.html")
		if err != nil {
			return err
		}
		return c.HTMLBlob(http.StatusOK, html)
	}
	e.GET("/", index)
	e.GET("/t/*", index)
	if s.Page == nil {
		return
	}
	files := http.FileServerFS(s.Page)
	e.GET("/*", func(c echo.Context) error {
		name := strings.TrimPrefix(c.Request().URL.Path, "/")
		if info, err := fs.Stat(s.Page, name); err != nil || info.IsDir() {
			return echo.ErrNotFound
		}
		if strings.HasPrefix(name, "assets/") {
			c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		files.ServeHTTP(c.Response(), c.Request())
		return nil
	})
}
