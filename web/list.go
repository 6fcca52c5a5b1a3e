package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The bounds of a page of threads.
const (
	normalThreads = 50
	mostThreads   = 200
)

// threadPage is a page of a list.
type threadPage struct {
	Threads []threadView `json:"threads"`
	Next    *string      `json:"next"`

	rows []thread.Thread
}

// threads returns a page of the caller's threads.
func (s *Server) threads(ctx context.Context, who caller, page thread.Page) (threadPage, error) {
	page.Owner = who.User
	rows, next, err := s.Directory.Threads(ctx, page)
	if err != nil {
		return threadPage{}, err
	}
	p := threadPage{Threads: make([]threadView, len(rows)), rows: rows}
	for i, t := range rows {
		p.Threads[i] = viewOf(t)
	}
	if next != "" {
		p.Next = &next
	}
	return p, nil
}

func (a api) listThreads(c echo.Context) error {
	n, err := limit(c, normalThreads, mostThreads)
	if err != nil {
		return err
	}
	page := thread.Page{Before: c.QueryParam("before"), Limit: n, Agent: c.QueryParam("agent")}
	if text := c.QueryParam("archived"); text != "" {
		if page.Archived, err = strconv.ParseBool(text); err != nil {
			return badInput("archived must be true or false")
		}
	}
	p, err := a.threads(c.Request().Context(), callerOf(c), page)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, p)
}

// patchThread names or archives a thread, and answers with it.
func (a api) patchThread(c echo.Context) error {
	id, payload, err := body(c)
	if err != nil {
		return err
	}
	f, err := parseFields(payload)
	if err != nil {
		return err
	}
	edit, err := f.edit()
	if err != nil {
		return err
	}
	t, err := a.edit(c.Request().Context(), callerOf(c), id, edit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewOf(t))
}

func (a api) deleteThread(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	if err := a.erase(c.Request().Context(), callerOf(c), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// flag returns a field that must be true or false if it is there; null counts as absent.
func (f fields) flag(name string) (is, given bool, err error) {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return false, false, nil
	}
	if err := json.Unmarshal(raw, &is); err != nil {
		return false, false, badInput(name + " is neither true nor false")
	}
	return is, true, nil
}

// number returns a field that must be a number from 1 to most if it is there; null counts as absent.
func (f fields) number(name string, normal, most int) (int, error) {
	raw, ok := f[name]
	if !ok || string(raw) == "null" {
		return normal, nil
	}
	var n int
	if err := json.Unmarshal(raw, &n); err != nil || n < 1 || n > most {
		return 0, badInput(fmt.Sprintf("%s must be a number from 1 to %d", name, most))
	}
	return n, nil
}

// edit reads what is to be changed of how a thread stands in lists.
func (f fields) edit() (thread.Edit, error) {
	var edit thread.Edit
	name, named, err := f.text("name")
	if err != nil {
		return edit, err
	}
	archived, given, err := f.flag("archived")
	if err != nil {
		return edit, err
	}
	if named {
		edit.Name = &name
	}
	if given {
		edit.Archived = &archived
	}
	return edit, edit.Check()
}

// page reads which part of a list is wanted.
func (f fields) page() (thread.Page, error) {
	var page thread.Page
	var err error
	if page.Limit, err = f.number("limit", normalThreads, mostThreads); err != nil {
		return page, err
	}
	if page.Archived, _, err = f.flag("archived"); err != nil {
		return page, err
	}
	page.Before, _, err = f.text("before")
	return page, err
}

// threadOf reads which thread a request is about.
func (f fields) threadOf() (thread.ID, error) {
	id, _, err := f.text("threadId")
	if err == nil {
		err = thread.CheckID("threadId", id)
	}
	return thread.ID(id), err
}
