//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childrenOf is the shell's way to list the processes of the server whose process is $1.
const childrenOf = `cat /proc/$1/task/$1/children 2>/dev/null || pgrep -P $1`

var errStopped = errors.New("Postgres does not run")

// children are the processes that the first one of the server has made.
func (s *Server) children() ([]int, error) {
	out, err := exec.Command("sh", "-c", childrenOf, "sh", strconv.Itoa(s.process.Pid)).Output()
	if err != nil {
		return nil, fmt.Errorf("list the processes of Postgres: %w", err)
	}
	var pids []int
	for _, word := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("list the processes of Postgres: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// signal sends a signal to every process of the server. The first one comes first: when it is frozen, no more are made.
func (s *Server) signal(sig syscall.Signal) error {
	if s.process == nil {
		return errStopped
	}
	if err := s.process.Signal(sig); err != nil {
		return fmt.Errorf("send %v to Postgres: %w", sig, err)
	}
	return s.signalChildren(sig)
}

func (s *Server) signalChildren(sig syscall.Signal) error {
	pids, err := s.children()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %v to Postgres: %w", sig, err)
		}
	}
	return nil
}

// Stop ends the server in order, as for an upgrade: its clients are cut off, and its data is kept. It returns when the
// server is gone.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Kill ends all processes of the server at once, as a crash does. What was committed is kept.
func (s *Server) Kill() error {
	if err := s.Pause(); err != nil {
		return err
	}
	if err := s.signalChildren(syscall.SIGKILL); err != nil {
		return err
	}
	return s.end(syscall.SIGKILL)
}

// Pause freezes the server: it keeps its connections, takes new ones, and answers to none, until [Server.Resume].
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets a frozen server go on.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// end sends a signal to the first process of the server, and waits until it is gone.
func (s *Server) end(sig syscall.Signal) error {
	if s.process == nil {
		return errStopped
	}
	if err := s.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end Postgres: %w", err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.gone:
	case <-timer.C:
		return fmt.Errorf("end Postgres: it is there %v after %v\n%s", patience, sig, s.tail())
	}
	s.process = nil
	return s.guard.watch(0)
}

// close ends the server, however it is, and removes its files.
func (s *Server) close() error {
	var err error
	if s.process != nil {
		err = s.Resume()
		err = errors.Join(err, s.end(syscall.SIGQUIT))
	}
	return errors.Join(err, s.guard.close())
}

// guardian is a shell that outlives the tests. It is told the process of the server on its standard input, 0 for none;
// when that ends, so do the server and its files.
const guardian = `
pid=0
while read -r line; do pid=$line; done
if [ "$pid" -gt 0 ]; then
	set -- "$pid" "$1"
	all="$pid $(` + childrenOf + `)"
	kill -CONT $all
	kill -QUIT "$pid"
	n=0
	while kill -0 "$pid" && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done
	kill -KILL $all
	shift
fi 2>/dev/null
rm -rf "$1"
`

// guard is what makes sure of a server's end when the tests are killed.
type guard struct {
	shell *exec.Cmd
	line  io.WriteCloser // to the shell; the system closes it with the process of the tests
}

// newGuard starts the guard of a server whose files are in dir.
func newGuard(dir string) (*guard, error) {
	shell := exec.Command("sh", "-c", guardian, "pgtest", dir)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	line, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("guard Postgres: %w", err)
	}
	return &guard{shell: shell, line: line}, nil
}

// watch tells the guard the process of the server.
func (g *guard) watch(pid int) error {
	if _, err := fmt.Fprintln(g.line, pid); err != nil {
		return fmt.Errorf("guard Postgres: %w", err)
	}
	return nil
}

// close lets the guard remove what is left.
func (g *guard) close() error {
	if err := errors.Join(g.line.Close(), g.shell.Wait()); err != nil {
		return fmt.Errorf("guard Postgres: %w", err)
	}
	return nil
}
