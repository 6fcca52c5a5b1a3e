package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// invoke runs the agent to its end and concludes the run if the agent did not.
func (e *intake) invoke(log *slog.Logger) {
	truncated := failure("stream_truncated", "The agent's answer broke off before its end.", errOver)
	defer e.conclude(truncated) // also when the agent ends its goroutine
	if e.order.over != nil {
		return // it was concluded before it began
	}
	in := Input{ThreadID: e.run.Thread, RunID: e.run.ID, JSON: e.order.raw}
	err := protect(func() error { return e.r.agents[e.run.Agent].Run(e.ctx, in, e.emit) })
	var shown *AgentError
	var crash *panicError
	switch {
	case errors.As(err, &crash):
		log.Error("agent panicked", "err", err, "stack", string(crash.stack))
		e.conclude(failure("agent_panicked", "The agent broke down.", err))
	case e.ctx.Err() != nil:
		// It has been concluded.
	case err == nil:
		log.Warn("agent ended without a terminal event")
	case errors.As(err, &shown):
		log.Warn("agent failed", "code", shown.Code, "err", errors.Join(err, shown.Err))
		e.conclude(failure(shown.Code, shown.Message, err))
	default:
		log.Warn("agent failed", "err", err)
		e.conclude(failure("agent_failed", "The agent failed.", err))
	}
}

// await waits for the agent to return. One that does not is abandoned, and counted for as long as it runs.
func (e *intake) await(returned <-chan struct{}, log *slog.Logger) {
	t := time.NewTimer(e.r.cfg.StopGrace)
	defer t.Stop()
	select {
	case <-returned:
		return
	case <-t.C:
	}
	e.r.abandoned.Add(1)
	log.Warn("agent ignores that it was cancelled; abandoned",
		"grace", e.r.cfg.StopGrace.String(), "cause", context.Cause(e.ctx))
	go func() {
		<-returned
		e.r.abandoned.Add(-1)
	}()
}

// panicError is a panic as an error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

func protect(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return fn()
}
