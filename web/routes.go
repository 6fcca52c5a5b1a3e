package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Register adds the server's routes to e, and answers all errors of e in the form of [Problem]. The socket works inside
// the middlewares of echo, compression and ContextTimeout included; only through Timeout, which is deprecated, it is refused.
func (s *Server) Register(e *echo.Echo) {
	e.HTTPErrorHandler = s.answerError
	for _, slashes := range []string{"/%s/websocket", "//%s/websocket", "/%s//websocket"} { // as clients write them
		e.GET(fmt.Sprintf(slashes, "socket"), s.socket)
		e.GET(fmt.Sprintf(slashes, "client"), s.copilotSocket)
	}
	e.Match(reading, "/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.Match(reading, "/readyz", s.ready)
	a := api{s}
	bounded := middleware.BodyLimit(strconv.FormatInt(s.cfg.MaxFrame, 10))
	// Not a group: one with middleware answers a wrong method with 404.
	for _, route := range []struct {
		methods []string
		path    string
		handle  echo.HandlerFunc
	}{
		{reading, "/api/agents", a.listAgents},
		{reading, "/api/threads", brief(a.listThreads)},
		{reading, "/api/threads/:id", brief(a.getThread)},
		{[]string{http.MethodPatch}, "/api/threads/:id", brief(a.patchThread)},
		{[]string{http.MethodDelete}, "/api/threads/:id", a.deleteThread},
		{reading, "/api/threads/:id/events", a.getEvents},
		{reading, "/api/threads/:id/messages", a.getMessages},
		{reading, "/api/threads/:id/state", a.getState},
		{reading, "/api/threads/:id/runs", brief(a.listRuns)},
		{reading, "/api/threads/:id/runs/:run", brief(a.getRun)},
		{reading, "/api/threads/:id/runs/:run/results/:place", a.getResult},
		{[]string{http.MethodPost}, "/api/threads/:id/runs", a.postRun},
		{[]string{http.MethodPost}, "/api/threads/:id/stop", a.postStop},
		{[]string{http.MethodPost}, "/agui/:agent", feeds{s}.postAGUI},
		{[]string{http.MethodGet}, "/agui/threads/:id/events", feeds{s}.followThread},
	} {
		s.route(e, route.methods, route.path, route.handle, bounded, apiHeaders, s.identified)
	}
	s.registerCopilot(e, bounded, apiHeaders, s.identified)
	s.registerPage(e)
}

// route adds a route that pages of allowed origins may use.
func (s *Server) route(e *echo.Echo, methods []string, path string, handle echo.HandlerFunc, around ...echo.MiddlewareFunc) {
	e.Match(methods, path, handle, append([]echo.MiddlewareFunc{s.origins.shared}, around...)...)
	if len(s.cfg.Origins) > 0 {
		e.OPTIONS(path, s.origins.preflight)
	}
}

// reading is the methods that change nothing. What is written in answer to a HEAD, net/http leaves out.
var reading = []string{http.MethodGet, http.MethodHead}

// lookTimeout bounds what only looks something up, joins included: less than clients of Phoenix wait, which is 10 s.
const lookTimeout = 8 * time.Second

// look returns a context for that.
func look(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, lookTimeout, thread.ErrUnavailable)
}

// brief bounds how long a request may take.
func brief(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := look(c.Request().Context())
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// apiHeaders keeps answers, which are of the moment, out of caches, and browsers from reading them as anything else.
func apiHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		keepFresh(c)
		return next(c)
	}
}

func keepFresh(c echo.Context) {
	c.Response().Header().Set("Cache-Control", "no-store")
	c.Response().Header().Set("X-Content-Type-Options", "nosniff")
}

// ready is green while the node takes work and its stores answer.
func (s *Server) ready(c echo.Context) error {
	if s.guests.leaving.Load() {
		return c.String(http.StatusServiceUnavailable, "draining\n")
	}
	if s.Ready != nil {
		err := s.Ready(c.Request().Context())
		if was := s.unready.Swap(err != nil); err != nil && !was {
			s.cfg.Logger.Warn("not ready", "err", err)
		} else if err == nil && was {
			s.cfg.Logger.Info("ready again")
		}
		if err != nil {
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
	if c.Request().Context().Err() == nil || !errors.Is(err, context.Canceled) { // else the client has gone
		s.report(p, c.Request().Method+" "+c.Path(), err)
	}
	keepFresh(c)
	if p.status == http.StatusServiceUnavailable {
		c.Response().Header().Set("Retry-After", "1") // and by then another node may have it
	}
	if c.Get(spokenKey) != nil {
		_ = c.String(p.status, p.Message)
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
