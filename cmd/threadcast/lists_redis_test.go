//go:build integration

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// Whatever becomes of Redis while threads change, every list is told each change, or that it has to be read again.
func TestListsOutliveRedis(t *testing.T) {
	for name, restart := range map[string]func(*redistest.Server) error{
		"restarted": (*redistest.Server).Restart, "restarted empty": (*redistest.Server).RestartEmpty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 2, users...)
			const threads, names = 8, 40
			path := func(i int) string { return fmt.Sprintf("/api/threads/alice-%d", i%threads) }
			for i := range threads {
				c.nodes[0].must("alice", "POST", path(i)+"/runs", `{"runId":"r1","messages":[]}`)
			}
			for i := range threads {
				n := c.nodes[0]
				eventually(t, time.Minute, "the runs end", func() bool {
					var row struct{ State string }
					return json.Unmarshal(n.must("alice", "GET", path(i), ""), &row) == nil && row.State == "finished"
				})
			}
			views := []*listView{c.nodes[0].list("alice"), c.nodes[1].list("alice")}
			done := make(chan struct{})
			go func() {
				defer close(done)
				forEach(threads*names, 4, func(i int) {
					c.nodes[i%2].must("alice", "PATCH", path(i), fmt.Sprintf(`{"name":"name %d"}`, i))
				})
			}()
			if err := restart(c.redis); err != nil {
				t.Fatal(err)
			}
			<-done
			for i, v := range views {
				v.settles(t, threads*names)
				measured(t, "node %d: %d of %d changes told, %d resets", i+1, v.names(), threads*names, v.resets)
			}
			for i, n := range c.nodes {
				n.must("alice", "PATCH", path(0), fmt.Sprintf(`{"name":"after %d"}`, i))
			}
			for _, v := range views {
				eventually(t, time.Minute, "what happens afterwards is told", func() bool {
					return v.has(func() bool { return !v.when["after 1"].IsZero() })
				})
			}
		})
	}
}

// names returns how many changes of the name the view was told.
func (v *listView) names() (n int) {
	for name := range v.when {
		if strings.HasPrefix(name, "name ") {
			n++
		}
	}
	return n
}

// settles waits until a view was told all changes, or to read the list again, and what it has then is right.
func (v *listView) settles(t *testing.T, changes int) {
	t.Helper()
	eventually(t, time.Minute, "all is told, or that something was missed", func() bool {
		return v.has(func() bool { return v.names() == changes || v.resets > 0 })
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, times := range v.told {
		if times != 1 {
			t.Errorf("%s is told %d times", key, times)
		}
	}
	if v.resets == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text, err := v.channel.Push(ctx, "list", nil)
	if err != nil {
		t.Fatal(err)
	}
	var page struct{ Threads []struct{ Name string } }
	if err := json.Unmarshal(text, &page); err != nil || len(page.Threads) != 8 {
		t.Errorf("the list is %s, %v", text, err)
	}
}
