package web_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web/webtest"
)

// around are the middlewares that a program may put around the server without harm to the socket.
func around() map[string][]echo.MiddlewareFunc {
	quiet := func(c *middleware.LoggerConfig) { c.Output = io.Discard }
	logger := middleware.DefaultLoggerConfig
	quiet(&logger)
	m := map[string]echo.MiddlewareFunc{
		"Recover":   middleware.Recover(),
		"RequestID": middleware.RequestID(),
		"Logger":    middleware.LoggerWithConfig(logger),
		"RequestLogger": middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
			LogStatus: true, LogLatency: true, LogResponseSize: true, LogError: true, HandleError: true,
			LogValuesFunc: func(echo.Context, middleware.RequestLoggerValues) error { return nil },
		}),
		"Gzip":           middleware.Gzip(),
		"Decompress":     middleware.Decompress(),
		"Secure":         middleware.Secure(),
		"CORS":           middleware.CORS(),
		"BodyLimit":      middleware.BodyLimit("1K"),
		"BodyDump":       middleware.BodyDump(func(echo.Context, []byte, []byte) {}),
		"ContextTimeout": middleware.ContextTimeout(time.Second),
		"RateLimiter":    middleware.RateLimiter(middleware.NewRateLimiterMemoryStore(100)),
	}
	stacks := map[string][]echo.MiddlewareFunc{}
	var all []echo.MiddlewareFunc
	for _, name := range []string{"Recover", "RequestID", "Logger", "RequestLogger", "Gzip", "Decompress", "Secure", "CORS",
		"BodyLimit", "BodyDump", "ContextTimeout", "RateLimiter"} {
		stacks[name] = []echo.MiddlewareFunc{m[name]}
		all = append(all, m[name])
	}
	stacks["all of them"] = all
	return stacks
}

func TestTheSocketWorksThroughMiddleware(t *testing.T) {
	for name, stack := range around() {
		t.Run(name, func(t *testing.T) {
			agent := agenttest.New(held(3))
			s := open(t, plan{agent: agent, wrap: func(e *echo.Echo) { e.Use(stack...) }})
			gzip := http.Header{"Accept-Encoding": {"gzip"}}
			c := s.client(webtest.Options{Subprotocols: []string{"phoenix"}, Header: gzip})
			v := webtest.NewViewer("t", nil)
			if err := v.Join(within(t), c); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Channel().Push(within(t), "run", `{"runId":"r1","messages":[]}`); err != nil {
				t.Fatal(err)
			}
			<-agent.Mark("held")
			agent.Release("go")
			s.until(v, webtest.Ended("r1"))
			if response, body := s.request("GET", "/api/agents", ""); response.StatusCode != 200 {
				t.Fatalf("%d %s", response.StatusCode, body)
			}
			_, err := webtest.Dial(within(t), s.url, &webtest.Options{Path: "/socket/websocket", Header: gzip})
			if webtest.Code(err) != "bad_input" && name != "Gzip" && name != "all of them" { // those pack the answer
				t.Fatalf("a refused handshake: %v", err)
			}
			if err == nil {
				t.Fatal("a handshake without vsn was accepted")
			}
			s.web.Drain(within(t))
			if code, err := c.Closed(within(t)); code != 1012 {
				t.Fatalf("closed with %d, %v", code, err)
			}
		})
	}
}

func TestTheSocketOutlivesTheTimeoutOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, plan{pipe: true, wrap: func(e *echo.Echo) { e.Use(middleware.ContextTimeout(time.Second)) }})
		c := s.client(webtest.Options{})
		<-time.After(time.Minute)
		if _, err := c.Join(t.Context(), "thread:t", nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheServerCanBeMountedBesideOtherRoutes(t *testing.T) {
	s := open(t, plan{wrap: func(e *echo.Echo) {
		e.GET("/mine", func(c echo.Context) error { return c.String(http.StatusOK, "mine") })
		e.GET("/broken", func(echo.Context) error { panic("a bug of the program around") })
		e.Use(middleware.Recover())
		e.Logger.SetOutput(io.Discard)
	}})
	if _, body := s.request("GET", "/mine", ""); body != "mine" {
		t.Fatalf("got %s", body)
	}
	if response, body := s.request("GET", "/broken", ""); response.StatusCode != 500 ||
		body != `{"code":"internal","message":"Something went wrong inside the server. Its log says what."}` {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
}

func TestTheSocketIsRefusedWhereItCannotWork(t *testing.T) {
	s := open(t, plan{wrap: func(e *echo.Echo) {
		e.Use(middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}))
	}})
	_, err := webtest.Dial(within(t), s.url, nil)
	var refused *webtest.Refused
	if !errors.As(err, &refused) || refused.HTTP != 500 || refused.Code != "internal" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(s.log.String(), "Timeout") {
		t.Fatalf("the log does not tell: %s", s.log)
	}
}

func TestStreamsAreRefusedWhereTheyCannotWork(t *testing.T) {
	s := open(t, plan{wrap: func(e *echo.Echo) {
		e.Use(middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}))
	}})
	response, body := s.request("GET", "/agui/threads/t/events", "")
	if response.StatusCode != 500 || !strings.Contains(body, `"code":"internal"`) || !strings.Contains(s.log.String(), "Timeout") {
		t.Fatalf("%d %s\n%s", response.StatusCode, body, s.log)
	}
}
