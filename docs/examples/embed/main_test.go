package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves as main does, on a free port, until the test is over.
func start(t *testing.T, path string) (url string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, path) }()
	return "http://" + listener.Addr().String(), func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// get makes a request as a user.
func get(t *testing.T, method, url, token, body string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// events reads a stream to its end.
func events(t *testing.T, response *http.Response) (all []webtest.Event) {
	t.Helper()
	stream, err := webtest.NewStream(response)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := stream.Event()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

func TestItServesAnAgentOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "embed.db")
	url, stop := start(t, path)
	input := `{"threadId":"t1","runId":"r1","state":{},"messages":[{"id":"m1","role":"user","content":"one two three"}],"tools":[],"context":[],"forwardedProps":{}}`
	said := ""
	for _, e := range events(t, get(t, "POST", url+"/agui/parrot", "ann-token", input)) {
		if _, delta, ok := strings.Cut(e.Data, `"delta":"`); ok {
			delta, _, _ = strings.Cut(delta, `"`)
			said += delta
		}
	}
	if said != "one two three " {
		t.Errorf("it said %q", said)
	}
	if response := get(t, "POST", url+"/agui/parrot", "nobody", input); response.StatusCode != 401 {
		t.Errorf("a stranger is answered %s", response.Status)
	}
	if text, err := io.ReadAll(get(t, "GET", url+"/hello", "", "").Body); err != nil || string(text) != "a route of my own\n" {
		t.Errorf("its own route: %q, %v", text, err)
	}
	stop()

	// What the thread holds is in the file.
	url, stop = start(t, path)
	defer stop()
	if got := events(t, get(t, "GET", url+"/agui/threads/t1/events?until=idle", "ann-token", "")); !strings.Contains(fmt.Sprint(got), "one two three ") {
		t.Errorf("after a restart: %v", got)
	}
}

func TestListsAreLive(t *testing.T) {
	url, stop := start(t, filepath.Join(t.TempDir(), "embed.db"))
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lists := map[string]*webtest.Channel{}
	for _, token := range []string{"ann-token", "bob-token"} {
		c, err := webtest.Dial(ctx, url, &webtest.Options{Header: http.Header{"Authorization": {"Bearer " + token}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if lists[token], err = c.Join(ctx, "user", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{"ann-token", "bob-token"} {
		input := fmt.Sprintf(`{"threadId":"of %s","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`, token)
		events(t, get(t, "POST", url+"/agui/parrot", token, input))
	}
	for token, list := range lists {
		for _, want := range []string{"created", "ended"} {
			p, err := list.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			text := string(p.Payload)
			if p.Event != "thread_changed" || !strings.Contains(text, `"`+want+`"`) || !strings.Contains(text, `"of `+token+`"`) {
				t.Errorf("%s is told %s %s, want %s", token, p.Event, text, want)
			}
		}
	}
}

func TestAnAgentThatIsToldNothing(t *testing.T) {
	url, stop := start(t, filepath.Join(t.TempDir(), "embed.db"))
	defer stop()
	got := events(t, get(t, "POST", url+"/agui/parrot", "bob-token", `{"threadId":"t","runId":"r","messages":[]}`))
	if last := got[len(got)-1].Data; !strings.Contains(last, "nothing_said") {
		t.Errorf("it ended with %s", last)
	}
}
