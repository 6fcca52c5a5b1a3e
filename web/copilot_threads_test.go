package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/web/webtest"
)

// chats is a page of threads as CopilotKit's clients get it.
type chats struct {
	Threads []struct {
		ID, AgentID, CreatedByID string
		Name                     *string
		Archived                 bool
	}
	JoinCode   string
	NextCursor *string
}

func (c chats) ids() string {
	var ids []string
	for _, t := range c.Threads {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}

func (s *site) chats(user, query string) chats {
	s.Helper()
	status, text := s.as(user, "GET", copilotPath+"/threads?agentId=demo"+query, "")
	if status != 200 {
		s.Fatalf("%d %s", status, text)
	}
	return decode[chats](s.T, []byte(text))
}

// followed is a client that follows a list in CopilotKit's form.
type followed struct {
	*webtest.Channel
	client *webtest.Client
	token  string
}

// tokenOf asks for a ticket of a list.
func (s *site) tokenOf(user string) string {
	s.Helper()
	status, text := s.as(user, "POST", copilotPath+"/threads/subscribe", "{}")
	if status != 200 {
		s.Fatalf("%d %s", status, text)
	}
	return decode[struct{ JoinToken string }](s.T, []byte(text)).JoinToken
}

func (s *site) follow(code, token string) followed {
	s.Helper()
	c := s.client(webtest.Options{Path: "/client/websocket?join_token=" + token + "&vsn=2.0.0"})
	ch, err := c.Join(within(s.T), "user_meta:"+code, nil)
	if err != nil {
		s.Fatal(err)
	}
	return followed{ch, c, token}
}

// told wants the next pushes to be these: "<operation> <thread>", or "<event type> <run>".
func (s *site) told(f followed, want ...string) {
	s.Helper()
	for _, w := range want {
		p, err := f.Next(within(s.T))
		if err != nil {
			s.Fatalf("%v, want %s", err, w)
		}
		got := decode[struct{ Operation, ThreadID, EventType, RunID, LatestEventID string }](s.T, p.Payload)
		line := strings.TrimSpace(got.Operation + " " + got.ThreadID)
		if p.Event == "thread_run_activity" {
			line = got.EventType + " " + got.RunID + " " + got.LatestEventID
		}
		if line != w {
			s.Fatalf("got %s %s, want %s", p.Event, p.Payload, w)
		}
	}
}

func TestCopilotThreads(t *testing.T) {
	s := open(t, plan{parts: byName})
	for i := range 3 {
		path := fmt.Sprintf("/api/threads/t%d/runs", i)
		body := fmt.Sprintf(`{"runId":"r1","messages":[{"id":"u%d","role":"user","content":"Hello %d"}]}`, i, i)
		if status, text := s.as("alice", "POST", path, body); status != 202 {
			t.Fatalf("%d %s", status, text)
		}
		s.saved(fmt.Sprint("t", i), "r1")
	}
	first := s.chats("alice", "&limit=2")
	if first.ids() != "t2 t1" || first.NextCursor == nil || first.JoinCode == "" || *first.Threads[0].Name != "Hello 2" ||
		first.Threads[0].AgentID != "demo" || first.Threads[0].CreatedByID != "alice" {
		t.Fatalf("got %+v", first)
	}
	if next := s.chats("alice", "&limit=2&cursor="+url.QueryEscape(*first.NextCursor)); next.ids() != "t0" || next.NextCursor != nil {
		t.Errorf("got %+v", next)
	}
	if none := s.chats("bob", ""); none.ids() != "" {
		t.Errorf("bob has %+v", none)
	}
	alice, bob := s.follow(first.JoinCode, s.tokenOf("alice")), s.follow("any", s.tokenOf("bob"))
	for _, step := range []struct{ method, path, body, want string }{
		{"PATCH", "/threads/t0", `{"agentId":"demo","name":"Mine"}`, "renamed t0"},
		{"POST", "/threads/t0/archive", `{"agentId":"demo"}`, "archived t0"},
		{"PATCH", "/threads/t0", `{"agentId":"demo","archived":false}`, "unarchived t0"},
		{"POST", "/threads/t0/archive", `{"agentId":"demo"}`, "archived t0"},
		{"POST", "/threads/t0/unarchive", `{}`, "unarchived t0"},
		{"POST", "", `{"method":"resource/request","params":{"path":"/threads/t0","httpMethod":"PATCH"},"body":{"agentId":"demo","name":"Ours"}}`, "renamed t0"},
		{"DELETE", "/threads/t0", `{"agentId":"demo"}`, "deleted t0"},
	} {
		if status, text := s.as("bob", step.method, copilotPath+step.path, step.body); status != 404 {
			t.Errorf("bob's %s %s: %d %s", step.method, step.path, status, text)
		}
		if status, text := s.as("alice", step.method, copilotPath+step.path, step.body); status >= 300 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, status, text)
		}
		s.told(alice, step.want)
	}
	if left := s.chats("alice", "&includeArchived=true"); left.ids() != "t2 t1" {
		t.Errorf("left is %+v", left)
	}
	if status, text := s.as("bob", "POST", "/api/threads/his/runs", `{"runId":"r1","messages":[]}`); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	s.told(bob, "created his", "RUN_STARTED r1 1-0", "updated his", "RUN_FINISHED r1 1-10")
	if status, text := s.as("alice", "POST", "/api/threads/t1/runs", `{"runId":"r2","messages":[]}`); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	s.told(alice, "updated t1", "RUN_STARTED r2 2-0", "updated t1", "RUN_FINISHED r2 2-10")
}

