package web

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// registerPage serves the page: its files, and index.html wherever a person may open or reload it.
func (s *Server) registerPage(e *echo.Echo) {
	index := func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "SAMEORIGIN")
		h.Set("Content-Security-Policy",
			"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'self'")
		if s.Page == nil {
			return c.HTMLBlob(http.StatusOK, s.NoPage)
		}
		html, err := fs.ReadFile(s.Page, "index.html")
		if err != nil {
			return err
		}
		return c.HTMLBlob(http.StatusOK, html)
	}
	e.Match(reading, "/", index)
	e.Match(reading, "/t/*", index)
	if s.Page == nil {
		return
	}
	files := http.FileServerFS(s.Page)
	e.Match(reading, "/*", func(c echo.Context) error {
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
