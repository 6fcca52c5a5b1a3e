package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// wish is what the Node process asks for at the desk.
type wish struct {
	Line  string `json:"line"`
	Gate  string `json:"gate"`
	Mark  string `json:"mark"`
	RunID string `json:"runId"`
	Reset bool   `json:"reset"`
	Up    bool   `json:"up"`
	Bytes int64  `json:"bytes"`
}

// deskDeadline is how long the desk waits for what somebody else has to do.
const deskDeadline = 30 * time.Second

// serve grants a wish, which is what the path says.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	var asked wish
	answer := any(struct{}{})
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err == nil {
		answer, err = b.grant(r.URL.Path, asked)
	}
	if err != nil {
		http.Error(w, r.URL.Path+": "+err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // who asked may be gone
}

func (b *bench) grant(what string, asked wish) (any, error) {
	switch what {
	case "/release":
		b.agents.Release(asked.Gate)
	case "/reached":
		return nil, within(b.agents.Mark(asked.Mark))
	case "/hungup":
		b.mu.Lock()
		gone := b.hangup(asked.RunID)
		b.mu.Unlock()
		return nil, within(gone)
	case "/asked":
		return b.asked(asked.RunID)
	case "/restart":
		wish := restarting{asked.Gate, make(chan error)}
		b.restarts <- wish
		return nil, <-wish.done
	case "/line":
		id, l := b.newLine()
		return map[string]string{"line": id, "url": l.url()}, nil
	case "/stores":
		return nil, b.stores(asked.Up)
	default:
		return b.disturb(what, asked)
	}
	return nil, nil
}

// within waits for a signal.
func within(signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case <-time.After(deskDeadline):
		return fmt.Errorf("not within %s", deskDeadline)
	}
}

// waitUntil waits until ok returns true.
func waitUntil(ok func() bool) error {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for late := time.After(deskDeadline); !ok(); {
		select {
		case <-again.C:
		case <-late:
			return fmt.Errorf("not within %s", deskDeadline)
		}
	}
	return nil
}

// newLine starts a line to the node, or to what stands before several, and gives it a name.
func (b *bench) newLine() (string, *line) {
	target := b.all()[0].addr
	if len(b.all()) > 1 {
		target = beforeNodes(b.t, b.all)
	}
	l := newLine(b.t, target)
	b.mu.Lock()
	defer b.mu.Unlock()
	id := strconv.Itoa(len(b.lines) + 1)
	b.lines[id] = l
	return id, l
}

// disturb does something to a line.
func (b *bench) disturb(what string, asked wish) (any, error) {
	b.mu.Lock()
	l := b.lines[asked.Line]
	b.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("there is no line %q", asked.Line)
	}
	switch what {
	case "/cut":
		return map[string]int{"cut": l.cut(asked.Reset)}, nil
	case "/hold":
		way := downward
		if asked.Up {
			way = upward
		}
		l.hold(way)
	case "/swallowed":
		return nil, waitUntil(func() bool { return l.swallowed() >= asked.Bytes })
	case "/down":
		l.breakDown()
	case "/up":
		l.mend()
	default:
		return nil, errors.New("that is not to be had here")
	}
	return nil, nil
}

// asked is the input with which the agent was asked for a run.
func (b *bench) asked(run string) (json.RawMessage, error) {
	for _, input := range b.agents.Inputs() {
		var ids struct {
			RunID string `json:"runId"`
		}
		if json.Unmarshal(input, &ids) == nil && ids.RunID == run {
			return input, nil
		}
	}
	return nil, fmt.Errorf("the agent was not asked for run %q", run)
}

// restart ends every node in an orderly way and starts it again, one after the other. As soon as the first was told to end,
// the gate is opened.
func (b *bench) restart(gate string) error {
	for i, n := range b.all() {
		n.term()
		if i == 0 {
			b.agents.Release(gate)
		}
		if code := n.wait(patience); code != 0 {
			return fmt.Errorf("the node ended with code %d", code)
		}
		next := n.restart()
		b.mu.Lock()
		b.nodes[i] = next
		b.mu.Unlock()
	}
	return nil
}
