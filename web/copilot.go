package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

// copilot is the server as CopilotKit's browser clients see it, under one path: in their WebSocket mode, where run and
// connect answer with a ticket for a socket, or in SSE mode, where they answer with the events.
type copilot struct {
	feeds
	base string
	sse  bool
}

// registerCopilot adds the routes of both modes.
func (s *Server) registerCopilot(e *echo.Echo, around ...echo.MiddlewareFunc) {
	for _, k := range []copilot{{feeds{s}, s.cfg.CopilotPath, false}, {feeds{s}, s.cfg.CopilotPath + "-sse", true}} {
		add := func(methods []string, path string, handle echo.HandlerFunc) {
			s.route(e, methods, k.base+path, handle, append([]echo.MiddlewareFunc{spoken}, around...)...)
		}
		post := []string{http.MethodPost}
		for _, route := range []struct {
			methods []string
			path    string
			handle  echo.HandlerFunc
		}{
			{reading, "/info", k.info},
			{reading, "/inspector-metadata", nothing},
			{post, "/agent/:agent/run", k.onAgent(k.run)},
			{post, "/agent/:agent/connect", k.onAgent(k.connect)},
			{post, "/agent/:agent/suggest", k.onAgent(k.suggest)},
			{post, "/agent/:agent/stop/:id", k.onAgent(k.stopRun)},
			{post, "", k.single},
			{post, "/", k.single},
			{every, "/memories", noSuch},
			{every, "/memories/*", noSuch},
			{every, "/transcribe", noSuch},
			{every, "/annotate", noSuch},
		} {
			add(route.methods, route.path, route.handle)
		}
		k.threads(add)
	}
}

// spoken answers errors with the sentence alone: these clients show the body to people as it is.
func spoken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err != nil {
			c.Set(spokenKey, true)
		}
		return err
	}
}

// spokenKey marks requests in their echo.Context whose errors are answered as text.
const spokenKey = "threadcast.spoken"

// operation is what a client wants, whichever of the two transports brought it.
type operation struct {
	agent  string
	thread string // of stop
	body   []byte
}

// onAgent reads an operation from a path.
func (k copilot) onAgent(do func(echo.Context, operation) error) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		var op operation
		if op.agent, err = pathID(c, "agent", "agent id"); err != nil {
			return err
		}
		if op.thread, err = param(c, "id"); err != nil {
			return err
		}
		if op.body, err = wholeBody(c); err != nil {
			return err
		}
		return do(c, op)
	}
}

// info describes the server. It asks no store, as clients take it for a sign of life.
func (k copilot) info(c echo.Context) error {
	ids, sockets := make([]string, len(k.Agents)), ""
	for i, a := range k.Agents {
		ids[i] = a.ID
	}
	if !k.sse {
		sockets = k.sockets(c.Request())
	}
	return c.JSON(http.StatusOK, copilotkit.NewInfo(ids, sockets))
}

// every is the methods of what is not there.
var every = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// noSuch answers for what these clients can ask for and this server has not got: memories, transcription, annotations.
func noSuch(c echo.Context) error {
	return fmt.Errorf("%w: there is nothing at %s", thread.ErrNotFound, c.Request().URL.EscapedPath())
}

func nothing(c echo.Context) error { return c.NoContent(http.StatusNoContent) }

// single takes all requests of a client at one address.
func (k copilot) single(c echo.Context) error {
	body, err := wholeBody(c)
	if err != nil {
		return err
	}
	e, err := copilotkit.ParseEnvelope(body)
	if err != nil {
		return err
	}
	op := operation{agent: e.Params.AgentID, thread: e.Params.ThreadID, body: e.Body}
	switch e.Method {
	case "info":
		return k.info(c)
	case "inspector/metadata":
		return nothing(c)
	case "agent/run":
		return k.run(c, op)
	case "agent/connect":
		return k.connect(c, op)
	case "agent/stop":
		return k.stopRun(c, op)
	case "resource/request":
		return k.resource(c, e)
	}
	return &absence{"this server does not know the method " + e.Method}
}

// resource answers a request for one of the thread routes that came in an envelope, as if it had come to that route.
func (k copilot) resource(c echo.Context, e copilotkit.Envelope) error {
	target, err := url.ParseRequestURI(k.base + e.Params.Path)
	if err != nil || target.Host != "" || !strings.HasPrefix(e.Params.Path, "/threads") {
		return &absence{"there is nothing at " + e.Params.Path}
	}
	r := c.Request().Clone(c.Request().Context())
	r.Method, r.URL, r.RequestURI = strings.ToUpper(e.Params.HTTPMethod), target, target.RequestURI()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(e.Body)), int64(len(e.Body))
	inner := c.Echo().NewContext(r, nil)
	inner.SetResponse(c.Response())
	c.Echo().Router().Find(r.Method, echo.GetPath(r), inner)
	return inner.Handler()(inner)
}

// absence is a [thread.ErrNotFound] of something that is no thread.
type absence struct{ what string }

func (a *absence) Error() string { return thread.ErrNotFound.Error() + ": " + a.what }

// Is makes an absence a [thread.ErrNotFound].
func (a *absence) Is(target error) bool { return target == thread.ErrNotFound }
