package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

// run starts a run.
func (k copilot) run(c echo.Context, op operation) error {
	req, err := k.request(op)
	if err != nil {
		return err
	}
	acc, err := k.start(c.Request().Context(), req, callerOf(c))
	switch {
	case err != nil:
		return err
	case k.sse:
		return k.streamRun(c, watched{Accepted: acc, thread: req.Thread, shape: copilotkit.Older})
	}
	return k.credentials(c, grant{Kind: ticketRun, Thread: req.Thread, RunID: acc.RunID})
}

// request reads a RunAgentInput, without what the delivery of events has left in it.
func (k copilot) request(op operation) (thread.Request, error) {
	return parseInput(op.agent, op.body, copilotkit.Clean)
}

// credentials answers with a ticket and where it is good.
func (k copilot) credentials(c echo.Context, g grant) error {
	g.User = callerOf(c).User
	return c.JSON(http.StatusOK, copilotkit.Credentials{
		ThreadID: string(g.Thread), RunID: string(g.RunID), JoinToken: k.tickets.issue(g),
		Realtime: copilotkit.Realtime{ClientURL: k.sockets(c.Request()), Topic: "thread:" + string(g.Thread)},
	})
}

// connect shows what a thread holds, and what goes on in it. A thread that never was shows nothing: clients connect to one
// before they use it for the first time. lastSeenEventId is left to the join, which knows it better.
func (k copilot) connect(c echo.Context, op operation) error {
	f, err := parseFields(op.body)
	if err != nil {
		return err
	}
	text, err := f.id("threadId")
	if err != nil {
		return err
	}
	id := thread.ID(text)
	if err := k.hasAgent(op.agent); err != nil {
		return err
	}
	ctx, cancel := look(c.Request().Context())
	defer cancel()
	st, begun, err := k.begun(ctx, id)
	switch {
	case err != nil:
		return err
	case k.sse:
		cancel()
		return k.replay(c, id, st)
	case !begun:
		return nothing(c)
	case st.Running:
		return k.credentials(c, grant{Kind: ticketConnect, Thread: id, RunID: st.RunID})
	}
	return k.credentials(c, grant{Kind: ticketConnect, Thread: id})
}

// hasAgent refuses agents that the server has not got.
func (s *Server) hasAgent(id string) error {
	for _, a := range s.Agents {
		if a.ID == id {
			return nil
		}
	}
	return fmt.Errorf("%w: %q", thread.ErrUnknownAgent, id)
}

// begun tells how a thread stands, and whether there is anything of it.
func (s *Server) begun(ctx context.Context, id thread.ID) (thread.Status, bool, error) {
	t, err := s.Directory.Thread(ctx, id)
	if errors.Is(err, thread.ErrNotFound) || err == nil && (t.Deleted || t.Latest == nil) {
		return thread.Status{}, false, nil
	}
	if err != nil {
		return thread.Status{}, false, err
	}
	st, err := s.Runs.Status(ctx, id)
	return st, true, err
}

// replay answers with a thread's events until no run is active.
func (k copilot) replay(c echo.Context, id thread.ID, st thread.Status) error {
	return k.streamThread(c, &following{
		thread: id, untilIdle: true,
		shape: func(b hub.Batch) func([]byte) []byte {
			if !b.Replay || st.Running && b.RunID == st.RunID {
				return copilotkit.Older
			}
			return func(event []byte) []byte { return copilotkit.Older(copilotkit.Quiet(event)) }
		},
	})
}

// stopRun stops the active run of a thread, or the one that the body names.
func (k copilot) stopRun(c echo.Context, op operation) error {
	if err := thread.CheckID("thread id", op.thread); err != nil {
		return err
	}
	if len(op.body) == 0 {
		op.body = []byte("{}")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(op.body, &members) != nil {
		return badInput("the body is not a JSON object")
	}
	for name := range members {
		if name != "runId" {
			return badInput("a request to stop may hold runId and nothing else")
		}
	}
	// A stop that has begun is carried out, whether its client waits or not.
	ctx := context.WithoutCancel(c.Request().Context())
	reply, err := k.stop(ctx, thread.ID(op.thread), op.body, callerOf(c))
	if err != nil {
		return err
	}
	if !reply.Stopped {
		return c.JSON(http.StatusOK, map[string]any{"stopped": false, "message": "No such run is active on this thread."})
	}
	return c.JSON(http.StatusOK, reply)
}
