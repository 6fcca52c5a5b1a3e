//go:build e2e

package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browser is a real Chromium with a profile of its own.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("these tests need Chromium (apt-get install chromium): %v", err)
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.Headless, chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 860),
	}
	for _, flag := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
	} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser is gone
		cancel()
		cancelAlloc()
	})
	return &browser{t: t, ctx: ctx}
}

// tab is one page in the browser.
type tab struct {
	t     *testing.T
	ctx   context.Context
	close context.CancelFunc
}

func (b *browser) open(url string) *tab {
	b.t.Helper()
	tb := b.window()
	tb.do("open "+url, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`[data-testid="composer"]`)))
	return tb
}

// window opens an empty window.
func (b *browser) window(opts ...chromedp.ContextOption) *tab {
	b.t.Helper()
	// A window of its own: in a tab that is not in front nothing is painted.
	ctx, cancel := chromedp.NewContext(b.ctx, append(opts, chromedp.WithNewBrowserContext())...)
	tb := &tab{t: b.t, ctx: ctx, close: cancel}
	b.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the window lives as long as the context of the first call
		b.t.Fatalf("open a window: %v", err)
	}
	return tb
}

// do runs actions, which must be done within half a minute.
func (tb *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tb.t.Fatalf("%s: %v", what, err)
	}
}

// run runs an action that has a value.
func run[T any](tb *tab, what string, action chromedp.Action[T]) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		tb.t.Fatalf("%s: %v", what, err)
	}
	return v
}

// eval evaluates an expression in the page.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	return run(tb, expression, chromedp.Evaluate[T](expression))
}

// await waits until an expression holds in the page.
func (tb *tab) await(what, expression string) {
	tb.t.Helper()
	eventually(tb.t, 60*time.Second, what, func() bool { return eval[bool](tb, "Boolean("+expression+")") })
}

// say sends a message.
func (tb *tab) say(text string) {
	tb.t.Helper()
	tb.do("write "+text, chromedp.SendKeys(chromedp.CSS(`[data-testid="composer"]`), text))
	tb.do("send "+text, chromedp.Click(chromedp.CSS(`[data-testid="send"]`)))
}

// shown is the text of the assistant's messages as the page shows them.
func (tb *tab) shown() string {
	return eval[string](tb, `[...document.querySelectorAll('[data-testid="message"][data-role="assistant"]')].map(e => e.innerText).join("\n")`)
}

// text is what the assistant has said according to the page's log.
func (tb *tab) text() string { return eval[string](tb, "window.__threadcast.text()") }

func (tb *tab) awaitWords(n int) {
	tb.t.Helper()
	eventually(tb.t, 60*time.Second, "the answer grows", func() bool { return len(strings.Fields(tb.text())) >= n })
}

func (tb *tab) awaitState(state string) {
	tb.t.Helper()
	tb.await("the run is "+state, `document.querySelector('[data-testid="run-state"]')?.dataset.state === "`+state+`"`)
}

func (tb *tab) awaitLink(state string) {
	tb.t.Helper()
	tb.await("the page is "+state, `document.querySelector('[data-testid="pill"]')?.dataset.state === "`+state+`"`)
}

func (tb *tab) address() string { return eval[string](tb, "location.href") }

