package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Register adds the server's routes to e, and answers all errors of e in the form of [Problem].
func (s *Server) Register(e *echo.Echo) {
	e.HTTPErrorHandler = s.answerError
	e.GET("/socket/websocket", s.socket)
	e.GET("//socket/websocket", s.socket)
	e.Match(reading, "/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.Match(reading, "/readyz", s.ready)
	api := e.Group("/api", middleware.BodyLimit(strconv.FormatInt(s.cfg.MaxFrame, 10)), apiHeaders)
	api.Match(reading, "/agents", s.listAgents)
	api.Match(reading, "/threads", s.listThreads)
	api.Match(reading, "/threads/:id", s.getThread)
	api.DELETE("/threads/:id", s.deleteThread)
	api.Match(reading, "/threads/:id/events", s.getEvents)
	api.POST("/threads/:id/runs", s.postRun)
	api.POST("/threads/:id/stop", s.postStop)
	s.registerPage(e)
}

// reading is the methods that change nothing. What is written in answer to a HEAD, net/http leaves out.
var reading = []string{http.MethodGet, http.MethodHead}

// apiHeaders keeps answers, which are of the moment, out of caches, and browsers from reading them as anything else.
func apiHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "no-store")
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return next(c)
	}
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
	if c.Request().Context().Err() == nil { // else the client has gone, and err may come of that
		s.report(p, c.Request().Method+" "+c.Path(), err)
	}
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
