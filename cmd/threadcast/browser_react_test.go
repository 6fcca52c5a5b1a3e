//go:build e2e

package main_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/threadcast/threadcast/persistence/redislog/redistest"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// The page of docs/examples/copilotkit-react, as it is, against the built binary. What it shows must come from threadcast
// alone: a request to anywhere else, an error in the console or a banner is a failure.

func TestBrowserCopilotKitBehindOneAddress(t *testing.T) {
	s := newStory(t)
	page := serveReact(t)
	page.pass(start(t, s.agent()))
	s.tell(page)
}

func TestBrowserCopilotKitFromAnotherOrigin(t *testing.T) {
	s := newStory(t)
	page := serveReact(t)
	page.name(start(t, s.agent(), "--allow-origin", page.url))
	s.tell(page)
}

// The page as "npm run dev" serves it, which is how a developer sees it first: effects run twice there, and Vite passes on what is
// the server's.
func TestBrowserCopilotKitInDevelopment(t *testing.T) {
	s := newStory(t)
	n := start(t, s.agent())
	s.page, s.browser = &reactPage{t: t, url: develop(t, n), nodes: []*node{n}}, startBrowser(t)
	c := s.visit("told")
	c.write("Count for me")
	c.awaitCount(20)
	c.await("the list has the thread", `document.querySelector('[data-thread="told"]')`)
	s.reloaded(c)
	s.agents.Release("enough")
	c.awaitRunning(false)
	s.complete(c)
	c.check(s.page)
}

func TestBrowserCopilotKitOnTwoNodes(t *testing.T) {
	redistest.Need(t)
	s := newStory(t)
	page := serveReact(t)
	page.pass(startCluster(t, 2, s.agent()).nodes...)
	s.tell(page)
}

