package terminal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// Config is what all commands have in common.
type Config struct {
	// Server is the URL of a node, or of what stands before several, such as "http://127.0.0.1:8080".
	Server string
	// Token, if it is not empty, says who calls.
	Token string
	// JSON asks for one JSON object a line in place of text, Full for values that are not shortened.
	JSON, Full bool
	Output
}

const (
	// patience is for how long a request is repeated that the server cannot answer now.
	patience = 15 * time.Second
	// longest bounds one try of a request: a stop may take half a minute.
	longest = time.Minute
)

func (c Config) nodes() *client.Nodes {
	return client.New(client.Options{URLs: []string{c.Server}, Token: c.Token, Patience: patience, Timeout: longest, Hasty: true})
}

// The ends of a command that are neither success nor a failure of the server.
var (
	// ErrRun says that the run did not finish: it failed, or somebody stopped it.
	ErrRun = errors.New("the run did not finish")
	// ErrWaiting says that the run waits for an answer.
	ErrWaiting = errors.New("the run waits for an answer")
	// ErrInterrupted says that the person at the terminal did not wait for the end of the run.
	ErrInterrupted = errors.New("interrupted")
)

// ExitCode is the exit code of a command that ended with err; docs/terminal.md lists them.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, client.ErrUnreachable):
		return 3
	case errors.Is(err, ErrWaiting):
		return 4
	case errors.Is(err, ErrInterrupted):
		return 130 // as a shell has it for what Ctrl-C ended
	}
	return 1
}

// said is an error of which the person at the terminal knows.
type said struct{ error }

func (s said) Unwrap() error { return s.error }

// Said tells whether what err says has been shown.
func Said(err error) bool { return errors.As(err, new(said)) }

// failure is an error in words for the person at the terminal, fit for it.
type failure struct {
	words string
	err   error
}

func (f failure) Error() string { return f.words }
func (f failure) Unwrap() error { return f.err }

// sorry is a failure that is none of the server.
func sorry(format string, args ...any) error {
	return failure{Inert(fmt.Sprintf(format, args...)), nil}
}

// explain puts an error in words.
func (c Config) explain(err error) error {
	if err == nil || errors.Is(err, ErrRun) || errors.Is(err, ErrWaiting) || errors.Is(err, ErrInterrupted) {
		return err
	}
	words := err.Error()
	var refused *client.Refusal
	var network *net.OpError
	switch {
	case errors.As(err, &refused):
		words = c.refusal(refused)
	case errors.Is(err, client.ErrUnreachable) && errors.As(err, &network):
		words = fmt.Sprintf("cannot reach %s: %s", c.Server, network.Err)
	case errors.Is(err, client.ErrUnreachable) && errors.Is(err, context.DeadlineExceeded):
		words = fmt.Sprintf("cannot reach %s: it does not answer in time", c.Server)
	}
	return failure{Inert(words), err}
}

func (c Config) refusal(r *client.Refusal) string {
	switch {
	case r.Code == "thread_busy":
		return r.Message + "; --on-busy enqueue, interrupt or replace says what to do then"
	case r.Code != "":
		return strings.TrimSuffix(r.Message, ".") + " (" + r.Code + ")"
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		return fmt.Sprintf("%s does not let you in (it answered %d); --token says who you are", c.Server, r.Status)
	}
	return fmt.Sprintf("%s does not answer as threadcast does: it %s", c.Server, r)
}
