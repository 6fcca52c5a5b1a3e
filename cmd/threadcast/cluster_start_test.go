package main_test

import (
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// Nodes with databases of their own must not share what is in Redis.
func TestNodesWithDifferentDatabasesAreKeptApart(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	server := redistest.Run(t, redistest.Config{})
	first := start(t, "--redis", server.URL())
	got := execute(t, nil, "--listen", "127.0.0.1:0", "--database", t.TempDir()+"/x.db", "--redis", server.URL())
	if got.code != 1 || !strings.Contains(got.stderr, "Redis holds the runs of another database") {
		t.Errorf("a second database ends with code %d and %q", got.code, got.stderr)
	}
	start(t, "--redis", server.URL(), "--redis-prefix", "other:")
	first.kill()
	first.restart()
}
