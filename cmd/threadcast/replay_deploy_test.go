package main_test

import (
	"slices"
	"testing"

	"github.com/threadcast/threadcast/persistence/pgtest"
	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// deployment is a way to run the program. Each replay case is played in all of them that it applies to.
type deployment struct {
	name     string
	nodes    int
	redis    bool // the live log is in Redis; otherwise in the nodes' file
	postgres bool // the history is in Postgres; otherwise in the node's file
}

var deployments = []deployment{
	{name: "embedded", nodes: 1},
	{name: "Redis and a file", nodes: 1, redis: true},
	{name: "Redis and Postgres", nodes: 3, redis: true, postgres: true},
}

// sharedRedis returns the Redis server that the cases of a deployment have in common, each with keys of its own; nil if it
// has none.
func (d deployment) sharedRedis(t *testing.T) *redistest.Server {
	t.Helper()
	if !d.redis {
		return nil
	}
	return redistest.Run(t, redistest.Config{})
}

// open starts the nodes of a stage.
func (d deployment) open(s *stage, redis *redistest.Server, flags []string) {
	s.Helper()
	if !d.redis {
		s.node = start(s, flags...)
		return
	}
	s.prefix = s.id + ":"
	c := &cluster{t: s, redis: redis, flags: append(flags, "--redis-prefix", s.prefix)}
	if d.postgres {
		c.database = pgtest.Database(s)
	}
	for range d.nodes {
		c.add()
	}
	s.shared, s.node, s.others = c, c.nodes[0], c.nodes[1:]
}

// all are the nodes of the stage, those that are gone included.
func (s *stage) all() []*node { return append([]*node{s.node}, s.others...) }

// at returns a node by its place, 0 for the first. Where there is one, it is all of them.
func (s *stage) at(place int) *node {
	nodes := s.all()
	return nodes[place%len(nodes)]
}

// next returns the node that is asked next: of those that are up, each in its turn, so that what belongs together comes
// from different ones.
func (s *stage) next() *node {
	up := slices.DeleteFunc(s.all(), (*node).gone)
	if len(up) == 0 {
		s.Error("no node is up")
		return s.node
	}
	return up[int(s.turns.Add(1)-1)%len(up)]
}

// crash kills the first node as kill -9 does. If it is the only one, it is started again on the same database and port;
// otherwise it stays away, and the others have to do.
func (s *stage) crash() {
	s.Helper()
	s.node.kill()
	if len(s.others) == 0 {
		s.node = s.node.restart()
	}
}

// shutDown ends all nodes in an orderly way, and returns what each has logged.
func (s *stage) shutDown() (logs []string) {
	s.Helper()
	for _, n := range s.all() {
		n.term()
	}
	for _, n := range s.all() {
		if code := n.wait(patience); code != 0 {
			s.Errorf("the node at %s ended with code %d", n.addr, code)
		}
		logs = append(logs, n.stderr.String())
	}
	return logs
}

// revive starts those nodes again that are gone.
func (s *stage) revive() {
	s.Helper()
	if s.node.gone() {
		s.node = s.node.restart()
	}
	for i, n := range s.others {
		if n.gone() {
			s.others[i] = n.restart()
		}
	}
}

// usage is what each of the nodes holds.
func (s *stage) usage() (each []usage) {
	s.Helper()
	for _, n := range s.all() {
		each = append(each, n.usage())
	}
	return each
}
