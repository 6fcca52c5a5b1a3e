//go:build e2e

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// reactPage serves the built page of docs/examples/copilotkit-react.
type reactPage struct {
	t     *testing.T
	url   string
	files http.Handler
	nodes []*node
	base  string // of the runtime, if it is elsewhere
	next  atomic.Uint64
}

// runtimePath is where the page looks for the server, unless it was built to look elsewhere.
const runtimePath = "/api/copilotkit"

// runtimeText is how the script of the page has it.
var runtimeText = regexp.MustCompile("([`\"'])" + runtimePath + "[`\"']")

// chatExample is the folder of the page.
var chatExample = filepath.Join("..", "..", "docs", "examples", "copilotkit-react")

// develop starts the development server of the page, which passes on to n, and returns its address.
func develop(t *testing.T, n *node) string {
	t.Helper()
	cmd := exec.Command(filepath.Join("node_modules", ".bin", "vite"), "--host", "127.0.0.1", "--port", "0", "--clearScreen", "false")
	out := &output{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = chatExample, out, out
	cmd.Env = append(cleanEnv(), "THREADCAST_SERVER="+n.url, "NO_COLOR=1")
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start Vite (make e2e installs it): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Vite printed:\n%s", out)
		}
	})
	local := regexp.MustCompile(`Local: +(http://\S+?)/?\s`)
	eventually(t, readyTimeout, "Vite prints its address", func() bool { return local.MatchString(out.String()) })
	return local.FindStringSubmatch(out.String())[1]
}

func serveReact(t *testing.T) *reactPage {
	t.Helper()
	dist := filepath.Join(chatExample, "dist")
	if _, err := os.Stat(filepath.Join(dist, "index.html")); err != nil {
		t.Fatalf("the page is not built (make e2e does it): %v", err)
	}
	p := &reactPage{t: t, files: http.FileServer(http.Dir(dist))}
	srv := httptest.NewServer(p)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	p.url = srv.URL
	return p
}

// pass makes the nodes reachable under the address of the page: requests and sockets go to them in turn.
func (p *reactPage) pass(nodes ...*node) { p.nodes = nodes }

// name lets the page look for a node at its own address, as VITE_RUNTIME_URL does when the page is built.
func (p *reactPage) name(n *node) { p.nodes, p.base = []*node{n}, n.url }

// ServeHTTP serves files, and passes on what is the server's.
func (p *reactPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	theirs := strings.HasPrefix(r.URL.Path, runtimePath) || strings.HasPrefix(r.URL.Path, "/client/")
	switch {
	case theirs && p.base == "":
		n := p.nodes[int(p.next.Add(1))%len(p.nodes)]
		proxy := httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(&url.URL{Scheme: "http", Host: n.addr})
			pr.Out.Host = pr.In.Host
		}}
		proxy.ServeHTTP(w, r)
	case p.base != "" && strings.HasPrefix(r.URL.Path, "/assets/index-") && strings.HasSuffix(r.URL.Path, ".js"):
		p.rewritten(w, r)
	default:
		p.files.ServeHTTP(w, r)
	}
}

// rewritten serves a script of the page with the address of the server in it.
func (p *reactPage) rewritten(w http.ResponseWriter, r *http.Request) {
	plain := httptest.NewRecorder()
	p.files.ServeHTTP(plain, r)
	found := runtimeText.FindAllIndex(plain.Body.Bytes(), -1)
	if len(found) != 1 {
		p.t.Errorf("the script names %s %d times", runtimePath, len(found))
	}
	text := runtimeText.ReplaceAll(plain.Body.Bytes(), []byte("${1}"+p.base+runtimePath+"${1}"))
	w.Header().Set("Content-Type", plain.Header().Get("Content-Type"))
	_, _ = w.Write(text) // the browser asks again
}

// chat is a tab that shows the page.
type chat struct {
	*tab
	seen *sightings
}

// sightings are what a tab asks for, and what goes wrong in it.
type sightings struct {
	mu     sync.Mutex
	urls   []string
	faults []string
	frames []string // of its sockets, the last ones; for who wonders why a test failed
}

func (s *sightings) hear(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev := event.(type) {
	case *network.EventRequestWillBeSent:
		s.urls = append(s.urls, ev.Request.URL)
	case *network.EventWebSocketCreated:
		s.urls = append(s.urls, ev.URL)
	case *network.EventWebSocketFrameReceived:
		s.frame("<", ev.RequestID, string(ev.Response.PayloadData))
	case *network.EventWebSocketFrameSent:
		s.frame(">", ev.RequestID, string(ev.Response.PayloadData))
	case *network.EventWebSocketClosed:
		s.frame("x", ev.RequestID, "")
	case *runtime.EventExceptionThrown:
		s.faults = append(s.faults, ev.ExceptionDetails.Text+" "+written([]*runtime.RemoteObject{ev.ExceptionDetails.Exception}))
	case *runtime.EventConsoleAPICalled:
		text := fmt.Sprintf("console.%s: %s", ev.Type, written(ev.Args))
		bad := ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning
		if bad && !strings.Contains(text, "Lit is in dev mode") { // which a library says of itself, in development
			s.faults = append(s.faults, text)
		}
	}
}

