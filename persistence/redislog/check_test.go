package redislog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  redistest.Config
		want []string // a part of each warning
	}{
		"a durable server without eviction": {redistest.Config{}, nil},
		"a server that keeps nothing":       {redistest.Config{Memory: true}, []string{"nothing to its disk"}},
		"a server with snapshots alone": {
			redistest.Config{Memory: true, Args: []string{"--save", "60 1000"}}, []string{"only snapshots"},
		},
		"a server that evicts keys": {
			redistest.Config{Args: []string{"--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"}}, []string{"evicts keys"},
		},
		"a server whose memory is nearly used up": {
			redistest.Config{Args: []string{"--maxmemory", "1mb"}}, []string{"of the memory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := open(t, redistest.Run(t, c.cfg).Addr(), "").Check(t.Context())
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("Check = %q, %v; want %d warnings", got, err, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(string(got[i]), want) {
					t.Errorf("warning %q; want one of %q", got[i], want)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dial := func(addr string) redis.UniversalOptions { return redis.UniversalOptions{Addrs: []string{addr}} }
	t.Run("a server before 6.2", func(t *testing.T) {
		_, err := redislog.New(t.Context(), dial(redistest.Old(t, "6.0.16")), redislog.Options{})
		if err == nil || !strings.Contains(err.Error(), "version 6.0.16; 6.2 or later") {
			t.Fatalf("New: got %v", err)
		}
	})
	t.Run("a server that is not there", func(t *testing.T) {
		port, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		_, err = redislog.New(t.Context(), dial(fmt.Sprintf("127.0.0.1:%d", port)), redislog.Options{})
		if !errors.Is(err, thread.ErrUnavailable) {
			t.Fatalf("New: got %v, want %v", err, thread.ErrUnavailable)
		}
	})
	t.Run("a prefix with braces", func(t *testing.T) {
		_, err := redislog.New(t.Context(), dial("127.0.0.1:1"), redislog.Options{Prefix: "{x}"})
		if !errors.Is(err, thread.ErrBadInput) {
			t.Fatalf("New: got %v, want %v", err, thread.ErrBadInput)
		}
	})
}
