package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/runner"
)

// cluster opens the live log in Redis, and beside it a history: in Postgres, which any number of nodes share, or in a file,
// which one node has for itself.
func (s *stores) cluster(ctx context.Context, cfg config, log *slog.Logger) error {
	if err := s.redis(ctx, cfg, log); err != nil {
		return err
	}
	if cfg.postgres() {
		s.mode = "one node of a cluster"
		if err := s.postgres(ctx, cfg, log); err != nil {
			return err
		}
	} else {
		file, err := s.file(ctx, cfg, log)
		if err != nil {
			return err
		}
		s.mode = "one node with Redis and a file"
		s.where = append(s.where, file.Path()+"  (history)")
	}
	return s.claim(ctx)
}

// claim sees to it that Redis and the history belong together.
func (s *stores) claim(ctx context.Context) error {
	installation, err := s.past.Installation(ctx)
	if err == nil {
		err = s.shared.Claim(ctx, installation)
	}
	return err
}

// redis opens the live log in Redis, and looks at how that is set up.
func (s *stores) redis(ctx context.Context, cfg config, log *slog.Logger) error {
	dial, err := redislog.ParseURL(cfg.Redis)
	if err != nil {
		return usageError{fmt.Errorf("--redis: %w", err)}
	}
	live, err := redislog.New(ctx, dial, redislog.Options{
		Prefix: cfg.RedisPrefix, Active: cfg.RedisActive, Lock: cfg.RedisLock, Logger: log,
	})
	if err != nil {
		return err
	}
	s.live, s.shared, s.ends, s.well = live, live, append(s.ends, live.Close), append(s.well, live.Healthy)
	// What is told goes to all nodes, and comes from there to this node's hub.
	s.board = func(h *hub.Hub) runner.Board {
		live.Listen(h)
		return live
	}
	s.lists = func(h *hub.Hub) {
		live.ListenLists(h)
		s.past.Listen(live.Listed)
	}
	s.where = append(s.where, withoutSecrets(cfg.Redis)+"  (live log and leases)")
	risks, err := live.Check(ctx)
	if err != nil {
		log.Warn("it is not known how Redis is set up", "err", err)
	}
	for _, risk := range risks {
		log.Warn("Redis is set up so that runs are at risk", "risk", string(risk))
		s.risks = append(s.risks, string(risk))
	}
	return nil
}

// postgres opens the history in Postgres.
func (s *stores) postgres(ctx context.Context, cfg config, log *slog.Logger) error {
	pool, err := postgres.Open(ctx, cfg.Database, postgres.Options{})
	if err != nil {
		return err
	}
	s.ends = append(s.ends, pool.Close)
	s.well = append(s.well, func(ctx context.Context) error {
		if err := pool.PingContext(ctx); err != nil {
			return fmt.Errorf("reach Postgres: %w", err)
		}
		return nil
	})
	s.where = append(s.where, withoutSecrets(cfg.Database)+"  (history)")
	s.past, err = history.NewPostgres(ctx, pool, history.Options{Logger: log})
	return err
}
