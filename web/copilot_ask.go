package web

import (
	"context"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

// Asker asks agents for something that is no run.
type Asker interface {
	// Ask has an agent work on an input once. Nothing is recorded, and it ends when ctx does. emit gets the events, from
	// RUN_STARTED to a terminal event, unless the error is one for which the agent was not asked.
	Ask(ctx context.Context, req thread.Request, emit func(event []byte) error) error
}

// maxAsked is how many agents are asked at a time.
const maxAsked = 16

// suggest asks an agent what the user might say next. It ends when the client goes, and nothing is kept of it.
func (k copilot) suggest(c echo.Context, op operation) error {
	if k.guests.leaving.Load() {
		return thread.ErrDraining
	}
	if k.Asker == nil {
		return &absence{"this server does not make suggestions"}
	}
	req, err := k.request(op)
	if err != nil {
		return err
	}
	if err := k.hasAgent(op.agent); err != nil {
		return err
	}
	input, err := req.Input(req.RunID)
	if err != nil {
		return err
	}
	if _, err := agui.ParseInput(input); err != nil { // later it would be too late to say so
		return fmt.Errorf("%w: %w", thread.ErrBadInput, err)
	}
	done, ok := k.asked.tryTake()
	if !ok {
		return errAsked
	}
	defer done()
	req.By = callerOf(c).name()
	return k.stream(c, func(st *stream) error {
		return k.Asker.Ask(st.ctx, req, func(event []byte) error {
			if event = copilotkit.Older(event); event == nil {
				return nil
			}
			return st.write(wire.SSE{Data: event}.Append(nil))
		})
	})
}
