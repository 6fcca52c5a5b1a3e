package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web"
)

// identify returns who makes a request by what the proxy in front says in a header; nil if there is no such header.
func identify(header string) func(*http.Request) (thread.User, error) {
	if header == "" {
		return nil
	}
	return func(r *http.Request) (thread.User, error) {
		values := r.Header.Values(header)
		switch {
		case len(values) == 0 || values[0] == "":
			return "", fmt.Errorf("%w: the header %s is missing, with which the proxy in front of this server says who is calling",
				web.ErrUnidentified, header)
		case len(values) > 1:
			return "", fmt.Errorf("%w: the header %s is there more than once; the proxy in front of this server has to replace it",
				web.ErrUnidentified, header)
		}
		return thread.User(values[0]), thread.CheckID("the user in "+header, values[0])
	}
}

// headerName reads the name of a header.
func headerName(c *config, s string) error {
	for _, r := range s {
		if !strings.ContainsRune("-_", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return errors.New("must be the name of an HTTP header, such as X-User")
		}
	}
	c.UserHeader = s
	return nil
}