func TestCopilotThreadsAreRefused(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/threads/clear", `{}`, 405}, {"DELETE", "/threads/clear", ``, 404}, {"PATCH", "/threads/no", `{"name":"x"}`, 404},
		{"POST", "/threads/no/archive", `{}`, 404}, {"GET", "/threads/no/messages", ``, 404}, {"GET", "/threads?limit=0", ``, 400},
		{"GET", "/threads?cursor=x", ``, 400}, {"PATCH", "/threads/t", `{"name":7}`, 400}, {"PATCH", "/threads/t", `x`, 400},
		{"PUT", "/threads/t", `{}`, 405},
	} {
		if response, text := s.request(r.method, copilotPath+r.path, r.body); response.StatusCode != r.status {
			t.Errorf("%s %s: %d %s", r.method, r.path, response.StatusCode, text)
		}
	}
	if response, _ := s.request("POST", ssePath+"/threads/subscribe", `{}`); response.StatusCode != 404 {
		t.Errorf("a ticket in SSE mode: %d", response.StatusCode)
	}
	response, text := s.request("GET", ssePath+"/threads?agentId=demo", "")
	if page := decode[chats](t, []byte(text)); response.StatusCode != 200 || page.ids() != "t" || page.JoinCode != "" {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	f := s.follow("c", s.tokenOf(""))
	for _, topic := range []string{"user", "thread:t", "user_meta:memories:c", "project_meta:c"} {
		if _, err := f.client.Join(within(t), topic, nil); webtest.Code(err) != "unmatched_topic" {
			t.Errorf("%s: got %v", topic, err)
		}
	}
	if _, err := f.Push(within(t), "anything", nil); webtest.Code(err) != "unknown_event" {
		t.Errorf("got %v", err)
	}
}

func TestCopilotThreadIsInspected(t *testing.T) {
	s := open(t, plan{})
	body := `{"runId":"r1","messages":[{"id":"u","role":"user","content":"Hello"}]}`
	if response, text := s.request("POST", "/api/threads/t/runs", body); response.StatusCode != 202 {
		t.Fatal(text)
	}
	s.saved("t", "r1")
	for path, want := range map[string]string{
		"messages": `{"messages":[{"id":"u","role":"user","content":"Hello"},{"id":"m-r1","role":"assistant","content":"0 1 2 3 4 "}]}`,
		"state":    `{"state":{}}`,
	} {
		if _, text := s.request("GET", copilotPath+"/threads/t/"+path, ""); strings.ReplaceAll(text, "1 2 3 4 5 ", "0 1 2 3 4 ") != want {
			t.Errorf("%s: got %s", path, text)
		}
	}
	_, text := s.request("GET", copilotPath+"/threads/t/events", "")
	events := decode[struct{ Events []struct{ Type string } }](t, []byte(text)).Events
	if len(events) < 4 || events[0].Type != "RUN_STARTED" || events[len(events)-1].Type != "RUN_FINISHED" {
		t.Errorf("got %s", text)
	}
}

// A client subscribes again only for another code: who follows keeps it, and who may have given up finds a new one, also while
// others follow.
func TestTheCodeOfAListChangesWhenSomebodyIsGone(t *testing.T) {
	s := open(t, plan{parts: byName})
	one, two := s.chats("alice", "").JoinCode, s.chats("alice", "").JoinCode
	if one == two {
		t.Errorf("nobody follows, and the code stays %s", one)
	}
	f := s.follow(two, s.tokenOf("alice"))
	if got := s.chats("alice", "").JoinCode; got != two {
		t.Errorf("the code of who follows goes from %s to %s", two, got)
	}
	if got := s.chats("bob", "").JoinCode; got == two {
		t.Error("two users have one code")
	}
	again := s.follow(two, f.token) // a ticket of a list is good for many sockets
	f.client.Close()
	three := s.otherCode("alice", two)
	if got := s.chats("alice", "").JoinCode; got != three {
		t.Errorf("the code goes from %s to %s while nobody comes or goes", three, got)
	}
	last := s.follow(three, f.token)
	again.client.Close() // it had an older one
	if got := s.chats("alice", "").JoinCode; got != three {
		t.Errorf("the code of who follows goes from %s to %s", three, got)
	}
	last.client.Close()
	s.otherCode("alice", three)
}

// otherCode waits until a user's lists come with another code.
func (s *site) otherCode(user, than string) string {
	s.Helper()
	for ctx := within(s.T); ctx.Err() == nil; {
		if got := s.chats(user, "").JoinCode; got != than {
			return got
		}
	}
	s.Fatalf("the code stays %s", than)
	return ""
}

func TestAListInCopilotsFormTellsTheLatestAfterAGap(t *testing.T) {
	s := open(t, plan{})
	s.finish("t", "r1")
	s.finish("u", "r1")
	f := s.follow("c", s.tokenOf(""))
	s.hub.MissedLists()
	s.told(f, "updated u", "updated t")
}

func TestATicketOfAListIsForItsUser(t *testing.T) {
	s := open(t, plan{parts: byName})
	f := s.follow("c", s.tokenOf("alice"))
	header := http.Header{"X-User": {"bob"}} // whoever's socket it is, the ticket says whose list
	c := s.client(webtest.Options{Path: "/client/websocket?join_token=" + f.token + "&vsn=2.0.0", Header: header})
	ch, err := c.Join(within(t), "user_meta:other", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"bob", "alice"} {
		if status, text := s.as(user, "POST", "/api/threads/of-"+user+"/runs", `{"runId":"r1","messages":[]}`); status != 202 {
			t.Fatalf("%d %s", status, text)
		}
		s.saved("of-"+user, "r1")
	}
	for _, each := range []followed{f, {Channel: ch}} {
		s.told(each, "created of-alice", "RUN_STARTED r1 1-0", "updated of-alice", "RUN_FINISHED r1 1-10")
	}
}
