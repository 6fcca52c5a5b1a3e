// Package redistest runs private Redis servers for tests: real ones, that can be killed, paused, emptied and started
// again.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says how a server is started. The zero value writes its data to the disk with every command.
type Config struct {
	// Dir is where its data are; what is in it is loaded. A new directory if empty.
	Dir string
	// Args are further arguments of redis-server, such as "--maxmemory", "10mb".
	Args []string
	// Memory has it write nothing to the disk.
	Memory bool
	// Program is what is run; redis-server from PATH if empty.
	Program string
	// Port is the port it listens on; a free one if 0.
	Port int

	sentinel string // the configuration of a Sentinel
}

// Server is a Redis server that listens on a port of the loopback interface, which it keeps over restarts.
type Server struct {
	cfg    Config
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// startWithin is how long a server may take to answer.
const startWithin = 20 * time.Second

// Start starts a server and waits until it answers. It ends with this process at the latest. The error says so if
// redis-server is not there.
func Start(cfg Config) (*Server, error) {
	if cfg.Program == "" {
		path, err := exec.LookPath("redis-server")
		if err != nil {
			return nil, fmt.Errorf("the tests of the live log on Redis need redis-server (apt-get install redis-server): %w", err)
		}
		cfg.Program = path
	}
	if cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "redistest")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	}
	var errs []error
	for range 5 { // somebody may take the port first
		s := &Server{cfg: cfg, port: cfg.Port}
		if s.port == 0 {
			port, err := FreePort()
			if err != nil {
				return nil, err
			}
			s.port = port
		}
		err := s.Start()
		if err == nil {
			return s, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Need leaves a test out if this is a run without Redis: when the variable THREADCAST_WITHOUT names redis, or in short
// mode where redis-server is not installed.
func Need(tb testing.TB) {
	tb.Helper()
	without := strings.FieldsFunc(os.Getenv("THREADCAST_WITHOUT"), func(r rune) bool { return r == ',' || r == ' ' })
	_, err := exec.LookPath("redis-server")
	if slices.Contains(without, "redis") || err != nil && testing.Short() {
		tb.Skip("left out: it needs Redis")
	}
}

// Run starts a server that stops when the test ends. Without redis-server the test fails, unless [Need] leaves it out.
func Run(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	Need(tb)
	if cfg.Dir == "" {
		cfg.Dir = tb.TempDir()
	}
	s, err := Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Continue()
		s.Kill()
	})
	return s
}

// FreePort returns a port of the loopback interface that nobody listens on at present.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Port is where the server listens.
func (s *Server) Port() int { return s.port }

// Addr is the server's address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the server's address as a redis URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dir is where the server's data are.
func (s *Server) Dir() string { return s.cfg.Dir }

// Start starts a server that was stopped or killed, on the data that are in its directory.
func (s *Server) Start() error {
	s.cmd = exec.Command(s.cfg.Program, s.args()...)
	s.cmd.SysProcAttr = withParent()
	log, err := os.OpenFile(filepath.Join(s.cfg.Dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, exited := s.cmd, make(chan struct{})
	s.exited = exited
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	return s.await()
}

func (s *Server) args() []string {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.cfg.Dir, "--daemonize", "no"}
	switch {
	case s.cfg.sentinel != "":
		return append([]string{s.cfg.sentinel, "--sentinel"}, args...)
	case s.cfg.Memory:
		args = append(args, "--save", "", "--appendonly", "no")
	default:
		args = append(args, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	}
	return append(args, s.cfg.Args...)
}

// await waits until the server answers, with its data loaded.
func (s *Server) await() error {
	deadline := time.After(startWithin)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return fmt.Errorf("redis-server ended at once; its last words are in %s", filepath.Join(s.cfg.Dir, "redis.log"))
		case <-deadline:
			s.Kill()
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

// ping asks once, without a client: that would take its time after a connection was refused.
func (s *Server) ping() error {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("it says %q", answer)
	}
	return err
}

// Client returns a client of the server, which the caller closes.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 2})
}

// Kill ends the server as kill -9 does. What it had written to its disk stays.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
}

// Stop ends the server as SIGTERM does.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-s.exited
}

// Restart kills the server and starts it again with its data.
func (s *Server) Restart() error {
	s.Kill()
	return s.Start()
}

// RestartEmpty kills the server and starts it again without its data.
func (s *Server) RestartEmpty() error {
	s.Kill()
	if err := s.Wipe(); err != nil {
		return err
	}
	return s.Start()
}

// Wipe removes the data of a server that was stopped or killed.
func (s *Server) Wipe() error {
	return errors.Join(
		os.RemoveAll(filepath.Join(s.cfg.Dir, "appendonlydir")), // since 7.0
		os.RemoveAll(filepath.Join(s.cfg.Dir, "appendonly.aof")),
		os.RemoveAll(filepath.Join(s.cfg.Dir, "dump.rdb")),
	)
}

// FlushAll removes all data of a server that goes on.
func (s *Server) FlushAll() error {
	c := s.Client()
	defer c.Close()
	return c.FlushAll(context.Background()).Err()
}

// Pause stops the server as SIGSTOP does: its connections stay, and nothing answers.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets a paused server go on.
func (s *Server) Continue() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
