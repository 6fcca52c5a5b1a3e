package redislog_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

// A link that fails without a word: a run goes on, and is watched on a node behind the link.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{Memory: true})
	link := redistest.NewLink(t, server.Addr())
	home, away := open(t, server.Addr(), ""), open(t, link.Addr(), "")
	w := newWriter(t, home, "t", 1)
	near, far, idle := view(t, home, "t"), view(t, away, "t"), view(t, away, "u")
	w.write(20)
	far.reach(20)

	link.Freeze()
	w.write(20)
	near.reach(40)
	began := time.Now()
	var calls sync.WaitGroup
	for name, call := range map[string]func(context.Context) error{
		"Head": func(ctx context.Context) error { _, err := away.Head(ctx, "t"); return err },
		"Acquire": func(ctx context.Context) error {
			_, err := away.Acquire(ctx, thread.Claim{Thread: "x"}, time.Hour)
			return err
		},
		"Append": func(ctx context.Context) error { return away.Append(ctx, w.current(), []thread.Entry{event(1, 41)}) },
		"Tail":   func(ctx context.Context) error { return away.Tail(ctx, "t", thread.Cursor{}, nil) },
	} {
		calls.Go(func() {
			if err := call(t.Context()); !errors.Is(err, thread.ErrUnavailable) {
				t.Errorf("%s: got %v, want %v", name, err, thread.ErrUnavailable)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s failed after %v", name, took)
			}
		})
	}
	calls.Wait()
	t.Run("health is red within 7 seconds, and green again once the link is back, and nothing was missed", func(t *testing.T) {
		eventually(t, "health is red", func() bool { return errors.Is(away.Healthy(t.Context()), thread.ErrUnavailable) })
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("health was red after %v", took)
		}
		if err := home.Healthy(t.Context()); err != nil {
			t.Errorf("the other node: %v", err)
		}
		other := newWriter(t, home, "u", 1)
		other.write(3)
		link.Thaw()
		back := time.Now()
		w.write(20)
		far.reach(60)
		idle.reach(3)
		t.Logf("the viewers had everything %v after the link was back", time.Since(back).Round(time.Millisecond))
		eventually(t, "health is green", func() bool { return away.Healthy(t.Context()) == nil })
		t.Logf("health was green %v after the link was back", time.Since(back).Round(time.Millisecond))
		w.end()
		far.has(w.all)
		idle.has(other.all)
	})
}

// A node whose readers hang on a server that nobody writes to any more, while its calls reach the right one, as after a
// failover of which it noticed half.
func TestReaderOnTheWrongServer(t *testing.T) {
	t.Parallel()
	right, wrong := redistest.Run(t, redistest.Config{Memory: true}), redistest.Run(t, redistest.Config{Memory: true})
	link := redistest.NewLink(t, wrong.Addr())
	home, away := open(t, right.Addr(), ""), open(t, link.Addr(), "")
	w := newWriter(t, home, "t", 1)
	w.write(3)
	c := wrong.Client()
	defer c.Close()
	eventually(t, "all lanes read", func() bool { return len(clients(t, c, "cmd=xread")) == redislog.Groups })
	link.Aim(right.Addr())
	for _, id := range clients(t, c, "cmd=evalsha", "cmd=eval", "cmd=info") {
		if err := c.ClientKillByFilter(t.Context(), "ID", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "calls reach the right server", func() bool {
		head, err := away.Head(t.Context(), "t")
		return err == nil && head.Seq == 3
	})
	began := time.Now()
	v := view(t, away, "t")
	w.write(20)
	v.reach(23)
	t.Logf("the viewer had everything after %v", time.Since(began).Round(time.Millisecond))
	w.end()
	v.has(w.all)
	eventually(t, "health is green", func() bool { return away.Healthy(t.Context()) == nil })
}

// clients returns the ids of those clients of a server whose description holds one of the texts.
func clients(t *testing.T, c *redis.Client, texts ...string) []string {
	t.Helper()
	list, err := c.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(list) {
		for _, text := range texts {
			if strings.Contains(line, text+" ") {
				ids = append(ids, strings.TrimPrefix(strings.Fields(line)[0], "id="))
			}
		}
	}
	return ids
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t, redistest.Config{})
	log := open(t, server.Addr(), "")
	w := newWriter(t, log, "t", 1)
	w.write(2)
	v := view(t, log, "t")
	v.reach(2)
	server.Kill()
	ctx := t.Context()
	_, errHead := log.Head(ctx, "t")
	_, errRead := log.Read(ctx, "t", thread.Cursor{}, 10)
	_, errHolder := log.Holder(ctx, "t")
	_, errAsk := log.AskStop(ctx, "t", thread.StopRequest{})
	_, errAbandoned := log.Abandoned(ctx, 10)
	for name, err := range map[string]error{
		"Head": errHead, "Read": errRead, "Holder": errHolder, "AskStop": errAsk, "Abandoned": errAbandoned,
		"Tail": log.Tail(ctx, "t", thread.Cursor{}, nil), "Drop": log.Drop(ctx, "t", 1, 0), "Forget": log.Forget(ctx, thread.Lease{Claim: thread.Claim{Thread: "t"}}),
		"Append": log.Append(ctx, w.current(), []thread.Entry{event(1, 3)}), "Release": log.Release(ctx, thread.Lease{}),
	} {
		if !errors.Is(err, thread.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", name, err, thread.ErrUnavailable)
		}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	w.write(2)
	v.reach(4)
	w.end()
	v.has(w.all)
}

func TestClose(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(*redistest.Server){
		"of a log whose readers wait":        func(*redistest.Server) {},
		"of a log whose server is paused":    func(s *redistest.Server) { s.Pause() },
		"of a log whose server is not there": func(s *redistest.Server) { s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Run(t, redistest.Config{Memory: true})
			log := open(t, server.Addr(), "")
			v := view(t, log, "t")
			hurt(server)
			failed := make(chan error, 1)
			go func() { _, err := log.Head(context.Background(), "t"); failed <- err }()
			began := time.Now()
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			<-v.done
			<-failed
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			if !errors.Is(v.err, thread.ErrUnavailable) {
				t.Errorf("Tail returned %v", v.err)
			}
		})
	}
}
