package web

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agui"
)

// Runs is what web needs of the runner.
type Runs interface {
	// Run accepts a run: when it returns without an error, the run is recorded.
	Run(ctx context.Context, req thread.Request) (thread.Accepted, error)
	// Stop ends the thread's active run, the one named or any; by says who wants it.
	Stop(ctx context.Context, id thread.ID, run thread.RunID, by string) (thread.Stopped, error)
	// Status tells how a thread stands; one that never was is idle.
	Status(ctx context.Context, id thread.ID) (thread.Status, error)
	// Delete stops the thread's run and removes the thread.
	Delete(ctx context.Context, id thread.ID, by string) error
}

// Directory is what web needs of the history beyond what the hub reads.
type Directory interface {
	// Threads returns a page of the threads of page.Owner, latest activity first, and where the next one begins.
	Threads(ctx context.Context, page thread.Page) ([]thread.Thread, string, error)
	// Runs returns up to limit runs with numbers greater than after, without their events, in order.
	Runs(ctx context.Context, id thread.ID, after uint64, limit int) ([]thread.Run, error)
	// Thread returns what is known of a thread, or [thread.ErrNotFound].
	Thread(ctx context.Context, id thread.ID) (thread.Thread, error)
	RunDirectory
	ThreadEditor
}

// ThreadEditor changes how threads stand in lists.
type ThreadEditor interface {
	// Edit changes what edit says, and returns the thread as it is then. What is so already is no change. [thread.ErrNotFound]
	// if there is no such thread; [thread.ErrBadInput] if it cannot have the name.
	Edit(ctx context.Context, id thread.ID, edit thread.Edit) (thread.Thread, error)
}

// RunDirectory is what web needs of the history about one run.
type RunDirectory interface {
	// FindRun returns a run's particulars without its events, or [thread.ErrNotFound].
	FindRun(ctx context.Context, id thread.ID, run thread.RunID) (thread.Run, error)
	// Result returns what a tool answered, where that was kept apart; or [thread.ErrNotFound].
	Result(ctx context.Context, id thread.ID, run thread.RunID, place int) (thread.Result, error)
}

// Agent is an agent as clients see it.
type Agent struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Default bool   `json:"default"`
}

// Parts are what a server serves.
type Parts struct {
	Hub       *hub.Hub
	Runs      Runs
	Directory Directory
	Agents    []Agent
	Page      fs.FS                       // the built page, with index.html; nil for none
	NoPage    []byte                      // HTML shown in its place
	Ready     func(context.Context) error // whether the stores answer; nil for always
	// Identify tells who makes a request; nil where nobody has to say who they are. Its error is answered as it is.
	Identify func(*http.Request) (thread.User, error)
	Asker    Asker // makes suggestions for CopilotKit's clients; nil for none
	// Secret signs the tickets of CopilotKit's sockets; the same on all nodes. Default a random one of this process.
	Secret []byte
	// Tickets notes which of them have been used, on any node. Default this process alone, which refuses those of others.
	Tickets Tickets
}

// Config holds what a server may be told. The zero value of a field takes its default.
type Config struct {
	// MaxFrame bounds a frame or request body of a client, in bytes. Default 4 MiB.
	MaxFrame int64
	// MaxTopics bounds the topics joined on one socket. Default 100.
	MaxTopics int
	// Ping is the time between two pings of the server, Pong for how long an answer may take. Defaults 20 s each.
	Ping, Pong time.Duration
	// WriteTimeout is for how long a client may not take a write before its socket is closed. Default 10 s.
	WriteTimeout time.Duration
	// KeepAlive is for how long a stream of server-sent events may be silent before a comment keeps it alive. Default 15 s.
	KeepAlive time.Duration
	// CopilotPath is where CopilotKit's clients find the server; the same with -sse behind it is for clients without sockets.
	// Default "/api/copilotkit".
	CopilotPath string
	// Origins are those of pages, besides the server's own, that may use it: scheme://host:port without a default port, in
	// lower case, as browsers say them; "*" stands for all of them, but does not let credentials of browsers through.
	Origins []string
	// PublicURL is how clients reach the server, such as "https://chat.example". Default is what each of them called it.
	PublicURL string
	// ViewBytes bounds what the messages, or the state, of a thread may take in memory while they are made for an answer
	// (see [agui.Reducer]); no more than four are made at a time. Default 128 MiB.
	ViewBytes int
	// Logger gets what operators should know. Default [slog.Default].
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxFrame = cmp.Or(c.MaxFrame, 4<<20)
	c.MaxTopics = cmp.Or(c.MaxTopics, 100)
	c.Ping = cmp.Or(c.Ping, 20*time.Second)
	c.Pong = cmp.Or(c.Pong, 20*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.CopilotPath = cmp.Or(c.CopilotPath, "/api/copilotkit")
	c.KeepAlive = cmp.Or(c.KeepAlive, 15*time.Second)
	c.ViewBytes = cmp.Or(c.ViewBytes, agui.DefaultMaxBytes)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Server serves sockets and HTTP. Mount it with [Server.Register] or use [Server.Handler]; end it with [Server.Drain].
type Server struct {
	Parts
	cfg       Config
	guests    guests
	origins   origins
	tickets   issuer
	pipelines pipelines
	following followedLists
	views     places      // for answers that are being made of a thread's events,
	snapshots places      // for those that sockets need in between,
	asked     places      // and for agents that are being asked
	unready   atomic.Bool // what /readyz answered last
}

// New returns a server. It starts nothing.
func New(parts Parts, cfg Config) *Server {
	cfg = cfg.withDefaults()
	return &Server{
		Parts: parts, cfg: cfg, origins: origins{allowed: cfg.Origins, log: cfg.Logger}, tickets: newIssuer(parts.Secret, parts.Tickets),
		views: make(places, maxViews), snapshots: make(places, maxViews), asked: make(places, maxAsked),
		pipelines: pipelines{byNonce: map[string]*pipeline{}},
	}
}

// Handler returns the server as a handler of its own.
func (s *Server) Handler() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	s.Register(e)
	return e
}

// Sessions returns how many sockets are open.
func (s *Server) Sessions() int { return s.guests.sockets() }

// Drain makes the server not ready, refuses new sockets and streams, and tells the clients of all others to come back: it
// closes sockets with code 1012, and cuts the connections of streams. When ctx is done it cuts what is left. It
// returns when all are gone.
func (s *Server) Drain(ctx context.Context) { s.guests.showOut(ctx) }

// report logs a problem that an operator should know of.
func (s *Server) report(p Problem, what string, err error) {
	if p.internal() {
		s.cfg.Logger.Error("request failed", "what", what, "code", p.Code, "err", err)
	}
}
