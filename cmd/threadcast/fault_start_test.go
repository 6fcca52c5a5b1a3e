package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// A node that cannot use its stores says which, and why, and ends with code 1.
func TestStoresThatANodeCannotStartOn(t *testing.T) {
	redistest.Need(t)
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("127.0.0.1:%d", port)
	for name, test := range map[string]struct {
		redis, database string // of another kind than usual
		want            []string
	}{
		"Redis that is not there":    {redis: nobody, want: []string{"the live log in Redis", nobody, "connection refused"}},
		"Redis that is too old":      {redis: redistest.Old(t, "6.0.16"), want: []string{"version 6.0.16", "6.2 or later"}},
		"Postgres that is not there": {database: "postgres://" + nobody + "/x", want: []string{"Postgres", nobody}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.redis == "" {
				test.redis = redistest.Run(t, redistest.Config{}).Addr()
			}
			if test.database == "" {
				test.database = filepath.Join(t.TempDir(), "x.db")
			}
			got := execute(t, nil, "--listen", "127.0.0.1:0", "--redis", "redis://"+test.redis, "--database", test.database)
			for _, want := range test.want {
				if line, _, _ := strings.Cut(got.stderr, "\n"); !strings.Contains(line, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "threadcast: ") {
				t.Errorf("it ends with code %d and says %q, %q", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// What puts runs at risk keeps no node from starting: it is said where people look first, and in the log.
func TestRisksOfARedisAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		redis redistest.Config
		want  string
	}{
		"it may evict keys":        {redistest.Config{Args: []string{"--maxmemory-policy", "allkeys-lru"}}, "Set maxmemory-policy to noeviction."},
		"it writes nothing":        {redistest.Config{Memory: true}, "Redis writes nothing to its disk"},
		"it writes only snapshots": {redistest.Config{Memory: true, Args: []string{"--save", "60 1000"}}, "Redis writes only snapshots"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, "--redis", redistest.Run(t, test.redis).URL())
			for where, text := range map[string]string{"output": n.stdout.String(), "log": n.stderr.String()} {
				if !strings.Contains(text, test.want) {
					t.Errorf("its %s does not say %q:\n%s", where, test.want, text)
				}
			}
		})
	}
}
