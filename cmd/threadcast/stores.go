package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
)

// liveLog is where runs are while they run, and who runs them.
type liveLog interface {
	hub.Log
	runner.Log
	runner.Heads
	runner.Leaser
	runner.Owners
}

// stores are what a process keeps things in. They are opened by embedded or cluster, and closed the other way round.
type stores struct {
	live   liveLog
	shared *redislog.Log // live, if that is in Redis
	past   *history.History
	board  func(*hub.Hub) runner.Board
	lists  func(*hub.Hub) // has the hub told of what changes in lists
	mode   string         // for people: what kind of a node this is
	where  []string       // for people: what is kept where
	risks  []string       // for people: what puts runs at risk
	well   []func(context.Context) error
	ends   []func() error
}

// openStores opens those of the mode that cfg asks for. It returns what there is to close even with an error.
func openStores(ctx context.Context, cfg config, log *slog.Logger) (*stores, error) {
	s := &stores{}
	if cfg.Redis == "" {
		return s, s.embedded(ctx, cfg, log)
	}
	return s, s.cluster(ctx, cfg, log)
}

// embedded opens one file for everything, which one node has for itself.
func (s *stores) embedded(ctx context.Context, cfg config, log *slog.Logger) error {
	file, err := s.file(ctx, cfg, log)
	if err != nil {
		return err
	}
	live, err := sqllog.New(ctx, file.Writer(), file.Reader(), sqllog.Options{Logger: log})
	if err != nil {
		return err
	}
	s.live, s.ends = live, append(s.ends, live.Close)
	s.well = append(s.well, s.writes)
	s.board = func(h *hub.Hub) runner.Board { return h }
	s.lists = func(h *hub.Hub) { s.past.Listen(h.Listed) }
	s.mode = "one node with one file"
	s.where = []string{file.Path() + "  (live log, leases and history)"}
	return nil
}

// file opens the SQLite file, and the history in it.
func (s *stores) file(ctx context.Context, cfg config, log *slog.Logger) (*sqlitefile.File, error) {
	file, err := sqlitefile.Open(ctx, cfg.Database, sqlitefile.Options{})
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, file.Close)
	s.past, err = history.NewSQLite(file.Writer(), file.Reader(), history.Options{Logger: log})
	return file, err
}

// probe is a thread that no client can name.
const probe thread.ID = "\x01readyz"

// writes tells whether the live log takes writes, by way of one that goes where events go.
func (s *stores) writes(ctx context.Context) error {
	lease, err := s.live.Acquire(ctx, thread.Claim{Thread: probe, Owner: "readyz"}, time.Minute)
	if errors.Is(err, thread.ErrRunning) {
		return nil // another probe is under way
	}
	if err != nil {
		return err
	}
	return s.live.Release(ctx, lease)
}

// healthy tells whether all of them can be used.
func (s *stores) healthy(ctx context.Context) error {
	for _, well := range s.well {
		if err := well(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close closes them, the last opened first.
func (s *stores) close() error {
	var errs []error
	for i := len(s.ends) - 1; i >= 0; i-- {
		errs = append(errs, s.ends[i]())
	}
	return errors.Join(errs...)
}