func (s *sightings) frame(way string, socket network.RequestID, text string) {
	s.frames = append(s.frames, fmt.Sprintf("%s %s %.300s", way, socket, text))
	s.frames = s.frames[max(0, len(s.frames)-40):]
}

func written(args []*runtime.RemoteObject) string {
	var words []string
	for _, arg := range slices.DeleteFunc(args, func(arg *runtime.RemoteObject) bool { return arg == nil }) {
		words = append(words, strings.Trim(string(arg.Value), `"`)+arg.Description)
	}
	return strings.Join(words, " ")
}

// Where things are on the page.
var (
	textarea   = chromedp.CSS(`[data-testid="copilot-chat-textarea"]`)
	sendButton = chromedp.CSS(`[data-testid="copilot-send-button"]`)
)

// last is the text of the last answer, as an expression in the page.
const last = `([...document.querySelectorAll('[data-testid="copilot-assistant-message"]')].at(-1)?.firstElementChild.innerText ?? "").trim()`

// visit opens a thread in a window of its own.
func (s *story) visit(thread string) *chat {
	s.Helper()
	seen := &sightings{}
	c := &chat{tab: s.window(chromedp.WithListener(seen.hear)), seen: seen}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("the window of %s saw\n%s", thread, strings.Join(seen.frames, "\n"))
		}
	})
	c.do("open "+thread, chromedp.Navigate(s.page.url+"/#"+thread), chromedp.WaitVisible(textarea))
	return c
}

// write sends a message, once the page takes one.
func (c *chat) write(text string) {
	c.t.Helper()
	c.do("write "+text, chromedp.SendKeys(textarea, text))
	c.await("it can be sent", `!document.querySelector('[data-testid="copilot-send-button"]').disabled`)
	c.do("send "+text, chromedp.Click(sendButton))
}

// press presses a button of a thread in the list, and answers what the page asks then.
func (c *chat) press(title, thread, answer string) {
	c.t.Helper()
	eval[bool](c.tab, `(window.confirm = () => true, window.prompt = () => `+quote(answer)+`, true)`)
	eval[bool](c.tab, `(document.querySelector('[data-thread="`+thread+`"] [title="`+title+`"]').click(), true)`)
}

// answer is the text of the last answer.
func (c *chat) answer() string { return eval[string](c.tab, last) }

// asked is what the page shows as written by the user.
func (c *chat) asked() []string {
	return eval[[]string](c.tab, `[...document.querySelectorAll('[data-testid="copilot-user-message"]')].map(e => e.innerText.trim())`)
}

func (c *chat) awaitRunning(running bool) {
	c.t.Helper()
	c.await(fmt.Sprintf("the chat is running: %t", running), fmt.Sprintf(`document.querySelector('[data-copilot-running="%t"]')`, running))
}

// awaitAnswered waits until a question is shown, something after it, and the run is over.
func (c *chat) awaitAnswered(question string) {
	c.t.Helper()
	c.await(question+" is shown", `[...document.querySelectorAll('[data-testid="copilot-user-message"]')].at(-1)?.innerText.trim() === `+quote(question))
	c.await(question+" is answered", `document.querySelector('[data-copilot-running="false"]') && [...document.querySelectorAll(
		'[data-testid="copilot-user-message"], [data-testid="copilot-assistant-message"]')].at(-1).dataset.testid === "copilot-assistant-message"`)
}

func (c *chat) awaitWords(n int) {
	c.t.Helper()
	eventually(c.t, time.Minute, "the answer grows", func() bool { return len(strings.Fields(c.answer())) >= n })
}

// check sees that the tab has asked nobody but the page's server and the nodes, and that nothing went wrong in it.
func (c *chat) check(p *reactPage) {
	c.t.Helper()
	if banner := eval[bool](c.tab, `Boolean(document.querySelector('main > [role="alert"], nav > [role="alert"]'))`); banner {
		c.t.Error("the page shows an error")
	}
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	home := map[string]bool{strings.TrimPrefix(p.url, "http://"): true}
	for _, n := range p.nodes {
		home[n.addr] = true
	}
	for _, asked := range c.seen.urls {
		u, err := url.Parse(asked)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && !home[u.Host] {
			c.t.Errorf("the page asked for %s", asked)
		}
	}
	if len(c.seen.urls) == 0 {
		c.t.Error("nothing was seen of what the page asks for")
	}
	for _, fault := range c.seen.faults {
		c.t.Errorf("in the page: %s", fault)
	}
}
