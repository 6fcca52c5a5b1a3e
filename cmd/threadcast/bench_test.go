package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// bench is a Node process with unmodified clients, and what it needs around it: nodes to use, agents that do as the messages
// of their users say, lines that fail as a network does, and a desk at which it asks for all that.
type bench struct {
	t      *testing.T
	agents *agenttest.Server
	stores func(back bool) error // takes them away, and brings them back
	desk   string
	url    string // of the Node process

	restarts chan restarting // what is asked for at the desk; see [bench.finish]
	slots    chan struct{}   // of statements that are tried at once

	mu    sync.Mutex
	nodes []*node
	lines map[string]*line
	gone  map[string]chan struct{} // by run: closed when its agent was hung up on
}

// restarting is the wish that the nodes are restarted.
type restarting struct {
	gate string // that is opened when the first of them was told to end
	done chan error
}

// benchAgents are what the agents are called. They are one and the same.
var benchAgents = []string{"default", "other"}

// newBench starts a bench with the client of that name, on nodes that open starts with the flags that it is given.
func newBench(t *testing.T, client string, open func(flags ...string) []*node) *bench {
	t.Helper()
	b := &bench{
		t: t, agents: agenttest.NewServer(t), restarts: make(chan restarting), slots: make(chan struct{}, 8),
		lines: map[string]*line{}, gone: map[string]chan struct{}{},
	}
	b.agents.HandleFunc("script", scripted)
	flags := []string{"--user-header", "X-User", "--ping", "1s"}
	for _, name := range benchAgents {
		flags = append(flags, "--agent", name+"=agui:"+b.agents.URL("script"))
	}
	b.nodes = open(flags...)
	b.noteHangups()
	desk := httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(func() {
		desk.CloseClientConnections()
		desk.Close()
	})
	b.desk = desk.URL
	sc := runScript(t, "bench/main.mjs", client, b.desk)
	b.url = sc.await("listening").URL
	t.Cleanup(func() {
		select {
		case f := <-sc.facts:
			t.Errorf("the bench reports %s: %s", f.Fact, f.Why)
		default:
		}
	})
	return b
}

// scripted reads what to play from the input: its forwardedProps.script, or else the last message of the user.
func scripted(input []byte) ([]agenttest.Step, error) {
	var in struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		ForwardedProps struct {
			Script *string `json:"script"`
		} `json:"forwardedProps"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	script := in.ForwardedProps.Script
	for i := len(in.Messages) - 1; i >= 0 && script == nil; i-- {
		if m := in.Messages[i]; m.Role == "user" {
			if err := json.Unmarshal(m.Content, &script); err != nil {
				return nil, err
			}
		}
	}
	if script == nil {
		return nil, errors.New("nobody says what to do")
	}
	return agenttest.ParseSteps(json.RawMessage(*script))
}

// all are the nodes that there are now.
func (b *bench) all() []*node {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.nodes)
}

// noteHangups keeps which agents were hung up on.
func (b *bench) noteHangups() {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case h := <-b.agents.Closed():
				b.mu.Lock()
				if gone := b.hangup(h.RunID); !isClosed(gone) {
					close(gone)
				}
				b.mu.Unlock()
			case <-over:
				return
			}
		}
	}()
	b.t.Cleanup(func() { close(over); <-done })
}

// hangup is closed when the agent of a run was hung up on. The caller holds mu.
func (b *bench) hangup(run string) chan struct{} {
	if b.gone[run] == nil {
		b.gone[run] = make(chan struct{})
	}
	return b.gone[run]
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// tried is what the Node process tells of a statement.
type tried struct {
	Error    string             `json:"error"`    // empty if it holds
	Measured map[string]float64 `json:"measured"` // in milliseconds, unless the name says something else
	Kills    []kill             `json:"kills"`
	Version  string             `json:"version"` // of phoenix
}

// attempt is a statement that the Node process is trying.
type attempt struct {
	statement
	over chan tried
}

// begin has the Node process try a statement, over a line of its own, as soon as there are not too many under way.
func (b *bench) begin(ctx context.Context, s statement) *attempt {
	a := &attempt{statement: s, over: make(chan tried, 1)}
	go func() {
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
		said, err := b.ask(ctx, s.number)
		if err != nil {
			said.Error = err.Error()
		}
		a.over <- said
	}()
	return a
}

// finish waits for what comes of an attempt.
func (b *bench) finish(t testing.TB, a *attempt) tried {
	t.Helper()
	for {
		select {
		case r := <-b.restarts:
			r.done <- b.restart(r.gate)
		case said := <-a.over:
			if said.Error != "" {
				t.Error(said.Error)
			}
			if len(said.Measured) > 0 {
				measured(t, "%s", figures(said.Measured))
			}
			return said
		}
	}
}

// try has the Node process try a statement, by its number, and waits for what comes of it.
func (b *bench) try(t testing.TB, number string) tried {
	t.Helper()
	return b.finish(t, b.begin(t.Context(), statement{number: number}))
}

// ask asks the Node process to try a statement.
func (b *bench) ask(ctx context.Context, statement string) (answer tried, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, l := b.newLine()
	body, err := json.Marshal(map[string]string{"statement": statement, "line": id, "url": l.url()})
	if err != nil {
		return answer, err
	}
	said, err := postJSON(ctx, b.url, body)
	if err == nil {
		err = json.Unmarshal(said, &answer)
	}
	return answer, err
}

// kill is one of a page's connection.
type kill struct {
	Mode  string  `json:"mode"`
	Ms    float64 `json:"ms"`    // until its topic was joined again
	Fresh bool    `json:"fresh"` // whether that took new credentials
}

// figures writes measurements for people.
func figures(of map[string]float64) string {
	var parts []string
	for name, value := range of {
		parts = append(parts, fmt.Sprintf("%s %.1f", name, value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func postJSON(ctx context.Context, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := unhurried.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("POST %s: %s %.500s", url, resp.Status, said)
	}
	return said, err
}

// unhurried is for requests that are answered when something has happened.
var unhurried = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Minute}