// counts is an agent that counts until it is released, with a message of its own in each run.
var counts = []agenttest.Step{
	agenttest.Emit(begins), agenttest.Emit(`{"type":"TEXT_MESSAGE_START","messageId":"m-{run}","role":"assistant"}`),
	agenttest.RepeatUntil("enough", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-{run}","delta":"{i} "}`, 40*time.Millisecond),
	agenttest.Emit(`{"type":"TEXT_MESSAGE_END","messageId":"m-{run}"}`), agenttest.Emit(ends),
}

// story is what happens to a thread in two tabs.
type story struct {
	*testing.T
	agents *agenttest.Server
	page   *reactPage
	*browser
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{T: t, agents: agenttest.NewServer(t)}
	s.agents.Handle("counts", counts)
	return s
}

// agent is the flag that makes the counting agent the one that the page asks for.
func (s *story) agent() string { return "--agent=demo=agui:" + s.agents.URL("counts") }

func (s *story) tell(page *reactPage) {
	s.page, s.browser = page, startBrowser(s.T)
	one, two := s.visit("told"), s.visit("elsewhere")
	two.await("the list says that it is empty", `document.querySelector("nav").innerText.includes("Threads appear here")`)

	one.write("Count for me")
	one.awaitCount(20)
	two.await("the other tab's list has the thread by itself", `document.querySelector('[data-thread="told"]')`)
	two.do("open it there", chromedp.Click(chromedp.CSS(`[data-thread="told"] a`)))
	two.awaitCount(one.count())
	s.together(one, two)

	s.reloaded(one)
	s.together(one, two)
	s.reloaded(two)
	s.stopped(two, one)
	s.goesOn(one, two)
	s.listed(one, two)
	one.check(page)
	two.check(page)
}

// together follows the answer in both tabs: neither shows what the other does not.
func (s *story) together(one, two *chat) {
	s.Helper()
	for range 3 {
		two.awaitCount(one.count() + 5)
		one.awaitCount(two.count() + 5)
	}
	one.awaitRunning(true)
	two.awaitRunning(true)
}

// reloaded loads a tab anew in mid answer: what was shown is there again, and goes on.
func (s *story) reloaded(c *chat) {
	s.Helper()
	before := c.count()
	began := time.Now()
	c.do("reload", chromedp.Reload(), chromedp.WaitVisible(textarea))
	c.awaitCount(before)
	measured(s.T, "%d words are shown again %s after a reload", before, time.Since(began).Round(10*time.Millisecond))
	c.awaitCount(c.count() + 10)
	c.awaitRunning(true)
	if got := c.asked(); !slices.Equal(got, []string{"Count for me"}) {
		s.Errorf("after the reload the questions are %q", got)
	}
}

// stopped presses stop in one tab, and expects the end in both.
func (s *story) stopped(here, there *chat) {
	s.Helper()
	here.do("stop", chromedp.Click(sendButton))
	await(s.T, s.agents.Closed(), time.Minute, "the agent's request is closed")
	here.awaitRunning(false)
	there.awaitRunning(false)
	s.complete(here, there)
	if got := stateOf(s.T, s.page.nodes[0], "/told"); got != "stopped" {
		s.Errorf("the server says %s", got)
	}
}

// goesOn asks once more in one tab; the other one, in which nobody does anything, follows.
func (s *story) goesOn(here, there *chat) {
	s.Helper()
	here.write("And again")
	for _, c := range []*chat{here, there} {
		c.await("the second answer is shown", `document.querySelectorAll('[data-testid="copilot-assistant-message"]').length === 2`)
		c.awaitCount(10)
	}
	s.agents.Release("enough")
	here.awaitRunning(false)
	there.awaitRunning(false)
	s.complete(here, there)
	for _, c := range []*chat{here, there} {
		if got := c.asked(); !slices.Equal(got, []string{"Count for me", "And again"}) {
			s.Errorf("the questions are %q", got)
		}
	}
}

// complete expects in both tabs what the server has on record. The one that pressed stop leaves its stream at once, and gets
// what it missed when the list tells it that the run has ended.
func (s *story) complete(tabs ...*chat) {
	s.Helper()
	for _, c := range tabs {
		c.await("the tab shows all that is on record", last+` === `+quote(s.recorded("told")))
	}
}

// listed renames the thread in one tab and deletes it in the other; both lists follow.
func (s *story) listed(one, two *chat) {
	s.Helper()
	one.press("Rename", "told", "A count")
	for _, c := range []*chat{one, two} {
		c.await("the list has the name", `document.querySelector('[data-thread="told"] a').innerText === "A count"`)
	}
	two.do("begin a thread", chromedp.Click(chromedp.CSS("nav .new")))
	two.await("it is empty", `location.hash !== "#told" && !document.querySelector('[data-testid="copilot-user-message"]')`)
	two.write("Count here too")
	two.awaitCount(5)
	one.await("the list has two threads", `document.querySelectorAll("[data-thread]").length === 2`)
	s.agents.Release("enough")
	two.awaitRunning(false)
	two.press("Delete", "told", "")
	for _, c := range []*chat{one, two} {
		c.await("the list has one thread", `document.querySelectorAll("[data-thread]").length === 1 && !document.querySelector('[data-thread="told"]')`)
	}
}

// recorded is the last answer of a thread according to the server.
func (s *story) recorded(id string) string {
	s.Helper()
	var answer struct {
		Messages []struct{ Role, Content string }
	}
	if code := s.page.nodes[0].do(http.MethodGet, "/api/threads/"+id+"/messages", nil, &answer); code != http.StatusOK || len(answer.Messages) == 0 {
		s.Fatalf("the messages of %s: %d, %+v", id, code, answer)
	}
	m := answer.Messages[len(answer.Messages)-1]
	if m.Role != "assistant" {
		s.Errorf("the last message is of the %s", m.Role)
	}
	return strings.TrimSpace(m.Content)
}

// counted is how far text counts from 0, and false if it does not.
func counted(text string) (int, bool) {
	words := strings.Fields(text)
	for i, word := range words {
		if word != strconv.Itoa(i) {
			return i, false
		}
	}
	return len(words), true
}

// awaitCount waits until the last answer has come so far, and sees that it never shows anything but a count from 0.
func (c *chat) awaitCount(n int) {
	c.t.Helper()
	eventually(c.t, time.Minute, fmt.Sprintf("the answer comes to %d", n), func() bool { return c.count() >= n })
}

// count is how far the last answer has come.
func (c *chat) count() int {
	c.t.Helper()
	text := c.answer()
	n, ok := counted(text)
	if !ok {
		c.t.Fatalf("the answer is not a count: %q", text)
	}
	return n
}

// TestBrowserCopilotKitScreenshots writes pictures of the page with the built-in agent, for people to look at.
func TestBrowserCopilotKitScreenshots(t *testing.T) {
	shoot := camera(t)
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=3"}}
	n.launch("127.0.0.1:0")
	s := &story{T: t, page: serveReact(t), browser: startBrowser(t)}
	s.page.pass(n)
	c := s.visit("one")
	shoot(c.tab, "copilotkit-welcome")
	for _, word := range []string{"tool Lisbon", "code", "table"} {
		c.write(word)
		c.awaitAnswered(word)
	}
	shoot(c.tab, "copilotkit-answered")
	phone := s.visit("one")
	phone.do("narrow", chromedp.EmulateViewport(390, 844))
	c.write("long")
	c.await("the long answer begins", last+`.startsWith("What it takes")`)
	c.awaitWords(120)
	shoot(c.tab, "copilotkit-streaming")
	phone.awaitWords(130)
	shoot(phone.tab, "copilotkit-phone")
	c.do("reload", chromedp.Reload(), chromedp.WaitVisible(textarea))
	c.awaitWords(150)
	shoot(c.tab, "copilotkit-reloaded")
	c.do("stop", chromedp.Click(sendButton))
	c.awaitRunning(false)
	shoot(c.tab, "copilotkit-stopped")
	other := s.visit("two")
	other.write("fail")
	other.awaitAnswered("fail")
	other.press("Rename", "one", "What it takes")
	other.await("the list has the name", `document.querySelector('[data-thread="one"] a').innerText === "What it takes"`)
	shoot(other.tab, "copilotkit-failed")
	c.await("the list follows", `document.querySelectorAll("[data-thread]").length === 2`)
	shoot(c.tab, "copilotkit-list")
	n.kill()
	c.write("hello")
	c.await("it says that nothing answers", `!document.querySelector('[data-copilot-running="true"]')`)
	shoot(c.tab, "copilotkit-gone")
}
