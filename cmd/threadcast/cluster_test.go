package main_test

import (
	"database/sql"
	"slices"
	"sync"
	"testing"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// cluster is nodes that share a Redis server and a Postgres database, which are there for them alone.
type cluster struct {
	t        testing.TB
	redis    *redistest.Server
	database string   // URL of the Postgres database; empty if the node has a file
	flags    []string // of every node
	nodes    []*node

	pool sync.Once
	rows *sql.DB // of the tests; see [cluster.db]
}

// startCluster starts so many nodes with these flags, and returns them when they are ready.
func startCluster(t testing.TB, nodes int, flags ...string) *cluster {
	t.Helper()
	return startClusterOn(t, redistest.Config{}, nodes, flags...)
}

// steady is a Redis that is not going to be restarted: it does not wait for a disk that is busy with other things.
var steady = redistest.Config{Memory: true}

// startClusterOn is startCluster with another Redis than one that loses nothing.
func startClusterOn(t testing.TB, redis redistest.Config, nodes int, flags ...string) *cluster {
	t.Helper()
	redistest.Need(t)
	c := &cluster{t: t, redis: redistest.Run(t, redis), database: pgtest.Database(t), flags: flags}
	for range nodes {
		c.add()
	}
	return c
}

// add starts another node. Flags given here are added to those of all nodes; the last one of a name counts.
func (c *cluster) add(flags ...string) *node {
	c.t.Helper()
	all := []string{"--redis", c.redis.URL()}
	if c.database != "" {
		all = append(all, "--database", c.database)
	}
	n := start(c.t, slices.Concat(all, c.flags, flags)...)
	c.nodes = append(c.nodes, n)
	return n
}
