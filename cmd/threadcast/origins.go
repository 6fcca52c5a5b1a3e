package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// checkOrigin tells whether s is an origin in the form in which browsers say theirs: they are compared as texts.
func checkOrigin(s string) error {
	if s == "*" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || http.NewCrossOriginProtection().AddTrustedOrigin(s) != nil {
		return errors.New("must be an origin such as https://chat.example or http://localhost:3000, without anything behind it, or *")
	}
	if s != strings.ToLower(s) || u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		return errors.New("must be as browsers say it: in lower case, and without the port if that is the usual one")
	}
	return nil
}

// checkPublic tells whether s is a URL to which paths can be added.
func checkPublic(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(s, "?#") {
		return errors.New("must be a URL such as https://chat.example")
	}
	return nil
}

// checkPath tells whether routes can be put under s.
func checkPath(s string) error {
	if !strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.Contains(s, "//") || strings.ContainsAny(s, ":*?#% ") {
		return errors.New("must be a path such as /api/copilotkit")
	}
	return nil
}
