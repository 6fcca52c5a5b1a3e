package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agui"
	"github.com/threadcast/threadcast/static"
	"github.com/threadcast/threadcast/web"
)

// What the parts need of each other, checked in the one place that sees them all.
var (
	_ hub.Log        = (*sqllog.Log)(nil)
	_ hub.History    = (*history.History)(nil)
	_ runner.Log     = (*sqllog.Log)(nil)
	_ runner.Leaser  = (*sqllog.Log)(nil)
	_ runner.Owners  = (*sqllog.Log)(nil)
	_ runner.History = (*history.History)(nil)
	_ runner.Records = (*history.History)(nil)
	_ liveLog        = (*redislog.Log)(nil)
	_ web.Runs       = (*runner.Runner)(nil)
	_ web.Asker      = (*runner.Runner)(nil)
	_ web.Directory  = (*history.History)(nil)
)

// ending is how much of the grace period is kept for ending the runs that are left.
const ending = 3 * time.Second

// app is the parts of a process, in the order in which they are made; close ends them the other way round.
type app struct {
	cfg    config
	log    *slog.Logger
	stores *stores
	agents *agents
	runner *runner.Runner
	hub    *hub.Hub
	web    *web.Server
}

// serve runs the server until p.soft is done, and then ends it in order.
func serve(p process, cfg config) error {
	cfg.Node = cmp.Or(cfg.Node, hostname())
	a := &app{cfg: cfg, log: newLogger(p.stderr, cfg)}
	// The port first: what fails there shall leave no file behind. Who connects already waits.
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return listenError(cfg.Listen, err)
	}
	if err := a.open(p.soft, p.env); err != nil {
		return errors.Join(err, a.close(), listener.Close())
	}
	a.welcome(p.stdout, listener.Addr())
	return errors.Join(a.serve(p, listener), a.close())
}

func newLogger(w io.Writer, cfg config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.LogLevel}
	log := slog.New(slog.NewTextHandler(w, opts))
	if cfg.LogFormat == "json" {
		log = slog.New(slog.NewJSONHandler(w, opts))
	}
	if cfg.Redis != "" {
		log = log.With("node", cfg.Node) // there may be others
	}
	return log
}

func listenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another process; choose another port with --listen, or 127.0.0.1:0 for any", addr)
	}
	return fmt.Errorf("listen on %s: %w", addr, err)
}

// open makes the parts and finishes what an earlier process left.
func (a *app) open(ctx context.Context, env func(string) (string, bool)) (err error) {
	if a.agents, err = newAgents(a.cfg.Agents, env, max(a.cfg.Run.MaxEventBytes, a.cfg.Run.MaxResultBytes)); err != nil {
		return err
	}
	if a.stores, err = openStores(ctx, a.cfg, a.log); err != nil {
		return err
	}
	live, past := a.stores.live, a.stores.past
	a.hub = hub.New(live, past, hub.Config{Compact: runner.Compact, Damaged: damaged})
	a.stores.lists(a.hub)
	stores := runner.Stores{
		Log: live, Heads: live, Leaser: live, Owners: live,
		History: past, Records: past, Backlog: past, Line: past, Story: past, Results: past, Board: a.stores.board(a.hub),
	}
	run := a.cfg.Run
	run.Node, run.Logger = a.cfg.Node, a.log
	a.runner = runner.New(stores, a.agents.byID, a.agents.list[0].ID, run)
	parts := web.Parts{
		Hub: a.hub, Runs: a.runner, Directory: past, Agents: a.agents.list,
		NoPage: []byte(static.NotBuilt), Ready: a.ready, Asker: a.runner,
		Identify: identify(a.cfg.UserHeader),
	}
	if parts.Secret, err = past.Secret(ctx); err != nil {
		return err
	}
	if a.stores.shared != nil {
		parts.Tickets = a.stores.shared.Tickets()
	}
	if page, built := static.FS(); built {
		parts.Page = page
	}
	site := a.cfg.Web
	site.MaxFrame, site.Pong, site.KeepAlive, site.Logger = int64(a.cfg.MaxFrame), site.Ping, min(site.Ping, 15*time.Second), a.log
	a.web = web.New(parts, site)
	return a.reclaim(ctx)
}

