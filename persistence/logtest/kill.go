package logtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// childDir names the environment variable that makes a test binary the child of a test: the directory of its log.
const childDir = "THREADCAST_LOGTEST_CHILD"

// How a child writes, and how often it is killed.
const (
	childThreads = 8
	killRounds   = 20
)

var killChecks = []durableCheck{
	{"a process that is killed loses nothing that was acknowledged", killed},
}

// Child is called first of all by the TestMain of a driver that calls [RunDurable]. In a process that is to be killed it
// writes until that happens; should it end before, it returns true, and so has TestMain. In any other process it
// does nothing and returns false.
func Child(open Opener) bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	fmt.Fprintln(os.Stderr, writeForever(dir, open))
	return true
}

// writeForever writes runs to some threads at once. It tells on standard output what was acknowledged: a line
// "thread run seq" after each append.
func writeForever(dir string, open Opener) error {
	log, err := open(dir)
	if err != nil {
		return err
	}
	failed := make(chan error)
	var out sync.Mutex
	for i := range childThreads {
		go func() {
			failed <- writeThread(log, childThread(i), func(c thread.Cursor) {
				out.Lock()
				defer out.Unlock()
				fmt.Fprintln(os.Stdout, i, c.Run, c.Seq)
			})
		}()
	}
	return <-failed
}

func childThread(i int) thread.ID { return thread.ID(fmt.Sprintf("thread %d", i)) }

// writeThread ends the run that a former child left, and writes one run after the other.
func writeThread(log Log, id thread.ID, acknowledged func(thread.Cursor)) error {
	ctx := context.Background()
	head, err := endLatest(ctx, log, id)
	if err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for run := head.Run + 1; ; run++ {
		lease, err := log.Acquire(ctx, claim(id, run, "child"), time.Hour)
		if err != nil {
			return err
		}
		length := 1 + dice.Uint64N(400)
		for seq := uint64(1); seq <= length; {
			last := min(seq+dice.Uint64N(20)*dice.Uint64N(2), length)
			batch := events(run, seq, last)
			if last == length {
				batch[len(batch)-1] = endEntry(run, last)
			}
			if err := log.Append(ctx, lease, batch); err != nil {
				return err
			}
			acknowledged(thread.Cursor{Run: run, Seq: last})
			seq = last + 1
		}
		if err := log.Release(ctx, lease); err != nil {
			return err
		}
		if run > 3 {
			if err := log.Drop(ctx, id, run-3, 0); err != nil {
				return err
			}
		}
	}
}

// endLatest takes the thread's latest run over and ends it, unless it has ended, and returns the thread's head.
func endLatest(ctx context.Context, log Log, id thread.ID) (thread.Cursor, error) {
	head, err := log.Head(ctx, id)
	if err != nil || head.Run == 0 {
		return head, err
	}
	last, err := log.Read(ctx, id, thread.Cursor{Run: head.Run, Seq: head.Seq - 1}, 1)
	if err != nil || len(last) != 1 {
		return head, errors.Join(fmt.Errorf("read %d entries at the head %s", len(last), head), err)
	}
	lease, err := log.Acquire(ctx, claim(id, head.Run, "child"), time.Hour)
	if err != nil {
		return head, err
	}
	if last[0].Kind != thread.KindEnd {
		if err := log.Append(ctx, lease, []thread.Entry{endEntry(head.Run, head.Seq+1)}); err != nil {
			return head, err
		}
	}
	return head, log.Release(ctx, lease)
}

// killed kills a child in mid writing, again and again on the same log, and looks at what is there then.
func killed(t *testing.T, d *disk) {
	dice := rand.New(rand.NewPCG(1, 2))
	acknowledged := make(map[thread.ID]thread.Cursor)
	var token uint64
	for round := range killRounds {
		if err := killAfter(d.dir, 1+dice.IntN(150), acknowledged); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		log := d.reopen()
		for i := range childThreads {
			id := childThread(i)
			afterKill(t, log, id, acknowledged[id])
		}
		token = greaterToken(t, log, token)
		d.close()
	}
}

// greaterToken expects that the next token is greater than all that are there, and than this one.
func greaterToken(t *testing.T, log Log, token uint64) uint64 {
	t.Helper()
	leases, err := log.Abandoned(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases {
		token = max(token, lease.Token)
	}
	next := acquire(t, log, claim("other", 1, "parent"), time.Hour)
	if next.Token <= token {
		t.Fatalf("token %d was given after token %d", next.Token, token)
	}
	if err := log.Release(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	return next.Token
}

// killAfter runs a child on the log until it has acknowledged n appends, and kills it. It notes in acknowledged what
// each thread has at least.
func killAfter(dir string, n int, acknowledged map[thread.ID]thread.Cursor) error {
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for read := 0; ; read++ {
		if read == n {
			if err := child.Process.Kill(); err != nil {
				return err
			}
		}
		var i int
		var c thread.Cursor
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // a line that is not whole was not acknowledged
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(line, &i, &c.Run, &c.Seq); err != nil {
			return fmt.Errorf("the child wrote %q: %w", line, err)
		}
		acknowledged[childThread(i)] = c
	}
	if err := child.Wait(); child.ProcessState.Success() || child.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("the child was not killed: %w", err)
	}
	return nil
}

// afterKill expects that a thread has everything up to a cursor, and that what it has is whole: each run but the last
// with its end, each entry with the bytes that were written.
func afterKill(t *testing.T, log Log, id thread.ID, acknowledged thread.Cursor) {
	t.Helper()
	entries := readAll(t, log, id)
	if last := lastOf(entries); last.Before(acknowledged) {
		t.Fatalf("%s ends at %s; %s was acknowledged", id, last, acknowledged)
	}
	for i, e := range entries {
		want := event(e.Run, e.Seq)
		if e.Kind == thread.KindEnd {
			want = endEntry(e.Run, e.Seq)
		}
		if !sameEntry(e, want) {
			t.Fatalf("%s: entry %s came back as %q", id, e.Cursor(), e.Data)
		}
		if i == 0 || entries[i-1].Run != e.Run {
			if e.Seq != 1 || (i > 0 && entries[i-1].Kind != thread.KindEnd) {
				t.Fatalf("%s: a hole before %s", id, e.Cursor())
			}
		} else if e.Seq != entries[i-1].Seq+1 {
			t.Fatalf("%s: a hole before %s", id, e.Cursor())
		}
	}
	if head, err := log.Head(t.Context(), id); err != nil || head != lastOf(entries) {
		t.Fatalf("%s: Head = %s, %v; want %s", id, head, err, lastOf(entries))
	}
}
