package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
	"github.com/threadcast/threadcast/web"
	"github.com/threadcast/threadcast/web/webtest"
)

// byName lets the header X-User say who calls.
func byName(p *web.Parts) {
	p.Identify = func(r *http.Request) (thread.User, error) {
		if name := r.Header.Get("X-User"); name != "" {
			return thread.User(name), nil
		}
		return "", fmt.Errorf("%w: the header X-User is missing", web.ErrUnidentified)
	}
}

// listed is a thread as lists show it.
type listed struct {
	ID, Title, Name, State string
	RunID, AgentID         *string
	Archived               bool
	Queued                 int
	Revision               uint64
}

// listing is a page.
type listing struct {
	Threads []listed
	Next    *string
}

func (l listing) ids() string {
	var ids []string
	for _, t := range l.Threads {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}

// changed is the payload of thread_changed.
type changed struct {
	Change string
	Thread listed
}

// watch joins the list of a user, on a socket of its own.
func (s *site) watch(user string, payload any) (*webtest.Channel, listing) {
	s.Helper()
	ch, err := s.client(webtest.Options{Header: http.Header{"X-User": {user}}}).Join(within(s.T), "user", payload)
	if err != nil {
		s.Fatal(err)
	}
	return ch, decode[listing](s.T, ch.Joined())
}

// change returns the next change of a list.
func (s *site) change(ch *webtest.Channel) changed {
	s.Helper()
	return decode[changed](s.T, []byte(s.next(ch, "thread_changed")))
}

// changes wants the next changes of a list to be these: "<what> <thread> <state>".
func (s *site) changes(ch *webtest.Channel, want ...string) (last changed) {
	s.Helper()
	for _, w := range want {
		last = s.change(ch)
		if got := strings.TrimSpace(last.Change + " " + last.Thread.ID + " " + last.Thread.State); got != w {
			s.Fatalf("got %s, want %s", got, w)
		}
	}
	return last
}

// ask sends a request of a user.
func (s *site) as(user, method, path, body string) (int, string) {
	s.Helper()
	response, text := s.requestWith(http.Header{"X-User": {user}}, method, path, body)
	return response.StatusCode, text
}

func TestAListIsLive(t *testing.T) {
	agent := agenttest.New(held(1))
	s := open(t, plan{agent: agent})
	ch, first := s.watch("", nil)
	if len(first.Threads) != 0 || first.Next != nil {
		t.Fatalf("a new server has threads: %+v", first)
	}
	run := func(id, onBusy string) {
		t.Helper()
		body := `{"runId":"` + id + `","messages":[{"id":"` + id + `","role":"user","content":"Hello"}],"onBusy":"` + onBusy + `"}`
		if response, text := s.request("POST", "/api/threads/t/runs", body); response.StatusCode != 202 {
			t.Fatalf("%d %s", response.StatusCode, text)
		}
	}
	run("r1", "reject")
	got := s.changes(ch, "created t running")
	if got.Thread.Title != "Hello" || got.Thread.Revision != 1 || got.Thread.RunID == nil || *got.Thread.RunID != "r1" {
		t.Errorf("got %+v", got)
	}
	run("r2", "enqueue")
	if got := s.changes(ch, "queued t running"); got.Thread.Queued != 1 {
		t.Errorf("got %+v", got)
	}
	<-agent.Mark("held")
	agent.Release("go")
	s.changes(ch, "ended t finished")
	if got := s.changes(ch, "running t running"); got.Thread.Queued != 0 || *got.Thread.RunID != "r2" {
		t.Errorf("got %+v", got)
	}
	<-agent.Mark("held")
	agent.Release("go")
	s.changes(ch, "ended t finished")
	for _, step := range []struct{ method, body, want string }{
		{"PATCH", `{"name":"Mine"}`, "renamed t finished"},
		{"PATCH", `{"archived":true}`, "archived t finished"},
		{"PATCH", `{"archived":true,"name":"Mine"}`, ""},
		{"PATCH", `{"archived":false,"name":null}`, "unarchived t finished"},
		{"DELETE", "", "deleted t"},
	} {
		if response, text := s.request(step.method, "/api/threads/t", step.body); response.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", step.body, response.StatusCode, text)
		}
		if step.want != "" {
			got = s.changes(ch, step.want)
		}
	}
	if got.Thread.Revision != 9 {
		t.Errorf("the ninth change is %+v", got)
	}
}