// reclaim ends what an earlier process left unfinished, before anybody can look at it.
func (a *app) reclaim(ctx context.Context) error {
	for {
		n, err := a.runner.Reclaim(ctx)
		if err != nil {
			a.log.Error("some runs of an earlier process could not be finished; tried again later", "err", err)
			return nil
		}
		if n == 0 {
			return ctx.Err()
		}
	}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	return name
}

// damaged is what viewers see of a run whose stored events cannot be read.
func damaged(r thread.Run) []thread.Event {
	message := "The stored events of this run are damaged and cannot be shown."
	started, err := agui.RunStarted(fmt.Appendf(nil, `{"threadId":%q,"runId":%q,"messages":[]}`, r.Thread, r.ID))
	if err != nil {
		return nil
	}
	return []thread.Event{
		{First: 1, Last: 1, Data: started},
		{First: 2, Last: max(2, r.LastSeq), Data: agui.RunError(message, "history_damaged")},
	}
}

// ready tells whether the stores can be used.
func (a *app) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return a.stores.healthy(ctx)
}

// welcome prints what a person needs to know first.
func (a *app) welcome(w io.Writer, addr net.Addr) {
	fmt.Fprintf(w, "threadcast %s, %s\n", currentVersion(), a.stores.mode)
	fmt.Fprintf(w, "  open    http://%s/\n", addr)
	label := "data  "
	for _, where := range a.stores.where {
		fmt.Fprintf(w, "  %s  %s\n", label, where)
		label = "      "
	}
	for i, where := range a.agents.where {
		label = "      "
		if i == 0 {
			label = "agents"
			where += "  (default)"
		}
		fmt.Fprintf(w, "  %s  %s\n", label, where)
	}
	if _, built := static.FS(); !built {
		fmt.Fprintln(w, "  note    the page has not been built; `make static` builds it")
	}
	for _, risk := range a.stores.risks {
		fmt.Fprintln(w, "  note   ", risk)
	}
	if a.cfg.Insecure {
		fmt.Fprintln(w, "  note    --insecure: whoever reaches this address can read, run, stop and delete everything")
	}
}

// serve serves until p.soft is done or serving fails, and then ends runs and sockets within the grace period.
func (a *app) serve(p process, listener net.Listener) error {
	server := &http.Server{
		Handler:           guard(a.web.Handler(), a.cfg, a.log),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute, // a socket is free of both: taking a connection over clears its deadlines
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	watch, stopWatch := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.runner.Watch(watch)
	}()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve: %w", err)
	case <-p.soft.Done():
	}
	stopWatch()
	<-watched
	return errors.Join(err, a.drain(p, server))
}

// drain is the orderly goodbye: no new work, sockets told to come back, runs given time, then ended and saved.
func (a *app) drain(p process, server *http.Server) error {
	soft, cancelSoft := context.WithTimeout(p.hard, a.cfg.Grace-ending)
	defer cancelSoft()
	hard, cancelHard := context.WithTimeout(context.Background(), a.cfg.Grace-ending/3)
	defer cancelHard()
	n := a.runner.Active()
	if n > 0 {
		fmt.Fprintf(p.stdout, "waiting up to %s for %d active run(s); the same signal (Ctrl-C) again ends them now\n",
			a.cfg.Grace-ending, n)
	}
	a.log.Info("shutting down", "runs", n, "sockets", a.web.Sessions(), "grace", a.cfg.Grace.String())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		bounded, cancel := context.WithTimeout(soft, 5*time.Second)
		defer cancel()
		a.web.Drain(bounded)
	}()
	ended, err := a.runner.Drain(soft, hard)
	<-gone
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if shut := server.Shutdown(closing); shut != nil {
		_ = server.Close()
	}
	a.log.Info("shut down", "finished", n-ended, "ended", ended)
	return err
}

// close ends the parts that hold something, the last made first.
func (a *app) close() error {
	var errs []error
	if a.hub != nil {
		a.hub.Close()
	}
	if a.agents != nil {
		a.agents.Close()
	}
	if a.stores != nil {
		errs = append(errs, a.stores.close())
	}
	return errors.Join(errs...)
}
