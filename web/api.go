package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

func (s *Server) listAgents(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]any{"agents": s.Agents})
}

// threadID reads the thread's id from the path.
func threadID(c echo.Context) (thread.ID, error) {
	id, err := url.PathUnescape(c.Param("id"))
	if err != nil {
		return "", badInput("the thread id in the path is not properly escaped")
	}
	return thread.ID(id), thread.CheckID("thread id", id)
}

// limit reads the query's limit, between 1 and most.
func limit(c echo.Context, normal, most int) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return normal, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badInput(fmt.Sprintf("limit must be a number from 1 to %d", most))
	}
	return n, nil
}

// threadView is a thread in a list.
type threadView struct {
	ID       thread.ID     `json:"id"`
	Title    string        `json:"title"`
	State    string        `json:"state"`
	RunID    *thread.RunID `json:"runId"`
	AgentID  *string       `json:"agentId"`
	Created  time.Time     `json:"created"`
	Activity time.Time     `json:"activity"`
}

func viewOf(t thread.Thread) threadView {
	v := threadView{ID: t.ID, Title: t.Title, State: "idle", Created: t.Created.UTC(), Activity: t.Activity.UTC()}
	if t.Latest != nil {
		v.RunID, v.AgentID = &t.Latest.ID, &t.Latest.Agent
		v.State = "running"
		if !t.Latest.Ended.IsZero() {
			v.State = string(t.Latest.End.Outcome)
		}
	}
	return v
}

func (s *Server) listThreads(c echo.Context) error {
	n, err := limit(c, 50, 200)
	if err != nil {
		return err
	}
	threads, next, err := s.Directory.Threads(c.Request().Context(), thread.Page{Before: c.QueryParam("before"), Limit: n})
	if err != nil {
		return err
	}
	views := make([]threadView, len(threads))
	for i, t := range threads {
		views[i] = viewOf(t)
	}
	var more *string
	if next != "" {
		more = &next
	}
	return c.JSON(http.StatusOK, map[string]any{"threads": views, "next": more})
}

// runView is a run's particulars.
type runView struct {
	RunID       thread.RunID   `json:"runId"`
	Number      uint64         `json:"number"`
	AgentID     string         `json:"agentId"`
	ParentRunID string         `json:"parentRunId,omitempty"`
	State       string         `json:"state"`
	StartedAt   time.Time      `json:"startedAt"`
	EndedAt     *time.Time     `json:"endedAt"`
	Code        string         `json:"code,omitempty"`
	Error       string         `json:"error,omitempty"`
	StoppedBy   string         `json:"stoppedBy,omitempty"`
	Cursor      *thread.Cursor `json:"-"`
	End         string         `json:"end,omitempty"` // the position after its last entry
}

func runViewOf(r thread.Run) runView {
	v := runView{
		RunID: r.ID, Number: r.Number, AgentID: r.Agent, ParentRunID: r.Parent, State: "running",
		StartedAt: r.Accepted.UTC(),
	}
	if !r.Ended.IsZero() {
		ended := r.Ended.UTC()
		v.State, v.EndedAt, v.End = string(r.End.Outcome), &ended, r.Cursor().String()
		v.Code, v.Error, v.StoppedBy = r.End.Code, r.End.Message, r.End.By
	}
	return v
}

// getThread answers with a thread's status and its latest runs.
func (s *Server) getThread(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	t, err := s.Directory.Thread(ctx, id)
	if err == nil && t.Deleted {
		err = thread.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("thread %s: %w", id, err)
	}
	n, err := limit(c, 50, 500)
	if err != nil {
		return err
	}
	after := uint64(0)
	if t.LastRun > uint64(n) {
		after = t.LastRun - uint64(n)
	}
	runs, err := s.Directory.Runs(ctx, id, after, n)
	if err != nil {
		return err
	}
	st, err := s.status(ctx, id)
	if err != nil {
		return err
	}
	views := make([]runView, len(runs))
	for i, r := range runs {
		views[i] = runViewOf(r)
	}
	return c.JSON(http.StatusOK, struct {
		threadView
		Status statusReply `json:"status"`
		Runs   []runView   `json:"runs"`
	}{viewOf(t), st, views})
}

func (s *Server) deleteThread(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	if err := s.Runs.Delete(c.Request().Context(), id, peer(c.Request())); err != nil {
		return fmt.Errorf("thread %s: %w", id, err)
	}
	return c.NoContent(http.StatusNoContent)
}

// getEvents answers with a page of a thread's events after a cursor: the same batches, with the same coordinate,
// that a socket gets.
func (s *Server) getEvents(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	n, err := limit(c, 500, 10_000)
	if err != nil {
		return err
	}
	var opts hub.Options
	if c.QueryParams().Has("after") {
		if opts.After, err = thread.ParseCursor(c.QueryParam("after")); err != nil {
			return err
		}
	}
	if opts.Replay, err = parseReplay(c.QueryParam("replay")); err != nil {
		return err
	}
	batches, more, err := s.Hub.Read(c.Request().Context(), id, opts, n)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, appendPage(nil, opts.After, batches, more))
}

func appendPage(dst []byte, cursor thread.Cursor, batches []hub.Batch, more bool) []byte {
	dst = append(dst, `{"batches":[`...)
	for i, b := range batches {
		if i > 0 {
			dst = append(dst, ',')
		}
		cursor = b.To
		if b.Kind == hub.Reset {
			dst = append(dst, `{"reset":true,`...)
			dst = append(dst, wire.AppendReset(nil, string(b.RunID), b.From.String())[1:]...)
			continue
		}
		dst = wire.Events{
			RunID: string(b.RunID), From: b.From.String(), To: b.To.String(), Replay: true, Events: b.Events,
		}.Append(dst)
	}
	dst = append(dst, `],"cursor":"`...)
	dst = cursor.Append(dst)
	dst = append(dst, `","more":`...)
	dst = strconv.AppendBool(dst, more)
	return append(dst, '}')
}

// postRun starts a run over HTTP, with the payload of the socket's run.
func (s *Server) postRun(c echo.Context) error {
	id, payload, err := body(c)
	if err != nil {
		return err
	}
	reply, err := s.run(c.Request().Context(), id, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, reply)
}

// postStop stops a run over HTTP, with the payload of the socket's stop; the body may be empty.
func (s *Server) postStop(c echo.Context) error {
	id, payload, err := body(c)
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	reply, err := s.stop(c.Request().Context(), id, payload, peer(c.Request()))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, reply)
}

func body(c echo.Context) (thread.ID, []byte, error) {
	id, err := threadID(c)
	if err != nil {
		return id, nil, err
	}
	payload, err := io.ReadAll(c.Request().Body)
	if err != nil {
		var he *echo.HTTPError
		if errors.As(err, &he) {
			return id, nil, he
		}
		return id, nil, badInput("the body could not be read")
	}
	return id, payload, nil
}
