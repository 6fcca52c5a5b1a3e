package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threadcast/threadcast/web/webtest"
)

// users is how a node is started that is told by a header who calls.
var users = []string{"--user-header", "X-User", "--log-level", "warn"}

// as makes a request of a user. It may be called from any goroutine.
func (n *node) as(user, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-User", user)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// must is as for a request that has to succeed.
func (n *node) must(user, method, path, body string) []byte {
	status, data, err := n.as(user, method, path, body)
	if err != nil || status >= 300 {
		n.t.Errorf("%s %s: %d %s %v", method, path, status, data, err)
	}
	return data
}

// change is what a list tells: natively, or in CopilotKit's form.
type change struct {
	Change string
	Thread struct {
		ID, State, Name string
		Revision        uint64
	}
	Operation, ThreadID, EventType, RunID string
}

// listView is a user's list on a socket of its own, and what it was told.
type listView struct {
	t       testing.TB
	user    string
	channel *webtest.Channel

	mu     sync.Mutex
	told   map[string]int // natively by thread and revision, else by thread
	last   map[string]change
	when   map[string]time.Time // of names
	resets int
}

// list joins a user's list on a node.
func (n *node) list(user string) *listView {
	n.t.Helper()
	return n.view(user, "user", webtest.Options{Header: http.Header{"X-User": {user}}})
}

// metadata joins a user's list as CopilotKit's client does.
func (n *node) metadata(user string) *listView {
	n.t.Helper()
	var page struct{ JoinCode string }
	var ticket struct{ JoinToken string }
	for path, into := range map[string]any{"GET /threads?agentId=demo": &page, "POST /threads/subscribe": &ticket} {
		method, path, _ := strings.Cut(path, " ")
		if err := json.Unmarshal(n.must(user, method, "/api/copilotkit"+path, "{}"), into); err != nil {
			n.t.Fatal(err)
		}
	}
	return n.view(user, "user_meta:"+page.JoinCode, webtest.Options{Path: "/client/websocket?vsn=2.0.0&join_token=" + ticket.JoinToken})
}

func (n *node) view(user, topic string, opts webtest.Options) *listView {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	c, err := webtest.Dial(ctx, n.url, &opts)
	if err != nil {
		n.t.Fatal(err)
	}
	v := &listView{t: n.t, user: user, told: map[string]int{}, last: map[string]change{}, when: map[string]time.Time{}}
	if v.channel, err = c.Join(ctx, topic, nil); err != nil {
		n.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.read()
	}()
	n.t.Cleanup(func() {
		c.Close()
		<-done
	})
	return v
}

// read takes what comes until the socket ends.
func (v *listView) read() {
	for {
		p, err := v.channel.Next(context.Background())
		if err != nil {
			return
		}
		var c change
		if err := json.Unmarshal(p.Payload, &c); err != nil {
			v.t.Errorf("%s %s: %v", p.Event, p.Payload, err)
		}
		v.mu.Lock()
		switch p.Event {
		case "threads_reset":
			v.resets++
		case "thread_changed":
			v.told[fmt.Sprintf("%s %d", c.Thread.ID, c.Thread.Revision)]++
			if c.Thread.Revision > v.last[c.Thread.ID].Thread.Revision {
				v.last[c.Thread.ID] = c
			}
			v.when[c.Thread.Name] = time.Now()
		default:
			v.told[c.ThreadID]++
			v.last[c.ThreadID] = c
		}
		v.mu.Unlock()
	}
}

func (v *listView) has(ok func() bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return ok()
}

// await waits until the view was told of a thread.
func (v *listView) await(thread string) {
	v.t.Helper()
	eventually(v.t, time.Minute, v.user+" is told of "+thread, func() bool {
		return v.has(func() bool { return v.last[thread].Change != "" || v.last[thread].ThreadID != "" })
	})
}

// changesEach is how many changes a life is: created, ended, renamed, archived, deleted.
const changesEach = 5

// live lets a user begin threads, change them and delete them, by one node after the other.
func live(nodes []*node, user string, threads int) {
	forEach(threads, 8, func(i int) {
		path := fmt.Sprintf("/api/threads/%s-%d", user, i)
		turn := i
		ask := func(method, path, body string) {
			nodes[turn%len(nodes)].must(user, method, path, body)
			turn++
		}
		ask("POST", path+"/runs", `{"runId":"r1","messages":[{"id":"m","role":"user","content":"Hello"}],`+
			`"forwardedProps":{"emit":{"count":3,"rate":1000,"bytes":10}}}`)
		ask("PATCH", path, `{"name":"Mine"}`)
		ask("PATCH", path, `{"archived":true}`)
		ask("DELETE", path, "")
	})
}

// checkBurst wants a view to have been told each change of its user's threads once, and nothing of others.
func (v *listView) checkBurst(threads int) {
	v.t.Helper()
	v.await(v.user + "-last")
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for key, times := range v.told {
		switch {
		case !strings.HasPrefix(key, v.user+"-"):
			v.t.Errorf("%s is told of %s", v.user, key)
		case times != 1:
			v.t.Errorf("%s is told %d times of %s", v.user, times, key)
		case !strings.HasPrefix(key, v.user+"-last"):
			n++
		}
	}
	if n != threads*changesEach || v.resets > 0 {
		v.t.Errorf("%s is told of %d changes, want %d; %d resets", v.user, n, threads*changesEach, v.resets)
	}
	for i := range threads {
		for revision := 1; revision <= changesEach; revision++ {
			if key := fmt.Sprintf("%s-%d %d", v.user, i, revision); v.told[key] == 0 {
				v.t.Errorf("%s is not told of %s", v.user, key)
			}
		}
		if last := v.last[fmt.Sprintf("%s-%d", v.user, i)]; last.Change != "deleted" {
			v.t.Errorf("the last that %s is told is %+v", v.user, last)
		}
	}
}

// checkMetadata wants a view in CopilotKit's form to be told of its user's threads only, and that they are gone.
func (v *listView) checkMetadata(threads int) {
	v.t.Helper()
	v.await(v.user + "-last")
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, last := range v.last {
		if !strings.HasPrefix(id, v.user+"-") {
			v.t.Errorf("%s is told of %s", v.user, id)
		}
		if last.Operation != "deleted" && id != v.user+"-last" {
			v.t.Errorf("the last that %s is told is %+v", v.user, last)
		}
	}
	if len(v.last) != threads+1 {
		v.t.Errorf("%s is told of %d threads, want %d", v.user, len(v.last), threads+1)
	}
}

// testLists has two users live on the nodes while all nodes show their lists.
func testLists(t *testing.T, nodes []*node) {
	threads, few := sized(200, 40), 10
	var native, meta []*listView
	for _, n := range nodes {
		for _, user := range []string{"alice", "bob"} {
			native, meta = append(native, n.list(user)), append(meta, n.metadata(user))
		}
	}
	began := time.Now()
	var all sync.WaitGroup
	all.Go(func() { live(nodes, "alice", threads) })
	all.Go(func() { live(nodes, "bob", few) })
	all.Wait()
	took := time.Since(began)
	for _, user := range []string{"alice", "bob"} {
		nodes[0].must(user, "POST", "/api/threads/"+user+"-last/runs", `{"runId":"r1","messages":[]}`)
	}
	want := map[string]int{"alice": threads, "bob": few}
	for i := range native {
		native[i].checkBurst(want[native[i].user])
		meta[i].checkMetadata(want[meta[i].user])
	}
	measured(t, "%d changes, made in %s, were told once each to %d native lists on %d node(s)",
		threads*changesEach, took.Round(time.Millisecond), len(native)/2, len(nodes))
	checkForeign(t, nodes)
	latency(t, nodes[0], nodes[len(nodes)-1])
}

// checkForeign holds that nobody changes the threads of another, or lists them.
func checkForeign(t *testing.T, nodes []*node) {
	for _, n := range nodes {
		for _, r := range []struct{ method, path, body string }{
			{"PATCH", "/api/threads/alice-last", `{"name":"x"}`},
			{"DELETE", "/api/threads/alice-last", ``},
			{"PATCH", "/api/copilotkit/threads/alice-last", `{"name":"x"}`},
			{"POST", "/api/copilotkit/threads/alice-last/archive", `{}`},
			{"DELETE", "/api/copilotkit/threads/alice-last", `{}`},
		} {
			if status, data, err := n.as("bob", r.method, r.path, r.body); status != http.StatusNotFound {
				t.Errorf("bob's %s %s: %d %s %v", r.method, r.path, status, data, err)
			}
			if status, data, err := n.as("", r.method, r.path, r.body); status != http.StatusUnauthorized {
				t.Errorf("nobody's %s %s: %d %s %v", r.method, r.path, status, data, err)
			}
		}
		for _, path := range []string{"/api/threads", "/api/copilotkit/threads?agentId=demo"} {
			if text := string(n.must("bob", "GET", path, "")); strings.Contains(text, "alice") || !strings.Contains(text, "bob-last") {
				t.Errorf("bob's list is %s", text)
			}
		}
	}
}

// latency measures how long a change that is made by one node takes to a list on another.
func latency(t *testing.T, from, to *node) {
	v := to.list("alice")
	var took []time.Duration
	for i := range 50 {
		name := fmt.Sprintf("name %d", i)
		asked := time.Now()
		from.must("alice", "PATCH", "/api/threads/alice-last", fmt.Sprintf(`{"name":%q}`, name))
		eventually(t, time.Minute, name+" is told", func() bool {
			return v.has(func() bool { return !v.when[name].IsZero() })
		})
		v.mu.Lock()
		took = append(took, v.when[name].Sub(asked))
		v.mu.Unlock()
	}
	slices.Sort(took)
	measured(t, "from asking for a change to its arrival in a list: median %s, longest %s",
		took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
}

func TestListsOfTwoUsersNeverMix(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		testLists(t, []*node{start(t, users...)})
	})
	t.Run("two nodes", func(t *testing.T) {
		testLists(t, startClusterOn(t, steady, 2, users...).nodes)
	})
}
