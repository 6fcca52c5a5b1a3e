package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Server plays scripts as agents that speak AG-UI over HTTP (AG-UI 1.0, section 15.2), on a free port of the loopback
// interface. It is safe for concurrent use.
type Server struct {
	Signals
	// Record keeps what the agents emit, for [Server.Emitted]. It is set before the first run.
	Record bool

	http   *httptest.Server
	closed chan Hangup

	mu      sync.Mutex
	agents  map[string]*served
	inputs  []json.RawMessage
	emitted map[played][][]byte
}

// played names a run that was played.
type played struct{ thread, run string }

// served is one agent of a server.
type served struct {
	runs   [][]Step
	choose func(input []byte) ([]Step, error) // instead of runs, unless nil
	count  int
}

// Hangup tells of a client that closed its connection before the script was over.
type Hangup struct {
	Agent    string
	ThreadID string
	RunID    string
}

// NewServer starts a server, and closes it when the test is over: then all its gates are open, and the
// connections that are left are cut.
func NewServer(t testing.TB) *Server {
	s := &Server{closed: make(chan Hangup, 1024), agents: map[string]*served{}, emitted: map[played][][]byte{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.end()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Handle adds an agent, or replaces one. Its nth run plays the nth of the scripts, and the last of them from
// then on.
func (s *Server) Handle(name string, runs ...[]Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[name] = &served{runs: runs}
}

// HandleFunc adds an agent, or replaces one, that plays what choose makes of the input that it is asked with; an error of
// choose is answered with 400. It may be called by several goroutines at once.
func (s *Server) HandleFunc(name string, choose func(input []byte) ([]Step, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[name] = &served{choose: choose}
}

// URL returns the address of an agent.
func (s *Server) URL(name string) string { return s.http.URL + "/" + url.PathEscape(name) }

// Inputs returns the bodies of all requests to agents of the server, in order of arrival.
func (s *Server) Inputs() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inputs)
}

// Invocations returns how many requests to agents of the server there were.
func (s *Server) Invocations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inputs)
}

// Emitted returns what was emitted in a run, in order and byte for byte; what an [SSE] step sent is not among it.
func (s *Server) Emitted(thread, run string) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.emitted[played{thread, run}])
}

// recorded is emit for a run of which a record is kept.
func (s *Server) recorded(run played, emit func([]byte) error) func([]byte) error {
	if !s.Record {
		return emit
	}
	return func(event []byte) error {
		s.mu.Lock()
		s.emitted[run] = append(s.emitted[run], event)
		s.mu.Unlock()
		return emit(event)
	}
}

// Closed returns a channel that receives whenever a client closes its connection before the script is over.
func (s *Server) Closed() <-chan Hangup { return s.closed }

// errNoAgent means that there is no agent of that name.
var errNoAgent = errors.New("no such agent")

// begin notes a request, and tells what to play.
func (s *Server) begin(name string, input []byte) ([]Step, error) {
	s.mu.Lock()
	agent, ok := s.agents[name]
	if !ok {
		s.mu.Unlock()
		return nil, errNoAgent
	}
	s.inputs = append(s.inputs, input)
	agent.count++
	steps := nth(agent.runs, agent.count-1)
	s.mu.Unlock()
	if agent.choose != nil {
		return agent.choose(input)
	}
	return steps, nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	input, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	var ids struct {
		ThreadID string `json:"threadId"`
		RunID    string `json:"runId"`
	}
	if r.Method != http.MethodPost || json.Unmarshal(input, &ids) != nil {
		http.Error(w, "this is not a RunAgentInput", http.StatusBadRequest)
		return
	}
	steps, err := s.begin(name, input)
	switch {
	case errors.Is(err, errNoAgent):
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	stop := context.AfterFunc(r.Context(), func() {
		notify(s.closed, Hangup{Agent: name, ThreadID: ids.ThreadID, RunID: ids.RunID})
	})
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	p := s.play(w)
	p.names = newNames(ids.ThreadID, ids.RunID)
	p.emit = s.recorded(played{ids.ThreadID, ids.RunID}, p.emit)
	p.flush()
	defer cut()
	if err := p.perform(r.Context(), steps); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// cut makes a scripted panic cut the connection without a word in the log.
func cut() {
	switch p := recover().(type) {
	case nil:
	case panicked:
		panic(http.ErrAbortHandler)
	default:
		panic(p)
	}
}

// play returns a performance whose events go out as frames of the stream.
func (s *Server) play(w http.ResponseWriter) *play {
	out := http.NewResponseController(w)
	write := func(pieces ...string) error {
		for _, piece := range pieces {
			if _, err := io.WriteString(w, piece); err != nil {
				return fmt.Errorf("write to the client: %w", err)
			}
		}
		return nil
	}
	return &play{
		signals: &s.Signals,
		emit:    func(event []byte) error { return write("data: ", string(event), "\n\n") },
		raw: func(chunk []byte) error {
			if err := write(string(chunk)); err != nil {
				return err
			}
			return out.Flush()
		},
		flush: func() { _ = out.Flush() }, // a client that is gone shows in the next write
	}
}
