package main_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
)

// failsWithin is how long a call may take to fail while a store is away.
const failsWithin = 5 * time.Second

// check compares an answer with what it should be, and with how long that may take. It may be called from any goroutine.
func (v verdict) check(t *testing.T, call string, want verdict) {
	if v.status != want.status || v.code != want.code || v.took > want.took {
		t.Errorf("%s was answered %s, not %s or less", call, v, want)
	}
}

// TestCallsWithoutRedis makes every call there is to both nodes while Redis is away: it fails within five seconds and by
// its name, and works again when Redis does. What does not need Redis works throughout.
func TestCallsWithoutRedis(t *testing.T) {
	for name, way := range map[string]struct {
		down, up func(*redistest.Server)
	}{
		"killed": {(*redistest.Server).Kill, func(s *redistest.Server) { _ = s.Start() }},
		"silent": {(*redistest.Server).Pause, (*redistest.Server).Continue},
	} {
		if name == "silent" && sized(1, 0) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrdeal(t, "--lease", "15s")
			one, two := o.add(), o.add()
			o.run("a", one, two)
			ready := o.askReady()
			way.down(o.redis)
			down := time.Now()
			slowest := make([]time.Duration, 2)
			forEach(2, 2, func(i int) {
				for call, said := range o.entryPoints(o.nodes[i], "a") {
					slowest[i] = max(slowest[i], said.took)
					if call == "list" || call == "status" && i == 0 { // what its database knows, and of its own runs
						said.check(t, call, verdict{http.StatusOK, "", failsWithin})
					} else {
						said.check(t, call, verdict{http.StatusServiceUnavailable, "unavailable", failsWithin})
					}
				}
			})
			ready.awaitRed(one, two)
			way.up(o.redis)
			up := time.Now()
			red, green := ready.turned(one, down, up)
			for _, n := range o.nodes {
				eventually(t, patience, "calls work again", func() bool {
					for _, said := range o.entryPoints(n, "b") {
						if said.status >= http.StatusInternalServerError || said.status == 0 {
							return false
						}
					}
					return true
				})
			}
			measured(t, "calls failed after at most %s; not ready %s after it went away, ready %s after it was back, all calls work after %s",
				max(slowest[0], slowest[1]).Round(time.Millisecond), red.Round(time.Millisecond), green.Round(time.Millisecond), time.Since(up).Round(time.Millisecond))
		})
	}
}
