package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// leave is what becomes of the run when ctx has ended.
func (a *asking) leave(ctx context.Context, err error) error {
	if ctx.Err() == nil || a.end != nil && !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	commands := fmt.Sprintf("\n  follow it   threadcast tail %s\n  stop it     threadcast stop %s", a.target(), a.target())
	switch {
	case len(a.talk.pending) > 0 && (a.run == "" || a.end != nil):
		a.howToAnswer()
	case a.run == "":
	case a.over == nil:
		a.aside("The server had not answered yet. If it has taken the run, that goes on." + commands)
	case a.q.StopOnInterrupt:
		a.halt(ctx)
	default:
		a.aside("The run goes on without you." + commands)
	}
	return said{ErrInterrupted}
}

// halt stops the run.
func (a *asking) halt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	go func() {
		select {
		case <-a.q.Insist:
			cancel()
		case <-ctx.Done():
		}
	}()
	a.status("stopping")
	_ = a.flush()
	stopped, err := stopRun(ctx, a.follower.nodes, a.q.Thread, a.run)
	switch {
	case err != nil:
		a.aside("It is not known whether the run has stopped: " + a.c.explain(err).Error() + ".")
	case stopped.Stopped:
		a.aside("The run is stopped.")
	default:
		a.aside("The run had ended.")
	}
}

// target is the thread on a command line, with the flags that are needed.
func (a *asking) target() string { return shellWord(line(a.q.Thread)) + a.q.Flags }

// shellWord quotes a word for a shell, if that is needed.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=", r)
	}) < 0 && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