// stateOf asks the server how a thread stands.
func stateOf(t *testing.T, n *node, address string) string {
	t.Helper()
	id := address[strings.LastIndex(address, "/")+1:]
	resp, err := client.Get(n.url + "/api/threads/" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var thread struct {
		State string `json:"state"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&thread); err != nil {
		t.Fatal(err)
	}
	return thread.State
}

// startPage starts a node whose demo writes quickly, and a browser.
func startPage(t *testing.T) (*node, *browser) {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), env: []string{"THREADCAST_DEMO_SPEED=3"}}
	n.launch("127.0.0.1:0")
	page, err := client.Get(n.url + "/")
	if err != nil {
		t.Fatalf("the page does not answer: %v", err)
	}
	_ = page.Body.Close()
	if page.Header.Get("Content-Security-Policy") == "" {
		t.Error("the page comes without a content security policy")
	}
	return n, startBrowser(t)
}

func TestBrowserReloadInMidAnswer(t *testing.T) {
	n, b := startPage(t)
	tb := b.open(n.url)
	tb.say("long")
	tb.awaitWords(60)
	before := tb.text()
	tb.do("reload", chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`[data-testid="composer"]`)))
	tb.await("all is there again", `window.__threadcast.text().startsWith(`+quote(before)+`)`)
	tb.awaitState("running")
	tb.awaitWords(len(strings.Fields(before)) + 40)
	tb.awaitState("finished")
	if got := stateOf(t, n, tb.address()); got != "finished" {
		t.Errorf("the server says %s", got)
	}
}

func TestBrowserTwoTabsShowTheSame(t *testing.T) {
	n, b := startPage(t)
	one := b.open(n.url)
	one.say("long")
	one.awaitWords(40)
	two := b.open(one.address())
	two.awaitWords(40)
	for range 5 {
		first := one.text()
		two.await("the second tab shows what the first one did", `window.__threadcast.text().startsWith(`+quote(first)+`)`)
		second := two.text()
		one.await("and the first what the second did", `window.__threadcast.text().startsWith(`+quote(second)+`)`)
		one.awaitWords(len(strings.Fields(first)) + 20)
	}
	one.awaitState("finished")
	two.awaitState("finished")
	if one.text() != two.text() || one.shown() != two.shown() || len(one.text()) < 1000 {
		t.Errorf("the tabs differ at the end:\n%s\n---\n%s", one.shown(), two.shown())
	}
}

func TestBrowserCloseAllAndComeBack(t *testing.T) {
	n, b := startPage(t)
	tb := b.open(n.url)
	tb.say("long")
	tb.awaitWords(30)
	address := tb.address()
	before := tb.text()
	tb.close()
	eventually(t, time.Minute, "the run ends without viewers", func() bool { return stateOf(t, n, address) == "finished" })
	again := b.open(address)
	again.awaitState("finished")
	again.await("the answer is whole", `window.__threadcast.text().startsWith(`+quote(before)+`)`)
	if words := len(strings.Fields(again.text())); words < 300 {
		t.Errorf("the answer has %d words", words)
	}
}

func TestBrowserStopInTheOtherTab(t *testing.T) {
	n, b := startPage(t)
	one := b.open(n.url)
	one.say("long")
	one.awaitWords(30)
	two := b.open(one.address())
	two.awaitState("running")
	two.do("stop", chromedp.Click(chromedp.CSS(`[data-testid="stop"]`)))
	two.awaitState("stopped")
	one.awaitState("stopped")
	if one.text() != two.text() {
		t.Errorf("the tabs differ:\n%s\n---\n%s", one.text(), two.text())
	}
	if got := stateOf(t, n, one.address()); got != "stopped" {
		t.Errorf("the server says %s", got)
	}
	one.say("hello again")
	one.awaitState("running")
	one.awaitState("finished")
	two.awaitState("finished")
}

func TestBrowserServerGoesAndComesBack(t *testing.T) {
	n, b := startPage(t)
	tb := b.open(n.url)
	tb.say("long")
	tb.awaitWords(30)
	before := tb.text()
	n.kill()
	tb.await("the page says so", `document.querySelector('[data-testid="pill"]')?.dataset.state !== "connected"`)
	n.restart()
	tb.awaitLink("connected")
	tb.await("the run is shown as lost", `document.querySelector('[data-testid="error-notice"]')?.dataset.code === "lost"`)
	if got := tb.text(); !strings.HasPrefix(got, before) {
		t.Errorf("what was shown is gone:\n%s\n---\n%s", before, got)
	}
	tb.say("hello")
	tb.awaitState("finished")
}

func TestBrowserApproval(t *testing.T) {
	n, b := startPage(t)
	tb := b.open(n.url)
	tb.say("approve")
	tb.awaitState("waiting")
	other := b.open(tb.address())
	other.do("approve", chromedp.Click(chromedp.CSS(`[data-testid="approve"]`)))
	other.awaitState("finished")
	tb.awaitState("finished")
	tb.await("no question is left", `!document.querySelector('[data-testid="interrupt"]')`)
	if got := stateOf(t, n, tb.address()); got != "finished" {
		t.Errorf("the server says %s", got)
	}
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// camera returns what writes a picture of a tab into the folder that SCREENSHOTS names.
func camera(t *testing.T) (shoot func(tb *tab, name string)) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	return func(tb *tab, name string) {
		png := run(tb, "screenshot", chromedp.CaptureScreenshot())
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBrowserScreenshots writes pictures of the page into the folder that SCREENSHOTS names, for people to look at.
func TestBrowserScreenshots(t *testing.T) {
	shoot := camera(t)
	n, b := startPage(t)
	tb := b.open(n.url)
	tb.awaitLink("connected")
	shoot(tb, "welcome")
	tb.say("tool Lisbon")
	tb.awaitState("finished")
	tb.say("code")
	tb.awaitState("finished")
	tb.say("table")
	tb.awaitState("finished")
	shoot(tb, "answered")
	tb.say("long")
	tb.awaitWords(200)
	shoot(tb, "streaming")
	phone := b.open(tb.address())
	phone.do("narrow", chromedp.EmulateViewport(390, 844))
	phone.awaitWords(220)
	shoot(phone, "phone-streaming")
	tb.do("stop", chromedp.Click(chromedp.CSS(`[data-testid="stop"]`)))
	tb.awaitState("stopped")
	shoot(tb, "stopped")
	tb.say("fail")
	tb.awaitState("failed")
	shoot(tb, "failed")
	tb.say("state")
	tb.awaitState("finished")
	shoot(tb, "state")
	tb.say("reasoning")
	tb.awaitState("finished")
	tb.say("approve")
	tb.awaitState("waiting")
	shoot(tb, "waiting")
	n.kill()
	tb.await("the page says so", `document.querySelector('[data-testid="pill"]')?.dataset.state !== "connected"`)
	shoot(tb, "reconnecting")
}
