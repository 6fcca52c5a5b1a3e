//go:build unix

package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/threadcast/threadcast/persistence/pgtest"
)

// connect returns a connection that closes with t.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	var s string
	if err := conn.QueryRow(t.Context(), query).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDatabasesAreApart(t *testing.T) {
	first, second := connect(t, pgtest.Database(t)), connect(t, pgtest.Database(t))
	exec1(t, first, `CREATE TABLE mine (n int)`)
	exec1(t, second, `CREATE TABLE mine (n int)`)
	if got := text(t, first, `SHOW server_encoding`); got != "UTF8" {
		t.Errorf("the encoding is %s", got)
	}
}

func TestNothingIsLeftOfATest(t *testing.T) {
	pgtest.Database(t) // or be left out
	var left *pgx.Conn
	t.Run("it makes a mess", func(t *testing.T) {
		url := pgtest.Database(t)
		conn := connect(t, url)
		exec1(t, conn, `CREATE TABLE mine (n int)`)
		exec1(t, conn, `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`)
		exec1(t, conn, `ALTER DATABASE `+text(t, conn, `SELECT current_database()`)+` SET lock_timeout = '7s'`)
		var err error
		if left, err = pgx.Connect(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		exec1(t, left, `BEGIN`)
		exec1(t, left, `LOCK TABLE mine`)
	})
	defer left.Close(context.Background())
	for range 3 {
		conn := connect(t, pgtest.Database(t))
		if got := text(t, conn, `SELECT count(*)::text FROM pg_class WHERE relname = 'mine'`); got != "0" {
			t.Error("its table is there")
		}
		if got := text(t, conn, `SELECT count(*)::text FROM pg_proc WHERE proname = 'f'`); got != "0" {
			t.Error("its function is there")
		}
		if got := text(t, conn, `SHOW lock_timeout`); got != "0" {
			t.Errorf("its lock_timeout is there: %s", got)
		}
	}
	if _, err := left.Exec(t.Context(), `SELECT 1`); err == nil {
		t.Error("its connection is there")
	}
}

func TestAServerOfOnesOwn(t *testing.T) {
	s := pgtest.Start(t)
	url := s.Database(t)
	exec1(t, connect(t, url), `CREATE TABLE kept AS SELECT 'what was committed'::text AS said`)
	said := func(t *testing.T) {
		t.Helper()
		if got := text(t, connect(t, url), `SELECT said FROM kept`); got != "what was committed" {
			t.Errorf("it says %q", got)
		}
	}
	for name, end := range map[string]func() error{"stopped": s.Stop, "killed": s.Kill} {
		t.Run("keeps its data when it is "+name, func(t *testing.T) {
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if conn, err := pgx.Connect(t.Context(), url); err == nil {
				conn.Close(t.Context())
				t.Error("it still answers")
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			said(t)
		})
	}
	t.Run("answers to nobody while it is frozen", func(t *testing.T) {
		conn := connect(t, url)
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := conn.Exec(short, `SELECT 1`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if _, err := pgx.Connect(short, url); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		said(t)
	})
	t.Run("ends when it is frozen", func(t *testing.T) {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTheServerEndsWithTheTests kills the process of tests that use one, and freeze it.
func TestTheServerEndsWithTheTests(t *testing.T) {
	if os.Getenv("PGTEST_VICTIM") != "" {
		s := pgtest.Start(t)
		pid, err := os.ReadFile(filepath.Join(filepath.Dir(s.Socket()), "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(string(pid), "\n")
		fmt.Println("victim", number, filepath.Dir(s.Socket()))
		select {}
	}
	pgtest.Database(t) // or be left out
	victim := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	victim.Env = append(os.Environ(), "PGTEST_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err == nil {
		err = victim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "victim %d %s", &pid, &dir)
	}
	if pid == 0 {
		t.Fatal("it started no server")
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the server is not there: %v", err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(20 * time.Second); ; <-again.C {
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the server (process %d) or its files (%s) are still there", pid, dir)
		}
	}
}
