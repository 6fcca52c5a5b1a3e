package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
)

// api is the HTTP API.
type api struct{ *Server }

func (a api) listAgents(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]any{"agents": a.Agents})
}

// threadID reads the thread's id from the path.
func threadID(c echo.Context) (thread.ID, error) {
	id, err := pathID(c, "id", "thread id")
	return thread.ID(id), err
}

// pathID reads a parameter of the path as the id that it is called in errors.
func pathID(c echo.Context, name, called string) (string, error) {
	id, err := param(c, name)
	if err != nil {
		return "", err
	}
	return id, thread.CheckID(called, id)
}

// param reads a parameter from the path.
func param(c echo.Context, name string) (string, error) {
	text := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return text, nil // echo took it from the unescaped path
	}
	text, err := url.PathUnescape(text)
	if err != nil {
		return "", badInput("the path is not properly escaped")
	}
	return text, nil
}

// known returns what is known of the thread in the path, or [thread.ErrNotFound].
func (s *Server) known(c echo.Context) (thread.Thread, error) {
	id, err := threadID(c)
	if err != nil {
		return thread.Thread{}, err
	}
	t, err := s.Directory.Thread(c.Request().Context(), id)
	if err == nil && t.Deleted {
		err = thread.ErrNotFound
	}
	if err == nil {
		err = s.may(callerOf(c), t, toSee)
	}
	return t, absent(id, err)
}

// absent says in one sentence that there is no such thread, if that is what err means.
func absent(id thread.ID, err error) error {
	if errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("%w: there is no thread %q", thread.ErrNotFound, id)
	}
	return err
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

// getThread answers with a thread's status and its latest runs.
func (a api) getThread(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	ctx, id := c.Request().Context(), t.ID
	n, err := limit(c, 50, 500)
	if err != nil {
		return err
	}
	after := uint64(0)
	if t.LastRun > uint64(n) {
		after = t.LastRun - uint64(n)
	}
	runs, err := a.Directory.Runs(ctx, id, after, n)
	if err != nil {
		return err
	}
	st, err := a.Runs.Status(ctx, id)
	if err != nil {
		return err
	}
	view, views := viewOf(t), make([]runView, len(runs))
	for i, r := range runs {
		if st.Latest != nil && st.Latest.ID == r.ID {
			if r.Ended.IsZero() {
				r = *st.Latest // it has ended a moment before the history knows
			}
			view.State = string(r.End.Outcome)
		}
		views[i] = runViewOf(r)
	}
	return c.JSON(http.StatusOK, struct {
		threadView
		Status statusReply `json:"status"`
		Runs   []runView   `json:"runs"`
	}{view, replyOf(st), views})
}

// getResult answers with the content of a TOOL_CALL_RESULT that was kept apart, as the agent sent it.
func (a api) getResult(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	run, err := param(c, "run")
	if err != nil {
		return err
	}
	place, err := strconv.Atoi(c.Param("place"))
	if err != nil || place < 1 {
		return badInput("the number of a result must be 1 or more")
	}
	result, err := a.Directory.Result(c.Request().Context(), id, thread.RunID(run), place)
	if errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("%w: run %q of thread %q has no result %d", thread.ErrNotFound, run, id, place)
	}
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, result.Content)
}

// postRun starts a run over HTTP, with the payload of the socket's run.
func (a api) postRun(c echo.Context) error {
	id, payload, err := body(c)
	if err != nil {
		return err
	}
	reply, err := a.run(c.Request().Context(), id, payload, callerOf(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, reply)
}

// postStop stops a run over HTTP, with the payload of the socket's stop; the body may be empty.
func (a api) postStop(c echo.Context) error {
	id, payload, err := body(c)
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	reply, err := a.stop(c.Request().Context(), id, payload, callerOf(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, reply)
}

// body reads the thread's id from the path, and the whole body.
func body(c echo.Context) (thread.ID, []byte, error) {
	id, err := threadID(c)
	if err != nil {
		return id, nil, err
	}
	payload, err := wholeBody(c)
	return id, payload, err
}

func wholeBody(c echo.Context) ([]byte, error) {
	payload, err := io.ReadAll(c.Request().Body)
	if err != nil {
		var he *echo.HTTPError
		if errors.As(err, &he) {
			return nil, he
		}
		return nil, badInput("the body could not be read")
	}
	return payload, nil
}
