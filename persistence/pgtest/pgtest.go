//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a server may take for what a test asks of it.
const patience = 30 * time.Second

// shared is the server that the tests of one binary have in common.
var shared struct {
	sync.Mutex
	server *Server
	err    error
	idle   []string // databases that no test has now; they are empty
}

// Tests is a [testing.M] that ends the shared server when the tests have run.
type Tests struct{ m interface{ Run() int } }

// Main wraps the m of a TestMain, as in goleak.VerifyTestMain(pgtest.Main(m)).
func Main(m interface{ Run() int }) *Tests { return &Tests{m} }

// Run runs the tests, ends the server that they shared, and returns their exit code, or 1 if the server did not end.
func (t *Tests) Run() int {
	code := t.m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	err := shared.server.close()
	shared.server = nil
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// Database returns the URL of an empty database on the server that the tests of this binary share. It is t's alone until t
// ends; then whoever is still connected is cut off, and all that was made is gone. Nobody may stop that server: see [Start].
func Database(t testing.TB) string {
	t.Helper()
	need(t)
	server, name, err := take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := give(server, name); err != nil {
			t.Error(err)
		}
	})
	return server.url(name)
}

// take returns the shared server, started when it is first asked for, and one of its databases, which are used again:
// making one takes a hundred times as long as emptying it.
func take() (*Server, string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	if shared.err != nil {
		return nil, "", shared.err
	}
	if n := len(shared.idle); n > 0 {
		name := shared.idle[n-1]
		shared.idle = shared.idle[:n-1]
		return shared.server, name, nil
	}
	name, err := shared.server.create()
	return shared.server, name, err
}

// empty are the statements that make a database as it was in the beginning.
const empty = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
	DROP SCHEMA public CASCADE;
	CREATE SCHEMA public;
	ALTER DATABASE %s RESET ALL`

// give takes a database back.
func give(server *Server, name string) error {
	if err := server.exec(name, fmt.Sprintf(empty, name)); err != nil {
		return fmt.Errorf("empty a database: %w", err)
	}
	shared.Lock()
	defer shared.Unlock()
	shared.idle = append(shared.idle, name)
	return nil
}

// Start starts a server for t alone, which ends with it.
func Start(t testing.TB) *Server {
	t.Helper()
	need(t)
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// need leaves t out if this is a run without Postgres.
func need(t testing.TB) {
	t.Helper()
	without := strings.FieldsFunc(os.Getenv("THREADCAST_WITHOUT"), func(r rune) bool { return r == ',' || r == ' ' })
	if testing.Short() || slices.Contains(without, "postgres") {
		t.Skip("left out: it needs Postgres")
	}
}