func TestAListGoesOnWhereItsSnapshotEnds(t *testing.T) {
	s := open(t, plan{})
	for i := range 5 {
		s.finish(fmt.Sprint("t", i), "r1")
	}
	if response, text := s.request("PATCH", "/api/threads/t1", `{"archived":true}`); response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	ch, page := s.watch("", `{"limit":2}`)
	if page.ids() != "t4 t3" || page.Next == nil {
		t.Fatalf("got %+v", page)
	}
	next, err := ch.Push(within(t), "list", map[string]any{"before": *page.Next, "limit": 2})
	if err != nil {
		t.Fatal(err)
	}
	if more := decode[listing](t, next); more.ids() != "t2 t0" || more.Next != nil {
		t.Errorf("got %+v", more)
	}
	_, whole := s.watch("", `{"archived":true}`)
	if whole.ids() != "t4 t3 t2 t1 t0" || !whole.Threads[3].Archived || whole.Threads[0].Revision != 2 {
		t.Errorf("got %+v", whole)
	}
	s.finish("t0", "r2")
	s.changes(ch, "running t0 running", "ended t0 finished")
	for _, bad := range []string{`{"limit":0}`, `{"limit":201}`, `{"limit":"x"}`, `{"archived":1}`} {
		_, err := s.client(webtest.Options{}).Join(within(t), "user", bad)
		if webtest.Code(err) != "bad_input" {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := ch.Push(within(t), "list", `{"before":"x"}`); webtest.Code(err) != "bad_cursor" {
		t.Errorf("got %v", err)
	}
}

func TestAListIsChangedOnItsSocket(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	ch, _ := s.watch("", nil)
	for _, step := range []struct{ event, payload, want string }{
		{"rename", `{"threadId":"t","name":"Mine"}`, "renamed t finished"},
		{"archive", `{"threadId":"t"}`, "archived t finished"},
		{"archive", `{"threadId":"t","archived":false}`, "unarchived t finished"},
	} {
		reply, err := ch.Push(within(t), step.event, step.payload)
		if err != nil {
			t.Fatal(err)
		}
		got := s.changes(ch, step.want)
		answered := decode[struct{ Thread listed }](t, reply).Thread
		if fmt.Sprint(got.Thread.Revision, got.Thread.Name) != fmt.Sprint(answered.Revision, answered.Name) {
			t.Errorf("answered %+v, pushed %+v", answered, got.Thread)
		}
	}
	if _, err := ch.Push(within(t), "delete", `{"threadId":"t"}`); err != nil {
		t.Fatal(err)
	}
	s.changes(ch, "deleted t")
	for _, bad := range []struct{ event, payload, code string }{
		{"rename", `{"threadId":"t","name":"x"}`, "not_found"},
		{"rename", `{"threadId":"t"}`, "bad_input"},
		{"rename", `{"name":"x"}`, "bad_input"},
		{"rename", `{"threadId":"t","name":"a\nb"}`, "bad_input"},
		{"archive", `{"threadId":"t","archived":"yes"}`, "bad_input"},
		{"delete", `{"threadId":"t"}`, "not_found"},
		{"delete", `{}`, "bad_input"},
		{"run", `{}`, "unknown_event"},
	} {
		if _, err := ch.Push(within(t), bad.event, bad.payload); webtest.Code(err) != bad.code {
			t.Errorf("%s %s: got %v, want %s", bad.event, bad.payload, err, bad.code)
		}
	}
}

func TestThreadsBelongToWhoBeganThem(t *testing.T) {
	s := open(t, plan{parts: byName})
	alice, _ := s.watch("alice", nil)
	bob, _ := s.watch("bob", nil)
	for _, user := range []string{"alice", "bob"} {
		if status, text := s.as(user, "POST", "/api/threads/of-"+user+"/runs", `{"runId":"r1","messages":[]}`); status != 202 {
			t.Fatalf("%d %s", status, text)
		}
	}
	s.changes(alice, "created of-alice running", "ended of-alice finished")
	s.changes(bob, "created of-bob running", "ended of-bob finished")
	for _, r := range []struct {
		user, method, path, body string
		status                   int
	}{
		{"bob", "PATCH", "/api/threads/of-alice", `{"name":"x"}`, 404},
		{"bob", "DELETE", "/api/threads/of-alice", ``, 404},
		{"bob", "GET", "/api/threads/of-alice", ``, 200}, // whoever knows its id may see a thread, for now
		{"bob", "POST", "/api/threads/of-alice/runs", `{"runId":"r2","messages":[]}`, 202},
		{"", "GET", "/api/threads", ``, 401},
		{"", "GET", "/api/agents", ``, 401},
	} {
		status, text := s.as(r.user, r.method, r.path, r.body)
		if status != r.status {
			t.Errorf("%s %s by %q: %d %s", r.method, r.path, r.user, status, text)
		}
		if status == 401 && text != `{"code":"not_authenticated","message":"the header X-User is missing"}` {
			t.Errorf("refused with %s", text)
		}
	}
	if _, err := bob.Push(within(t), "rename", `{"threadId":"of-alice","name":"x"}`); webtest.Code(err) != "not_found" {
		t.Errorf("got %v", err)
	}
	s.changes(alice, "running of-alice running", "ended of-alice finished")
	for _, user := range []string{"alice", "bob"} {
		if _, text := s.as(user, "GET", "/api/threads", ""); decode[listing](t, []byte(text)).ids() != "of-"+user {
			t.Errorf("%s has %s", user, text)
		}
	}
	if status, text := s.as("alice", "DELETE", "/api/threads/of-alice", ""); status != 204 {
		t.Errorf("%d %s", status, text)
	}
	s.changes(alice, "deleted of-alice")
	if status, text := s.as("bob", "POST", "/api/threads/of-alice/runs", `{"runId":"r1","messages":[]}`); status != 202 {
		t.Errorf("%d %s", status, text)
	}
	s.changes(bob, "created of-alice running", "ended of-alice finished")
	_, err := webtest.Dial(within(t), s.url, nil)
	if webtest.Code(err) != "not_authenticated" {
		t.Errorf("a socket of nobody: %v", err)
	}
}

func TestListsAreFilteredOverHTTP(t *testing.T) {
	s := open(t, plan{})
	for i, agent := range []string{"demo", "other", "demo"} {
		body := fmt.Sprintf(`{"runId":"r","agentId":%q,"messages":[]}`, agent)
		if response, text := s.request("POST", fmt.Sprintf("/api/threads/t%d/runs", i), body); response.StatusCode != 202 {
			t.Fatal(text)
		}
		s.saved(fmt.Sprint("t", i), "r")
	}
	if _, text := s.request("PATCH", "/api/threads/t0", `{"archived":true}`); !strings.Contains(text, `"archived":true`) {
		t.Fatal(text)
	}
	for query, want := range map[string]string{
		"": "t2 t1", "?agent=demo": "t2", "?agent=other": "t1", "?agent=none": "", "?archived=true": "t2 t1 t0",
		"?archived=false": "t2 t1", "?agent=demo&archived=true": "t2 t0",
	} {
		_, text := s.request("GET", "/api/threads"+query, "")
		if got := decode[listing](t, []byte(text)).ids(); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	for _, bad := range []struct{ method, path, body string }{
		{"GET", "/api/threads?archived=maybe", ""}, {"PATCH", "/api/threads/t0", `{"name":1}`}, {"PATCH", "/api/threads/t0", ``},
		{"PATCH", "/api/threads/t0", `{"archived":"yes"}`}, {"PATCH", "/api/threads/t0", `{"name":"` + strings.Repeat("x", 513) + `"}`},
	} {
		if response, text := s.request(bad.method, bad.path, bad.body); response.StatusCode != 400 {
			t.Errorf("%s %s %.40s: %d %s", bad.method, bad.path, bad.body, response.StatusCode, text)
		}
	}
}

func TestAListThatMissedSomethingBeginsAnew(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	ch, _ := s.watch("", nil)
	s.hub.MissedLists()
	if payload := s.next(ch, "threads_reset"); payload != "{}" {
		t.Errorf("got %s", payload)
	}
	text, err := ch.Push(within(t), "list", nil)
	if err != nil {
		t.Fatal(err)
	}
	if page := decode[listing](t, text); page.ids() != "t" || page.Threads[0].Revision != 2 {
		t.Errorf("got %+v", page)
	}
}

func TestAListEndsWithItsHub(t *testing.T) {
	s := open(t, plan{})
	ch, _ := s.watch("", nil)
	s.hub.Close()
	s.next(ch, "phx_error")
	if _, err := s.client(webtest.Options{}).Join(within(t), "user", nil); webtest.Code(err) != "draining" {
		t.Errorf("got %v", err)
	}
}

// Nobody reads for a while: memory is bounded, and what comes then is in order.
func TestAViewOfAListThatDoesNotReadGetsTheRest(t *testing.T) {
	s := open(t, plan{pipe: true})
	c := s.client(webtest.Options{})
	ch, err := c.Join(within(t), "user", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.StopReading()
	const rounds, threads = 200, 100
	for revision := range rounds {
		for i := range threads {
			s.hub.Listed(thread.Change{What: thread.Renamed, Thread: thread.Thread{
				ID: thread.ID(fmt.Sprint("t", i)), Title: strings.Repeat("x", 80), Revision: uint64(revision + 1),
			}})
		}
	}
	c.ResumeReading()
	last := map[string]uint64{}
	n := 0
	for got := 0; got < threads; n++ {
		change := s.change(ch)
		if change.Thread.Revision <= last[change.Thread.ID] {
			t.Fatalf("%s goes from %d to %d", change.Thread.ID, last[change.Thread.ID], change.Thread.Revision)
		}
		last[change.Thread.ID] = change.Thread.Revision
		if change.Thread.Revision == rounds {
			got++
		}
	}
	t.Logf("%d of %d changes came", n, rounds*threads)
}

func TestAnIDOfAThreadIsShownAsItIs(t *testing.T) {
	s := open(t, plan{})
	ch, _ := s.watch("", nil)
	const id = `<"é&\>`
	s.start(id, "r1")
	if got := s.change(ch); got.Thread.ID != id {
		t.Errorf("got %+v", got)
	}
	body, _ := json.Marshal(map[string]string{"threadId": id, "name": `<"n"&`})
	if _, err := ch.Push(within(t), "rename", body); err != nil {
		t.Fatal(err)
	}
	for {
		if got := s.change(ch); got.Change == "renamed" {
			if got.Thread.Name != `<"n"&` {
				t.Errorf("got %+v", got)
			}
			return
		}
	}
}
