//go:build unix

package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// role is the name of the one user of a server.
const role = "threadcast"

// admin is the database that is there from the beginning.
const admin = "postgres"

// settings make a server quick and patient with tests. What is committed outlives the processes of the server, though
// not the machine: so a test may kill them.
const settings = `
listen_addresses = ''
max_connections = 200
shared_buffers = 64MB
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
checkpoint_timeout = 1h
max_wal_size = 4GB
autovacuum = off
log_min_messages = warning
`

// Server is a private Postgres. Its methods are for one goroutine at a time.
type Server struct {
	bin      string // folder of the programs
	dir      string // of the data, the socket and the log
	password string
	servant  *syscall.Credential
	guard    *guard

	process *os.Process   // nil while it is stopped
	gone    chan struct{} // closed when process has ended
	count   atomic.Int64  // of the databases so far
}

// start makes a server and starts it.
func start() (*Server, error) {
	bin, err := find(os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	who, err := servant()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, fmt.Errorf("make a place for Postgres: %w", err)
	}
	s := &Server{bin: bin, dir: dir, password: rand.Text(), servant: who}
	if s.guard, err = newGuard(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// build makes the files of a new server.
func (s *Server) build() error {
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("make a place for Postgres: %w", err)
	}
	if s.servant != nil {
		for _, name := range []string{s.dir, secret} {
			if err := os.Chown(name, int(s.servant.Uid), int(s.servant.Gid)); err != nil {
				return fmt.Errorf("make a place for Postgres: %w", err)
			}
		}
	}
	args := []string{"-D", s.data(), "-U", role, "--pwfile", secret, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "-N"}
	if speaksICU(s.bin) {
		args = append(args, "--locale-provider=icu", "--icu-locale=en")
	}
	if out, err := s.command("initdb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make a Postgres in %s: %w\n%s", s.dir, err, out)
	}
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure Postgres: %w", err)
	}
	_, err = fmt.Fprintf(conf, "%sunix_socket_directories = '%s'\n", settings, s.dir)
	if err = errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("configure Postgres: %w", err)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command is one of the programs, run by the servant and out of reach of a Ctrl-C that is meant for the tests.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.servant}
	return cmd
}

// Start starts a server that was stopped or killed, with the data that it had, and returns when it answers. The processes
// of one that was killed may hold its memory for a moment longer: then it is started again.
func (s *Server) Start() error {
	if s.process != nil {
		return errors.New("start Postgres: it runs already")
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); ; {
		err := s.launch()
		if err == nil || time.Since(began) > patience || !strings.Contains(err.Error(), "shared memory block") {
			return err
		}
		<-again.C
	}
}

// launch is one attempt to start the server.
func (s *Server) launch() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has it now
	cmd := s.command("postgres", "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	gone := make(chan struct{})
	s.process, s.gone = cmd.Process, gone
	go func() {
		defer close(gone)
		_ = cmd.Wait() // a server that was told to end ends as it can
	}()
	if err := s.guard.watch(s.process.Pid); err != nil {
		return err
	}
	return s.await()
}

// await returns when the server answers.
func (s *Server) await() error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.exec(admin, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-s.gone:
			s.process = nil
			return fmt.Errorf("start Postgres: it ended\n%s", s.tail())
		case <-timer.C:
			return fmt.Errorf("start Postgres: no answer in %v: %w\n%s", patience, err, s.tail())
		}
	}
}

// tail is what the server logged last.
func (s *Server) tail() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

// exec runs statements in a database, on a connection of its own.
func (s *Server) exec(database, statements string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, conn.Close(ctx))
}

// url is where a database is, with the password.
func (s *Server) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, s.password), Path: "/" + database}
	u.RawQuery = url.Values{"host": {s.dir}}.Encode()
	return u.String()
}

// create makes a database and returns its name.
func (s *Server) create() (string, error) {
	name := fmt.Sprintf("test%d", s.count.Add(1))
	if err := s.exec(admin, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	return name, nil
}

// Database returns the URL of a new, empty database of s, which lasts as long as s.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name, err := s.create()
	if err != nil {
		t.Fatal(err)
	}
	return s.url(name)
}

// Socket is the file that the server listens on, for what stands between it and a client.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }
