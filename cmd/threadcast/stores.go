package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/runner"
)

// liveLog is where runs are while they run, and who runs them.
type liveLog interface {
	hub.Log
	runner.Log
	runner.Leaser
	runner.Owners
}

// stores are what a process keeps things in. They are opened by embedded or cluster, and closed the other way round.
type stores struct {
	live  liveLog
	past  *history.History
	mode  string   // for people: what kind of a node this is
	where []string // for people: what is kept where
	ends  []func() error
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
	s.mode = "one node with one file"
	s.where = []string{file.Path() + "  (live log, leases and history)"}
	return nil
}

// cluster opens the live log in Redis, and beside it a history: in Postgres, which any number of nodes share, or in a file,
// which one node has for itself.
func (s *stores) cluster(ctx context.Context, cfg config, log *slog.Logger) error {
	if err := s.redis(cfg); err != nil {
		return err
	}
	if cfg.postgres() {
		s.mode = "one node of a cluster"
		return s.postgres(ctx, cfg, log)
	}
	file, err := s.file(ctx, cfg, log)
	if err != nil {
		return err
	}
	s.mode = "one node with Redis and a file"
	s.where = append(s.where, file.Path()+"  (history)")
	return nil
}

// redis opens the live log in Redis.
func (s *stores) redis(config) error {
	return usagef("--redis: this version has no live log in Redis; leave --redis out, and keep everything in a file")
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

// postgres opens the history in Postgres.
func (s *stores) postgres(ctx context.Context, cfg config, log *slog.Logger) error {
	pool, err := postgres.Open(ctx, cfg.Database, postgres.Options{})
	if err != nil {
		return err
	}
	s.ends = append(s.ends, pool.Close)
	s.where = append(s.where, withoutSecrets(cfg.Database)+"  (history)")
	s.past, err = history.NewPostgres(ctx, pool, history.Options{Logger: log})
	return err
}

// close closes them, the last opened first.
func (s *stores) close() error {
	var errs []error
	for i := len(s.ends) - 1; i >= 0; i-- {
		errs = append(errs, s.ends[i]())
	}
	return errors.Join(errs...)
}
