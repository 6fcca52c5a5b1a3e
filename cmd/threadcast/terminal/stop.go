package terminal

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// stopped is the answer to a stop (docs/protocol.md, section 4.2).
type stopped struct {
	Stopped bool   `json:"stopped"`
	RunID   string `json:"runId"`
}

// stopRun stops a run, or whichever is active, if run is empty.
func stopRun(ctx context.Context, nodes *client.Nodes, id, run string) (s stopped, err error) {
	var raw json.RawMessage
	if raw, err = askStop(ctx, nodes, id, run); err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

func askStop(ctx context.Context, nodes *client.Nodes, id, run string) (raw json.RawMessage, err error) {
	body := map[string]string{}
	if run != "" {
		body["runId"] = run
	}
	err = nodes.Call(ctx, client.Request{Method: http.MethodPost, Path: client.ThreadPath(id) + "/stop", Body: body}, &raw)
	return raw, err
}

// Stop stops a run of a thread, or whichever is active, if run is empty; if none is, and the thread waits for an answer, that
// is cancelled. It is no error if there is nothing to be stopped. For the errors see [ExitCode].
func Stop(ctx context.Context, c Config, id, run string) error {
	nodes := c.nodes()
	defer nodes.Close()
	s := newScreen(c.Output, false)
	raw, err := askStop(ctx, nodes, id, run)
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		lines{s}.raw(raw)
		return s.flush()
	}
	var answer stopped
	if err := json.Unmarshal(raw, &answer); err != nil {
		return c.explain(err)
	}
	switch {
	case answer.Stopped:
		s.note("Stopped run " + line(answer.RunID) + ".")
	case run != "":
		s.note("Run " + line(run) + " is not active.")
	default:
		s.note("Nothing is running.")
	}
	return s.flush()
}
