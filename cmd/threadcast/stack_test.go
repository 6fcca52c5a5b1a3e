package main_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libtnb/sqlite"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/logtest"
	"github.com/threadcast/threadcast/persistence/memlog"
	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/runner"
)

// logKinds are the live logs that there are. A new one is a row here, and every test of a stack runs on it.
var logKinds = []struct {
	name string
	open func(t testing.TB, d database) logtest.Log
}{
	{"memlog", func(testing.TB, database) logtest.Log { return memlog.New() }},
	{"sqllog", func(t testing.TB, d database) logtest.Log {
		if d.file == nil { // of a database that it cannot share
			d.file = openFile(t, t.TempDir())
		}
		log, err := sqllog.New(t.Context(), d.file.Writer(), d.file.Reader(), sqllog.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}},
	{"redislog", openRedis},
}

// openRedis returns a log on a Redis server of its own.
func openRedis(t testing.TB, _ database) logtest.Log {
	t.Helper()
	return openRedisAt(t, redistest.Run(t, redistest.Config{}).URL())
}

// openRedisAt returns a log on a Redis server.
func openRedisAt(t testing.TB, url string) logtest.Log {
	t.Helper()
	dial, err := redislog.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	log, err := redislog.New(t.Context(), dial, redislog.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// databaseKinds are the databases that there are. A new one is a row here, and every test of a stack runs on it.
var databaseKinds = []struct {
	name string
	open func(t testing.TB) database
}{
	{"SQLite file", func(t testing.TB) database { return openDatabase(t, t.TempDir()) }},
	{"SQLite in memory", func(t testing.TB) database {
		return newDatabase(t, connect(t, "file::memory:?_txlock=immediate"))
	}},
	{"Postgres", func(t testing.TB) database { return openPostgres(t, pgtest.Database(t)) }},
}

var quiet = slog.New(slog.DiscardHandler)

// database is a history, and its rows for who has to look at them.
type database struct {
	*history.History
	rows *gorm.DB
	file *sqlitefile.File // that a live log may share; nil if there is none
}

func openFile(t testing.TB, dir string) *sqlitefile.File {
	t.Helper()
	file, err := sqlitefile.Open(t.Context(), filepath.Join(dir, "threadcast.db"), sqlitefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}

// openDatabase returns the history in a file as the program has it.
func openDatabase(t testing.TB, dir string) database {
	t.Helper()
	file := openFile(t, dir)
	past, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return database{History: past, rows: rowsOf(t, file.Writer()), file: file}
}

// openPostgres returns the history in a Postgres database, as the program has it.
func openPostgres(t testing.TB, url string) database {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	past, err := history.NewPostgres(t.Context(), pool, history.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: pool}), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return database{History: past, rows: rows}
}

// newDatabase returns the history in a database that somebody brought.
func newDatabase(t testing.TB, conn *sql.DB) database {
	t.Helper()
	rows := rowsOf(t, conn)
	past, err := history.New(rows, history.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return database{History: past, rows: rows}
}

func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	conn, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func rowsOf(t testing.TB, conn *sql.DB) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// stack is a runner and a hub on a live log and a database, put together as the program does it. It may be one of several
// that share their log and database, as the nodes of a cluster do.
type stack struct {
	t      testing.TB
	log    logtest.Log
	past   database
	agent  runner.Agent
	runner *runner.Runner
	hub    *hub.Hub
	again  func() *stack // another one on the same database, with an empty live log

	peers   []*stack // all that share the log and the database, this one included; nil if it is alone
	turns   atomic.Int64
	closing sync.Once
}

// all are the stacks that share this one's log and database.
func (s *stack) all() []*stack {
	if s.peers == nil {
		return []*stack{s}
	}
	return s.peers
}

// next is the stack that is asked next: each in its turn, so that what belongs together comes from different ones.
func (s *stack) next() *stack {
	all := s.all()
	return all[int(s.turns.Add(1)-1)%len(all)]
}

// watched is how many threads the hubs watch.
func (s *stack) watched() (n int) {
	for _, each := range s.all() {
		n += each.hub.Watched()
	}
	return n
}

// abandoned is how many agents are left to themselves.
func (s *stack) abandoned() (n int) {
	for _, each := range s.all() {
		n += each.runner.Abandoned()
	}
	return n
}

// newStack starts one. Its agent is the only one there is.
func newStack(t testing.TB, log logtest.Log, past database, agent runner.Agent, cfg runner.Config) *stack {
	t.Helper()
	s := &stack{t: t, log: log, past: past, agent: agent, hub: hub.New(log, past, hub.Config{Compact: runner.Compact})}
	t.Cleanup(s.close)
	s.runner = s.node(cfg)
	return s
}

// node returns a runner on the stores of the stack.
func (s *stack) node(cfg runner.Config) *runner.Runner {
	cfg.Logger = quiet
	stores := runner.Stores{
		Log: s.log, Heads: s.log, Leaser: s.log, Owners: s.log,
		History: s.past, Records: s.past, Backlog: s.past, Line: s.past, Story: s.past, Results: s.past, Board: s.hub,
	}
	r := runner.New(stores, map[string]runner.Agent{"agent": s.agent}, "agent", cfg)
	s.t.Cleanup(func() { s.drain(r) })
	return r
}

// beside returns the same stores and hub with a runner of its own.
func (s *stack) beside(cfg runner.Config) *stack {
	return &stack{t: s.t, log: s.log, past: s.past, agent: s.agent, hub: s.hub, again: s.again, runner: s.node(cfg)}
}

// drain ends what a runner still does.
func (s *stack) drain(r *runner.Runner) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	later, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := r.Drain(now, later); err != nil {
		s.t.Error(err)
	}
}

// close ends all but the database. It may be called more than once.
func (s *stack) close() {
	s.closing.Do(func() {
		s.drain(s.runner)
		s.hub.Close()
		if err := s.log.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// openCluster starts three stacks that share a Redis server and a Postgres database, each with a log and a history of its
// own, and returns the first.
func openCluster(t testing.TB, agent runner.Agent, cfg runner.Config) *stack {
	t.Helper()
	redis, url := redistest.Run(t, redistest.Config{}).URL(), pgtest.Database(t)
	var peers []*stack
	for range 3 {
		peers = append(peers, newStack(t, openRedisAt(t, redis), openPostgres(t, url), agent, cfg))
	}
	first := peers[0]
	first.peers = peers
	first.again = func() *stack {
		return newStack(t, openRedis(t, first.past), openPostgres(t, url), agent, cfg)
	}
	return first
}

// onEveryStack runs a test on every live log with every database, and on three nodes that share theirs.
func onEveryStack(t *testing.T, test func(t *testing.T, open func(runner.Agent, runner.Config) *stack)) {
	t.Run("three nodes", func(t *testing.T) {
		t.Parallel()
		test(t, func(agent runner.Agent, cfg runner.Config) *stack { return openCluster(t, agent, cfg) })
	})
	for _, l := range logKinds {
		for _, d := range databaseKinds {
			t.Run(l.name+" and "+d.name, func(t *testing.T) {
				t.Parallel()
				test(t, func(agent runner.Agent, cfg runner.Config) *stack {
					past := d.open(t)
					s := newStack(t, l.open(t, past), past, agent, cfg)
					s.again = func() *stack {
						apart := past
						apart.file = nil
						return newStack(t, l.open(t, apart), past, agent, cfg)
					}
					return s
				})
			})
		}
	}
}
