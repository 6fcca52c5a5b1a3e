//go:build integration

package main_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// What is started on one node is seen on another, and stopped from a third.
func TestEveryNodeServesEveryThread(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--log-level", "warn")
	one, two, three := c.nodes[0], c.nodes[1], c.nodes[2]
	s := &stage{T: t, ctx: t.Context(), node: two}
	v := s.watch("t1", raw)
	if err := one.tryRun("t1", load("r1", 1_000_000, 500, 100, true)); err != nil {
		t.Fatal(err)
	}
	s.must(v.until(has(100)))
	began := time.Now()
	var stopped struct{ Stopped bool }
	if code := three.do(http.MethodPost, threadPath("t1")+"/stop", nil, &stopped); code != http.StatusOK || !stopped.Stopped {
		t.Fatalf("stop was answered %d, %+v", code, stopped)
	}
	measured(t, "stopped from another node in %s", time.Since(began).Round(time.Millisecond))
	s.must(v.until(webtest.Ended("r1")))
	for _, n := range c.nodes {
		if end := n.ended("t1", "r1"); end.State != "stopped" {
			t.Errorf("for %s the run is %+v", n.addr, end)
		}
	}
}
