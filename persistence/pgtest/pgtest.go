//go:build unix

package pgtest

import (
	"context"
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
	count  int // of the databases so far
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

// Database returns the URL of a fresh, empty database on the server that the tests of this binary share. The database
// is gone when t ends. Nobody may stop that server: see [Start].
func Database(t testing.TB) string {
	t.Helper()
	need(t)
	server, name, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.exec(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		if err := server.exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("remove a database: %v", err)
		}
	})
	return server.url(name)
}

// open returns the shared server, started when it is first asked for, and a name for the next database.
func open() (*Server, string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	shared.count++
	return shared.server, fmt.Sprintf("test%d", shared.count), shared.err
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
