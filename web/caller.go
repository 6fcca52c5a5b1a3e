package web

import (
	"errors"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// ErrUnidentified is what [Parts.Identify] returns, wrapped, for a request that does not say who makes it.
var ErrUnidentified = errors.New("nobody is known to call")

// caller is who makes a request, or holds a socket.
type caller struct {
	User thread.User
	Peer string // the address
}

// caller tells who makes a request. The error of [Parts.Identify] refuses it.
func (s *Server) caller(r *http.Request) (caller, error) {
	c := caller{Peer: peer(r)}
	if s.Identify == nil {
		return c, nil
	}
	var err error
	c.User, err = s.Identify(r)
	return c, err
}

// name is the caller in records, such as who stopped a run.
func (c caller) name() string {
	if c.User != "" {
		return string(c.User)
	}
	return c.Peer
}

// peer names who is on the other side of a connection.
func peer(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// callerKey is where a request's caller is kept in its echo.Context.
const callerKey = "threadcast.caller"

// identified refuses requests whose caller may not come in, and keeps who it is for [callerOf].
func (s *Server) identified(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.caller(c.Request())
		if err != nil {
			return err
		}
		c.Set(callerKey, who)
		return next(c)
	}
}

// callerOf is who makes a request that went through [Server.identified].
func callerOf(c echo.Context) caller {
	who, _ := c.Get(callerKey).(caller)
	return who
}
