package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// readiness asks nodes all the time whether they are ready.
type readiness struct {
	mu    sync.Mutex
	red   map[*node]time.Time // the first time that one was not ready
	green map[*node]time.Time // since when it is ready
}

// never tells whether a node has always been ready.
func (r *readiness) never(n *node) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.red[n].IsZero()
}

// askReady asks until the test ends.
func (o *ordeal) askReady() *readiness {
	r := &readiness{red: map[*node]time.Time{}, green: map[*node]time.Time{}}
	quit := make(chan struct{})
	var all sync.WaitGroup
	for _, n := range o.nodes {
		all.Go(func() {
			again := time.NewTicker(100 * time.Millisecond)
			defer again.Stop()
			for {
				select {
				case <-quit:
					return
				case <-again.C:
				}
				code, _, err := n.request(http.MethodGet, "/readyz", nil)
				r.note(n, err == nil && code == http.StatusOK)
			}
		})
	}
	o.Cleanup(func() { close(quit); all.Wait() })
	return r
}

func (r *readiness) note(n *node, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ready:
		if r.red[n].IsZero() {
			r.red[n] = time.Now()
		}
		delete(r.green, n)
	case r.green[n].IsZero():
		r.green[n] = time.Now()
	}
}

// awaitRed waits until none of the nodes is ready.
func (r *readiness) awaitRed(nodes ...*node) {
	for _, n := range nodes {
		eventually(n.t, patience, "readiness of "+n.addr+" is red", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return !r.red[n].IsZero()
		})
	}
}

// turned waits until a node has been red since a moment, and is green; it returns how long after the moments that was.
func (r *readiness) turned(n *node, down, up time.Time) (red, green time.Duration) {
	n.t.Helper()
	eventually(n.t, patience, "readiness of "+n.addr+" is red and then green", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		red, green = r.red[n].Sub(down), r.green[n].Sub(up)
		return !r.red[n].IsZero() && !r.green[n].IsZero()
	})
	return red, green
}

// verdict is what the API said to a call, and how long it took.
type verdict struct {
	status int
	code   string
	took   time.Duration
}

func (v verdict) String() string {
	return fmt.Sprintf("%d %s in %s", v.status, v.code, v.took.Round(time.Millisecond))
}

// entryPoints calls everything that there is of a thread on a node, all at once: over HTTP, and a join on a new socket.
func (o *ordeal) entryPoints(n *node, id string) map[string]verdict {
	answers := map[string]verdict{}
	var mu sync.Mutex
	var all sync.WaitGroup
	ask := func(name string, call func() (int, string)) {
		all.Go(func() {
			began := time.Now()
			status, code := call()
			mu.Lock()
			defer mu.Unlock()
			answers[name] = verdict{status, code, time.Since(began)}
		})
	}
	for name, r := range map[string]struct {
		method, path string
		body         any
	}{
		"run":    {http.MethodPost, threadPath(id+" new") + "/runs", load("r1", 1, 0, 0, false)},
		"status": {http.MethodGet, threadPath(id), nil},
		"stop":   {http.MethodPost, threadPath(id) + "/stop", nil},
		"events": {http.MethodGet, threadPath(id) + "/events", nil},
		"list":   {http.MethodGet, "/api/threads", nil},
		"delete": {http.MethodDelete, threadPath(id), nil},
	} {
		ask(name, func() (int, string) {
			status, data, err := n.request(r.method, r.path, r.body)
			if err != nil {
				return 0, err.Error()
			}
			var p problem
			_ = json.Unmarshal(data, &p) // what is no problem has no code
			return status, p.Code
		})
	}
	ask("join", func() (int, string) {
		f := &follower{n: n, thread: id, replay: "raw"}
		defer f.drop()
		err := f.join()
		if err == nil {
			return http.StatusOK, ""
		}
		return http.StatusServiceUnavailable, webtest.Code(err)
	})
	all.Wait()
	return answers
}
