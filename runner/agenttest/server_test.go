package agenttest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agenttest"
)

// post asks the agent at an address. The response's body is closed when the test is over.
func post(t *testing.T, ctx context.Context, address, body string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

const body = `{"threadId":"t1","runId":"r1"}`

func TestServerStreams(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Handle("a", []agenttest.Step{
		agenttest.Emit(`{"t":"{thread}","r":"{run}"}`),
		agenttest.SSE(": {run}\r\n", agenttest.ByteByByte),
		agenttest.Repeat(2, "{i}", time.Millisecond),
	})
	srv.Handle("b c", []agenttest.Step{agenttest.Emit("other")})
	resp := post(t, t.Context(), srv.URL("a"), body)
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v, %v", resp.Header, err)
	}
	want := "data: {\"t\":\"t1\",\"r\":\"r1\"}\n\n: r1\r\ndata: 0\n\ndata: 1\n\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	if got, err = io.ReadAll(post(t, t.Context(), srv.URL("b c"), `{}`).Body); err != nil || string(got) != "data: other\n\n" {
		t.Errorf("the other agent streams %q, %v", got, err)
	}
	if inputs := srv.Inputs(); srv.Invocations() != 2 || string(inputs[0]) != body || string(inputs[1]) != `{}` {
		t.Errorf("it keeps the inputs %s", inputs)
	}
	if len(srv.Closed()) != 0 {
		t.Error("a client that read to the end counts as one that hung up")
	}
}

func TestServerPlaysWhatItIsAsked(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.HandleFunc("a", func(input []byte) ([]agenttest.Step, error) {
		if strings.Contains(string(input), "r2") {
			return nil, errors.New("not that")
		}
		return []agenttest.Step{agenttest.Emit(string(input)), agenttest.Emit("{run}")}, nil
	})
	got, err := io.ReadAll(post(t, t.Context(), srv.URL("a"), body).Body)
	if want := "data: " + body + "\n\ndata: r1\n\n"; err != nil || string(got) != want {
		t.Errorf("it streams %q, %v", got, err)
	}
	resp := post(t, t.Context(), srv.URL("a"), `{"threadId":"t1","runId":"r2"}`)
	if got, _ = io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || string(got) != "not that\n" {
		t.Errorf("what it cannot play is answered %s %q", resp.Status, got)
	}
	if srv.Invocations() != 2 {
		t.Errorf("it counts %d runs", srv.Invocations())
	}
}

func TestServerRefuses(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Handle("a", nil)
	for address, want := range map[string]int{srv.URL("a"): http.StatusBadRequest, srv.URL("b"): http.StatusNotFound} {
		text := "not JSON"
		if want == http.StatusNotFound {
			text = body
		}
		if resp := post(t, t.Context(), address, text); resp.StatusCode != want {
			t.Errorf("%s gives %s", address, resp.Status)
		}
	}
	if srv.Invocations() != 0 {
		t.Error("a refused request counts as a run")
	}
}

func TestServerFlushesAtEachStep(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Handle("a", []agenttest.Step{agenttest.Emit("1"), agenttest.WaitFor("go"), agenttest.Emit("2")})
	resp := post(t, t.Context(), srv.URL("a"), body)
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	srv.Release("go")
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "data: 2\n\n" {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestServerNoticesWhoHangsUp(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Handle("a", []agenttest.Step{agenttest.Mark("here"), agenttest.WaitFor("never")})
	ctx, cancel := context.WithCancel(t.Context())
	post(t, ctx, srv.URL("a"), body)
	<-srv.Mark("here")
	cancel()
	if got, want := <-srv.Closed(), (agenttest.Hangup{Agent: "a", ThreadID: "t1", RunID: "r1"}); got != want {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestServerCutsTheConnection(t *testing.T) {
	for name, step := range map[string]agenttest.Step{"by a panic": agenttest.Panic("boom"), "by a failure": agenttest.Fail(errors.New("x"))} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t)
			srv.Handle("a", []agenttest.Step{agenttest.Emit("1"), step})
			got, err := io.ReadAll(post(t, t.Context(), srv.URL("a"), body).Body)
			if string(got) != "data: 1\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %q, %v", got, err)
			}
			if len(srv.Closed()) != 0 {
				t.Error("the client is blamed for it")
			}
		})
	}
}

func TestServerClosesWithScriptsThatHang(t *testing.T) {
	var kept *agenttest.Server
	t.Run("a test that leaves a run behind", func(t *testing.T) {
		kept = agenttest.NewServer(t)
		kept.Handle("a", []agenttest.Step{agenttest.Mark("here"), agenttest.Hang("never"), agenttest.Hang("nor this"), agenttest.Mark("gone")})
		post(t, t.Context(), kept.URL("a"), body)
		<-kept.Mark("here")
	})
	<-kept.Mark("gone")
}

func TestServerKeepsWhatItEmits(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Record = true
	srv.Handle("a", []agenttest.Step{
		agenttest.RepeatUntil("over {run}", "{run} {i}", time.Millisecond), agenttest.Emit("last"),
	})
	resp := post(t, t.Context(), srv.URL("a"), body)
	lines := bufio.NewReader(resp.Body)
	for range 5 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	srv.Release("over r1")
	if _, err := io.ReadAll(lines); err != nil {
		t.Fatal(err)
	}
	got := srv.Emitted("t1", "r1")
	if n := len(got); n < 3 || string(got[0]) != "r1 0" || string(got[n-2]) != fmt.Sprint("r1 ", n-2) || string(got[n-1]) != "last" {
		t.Errorf("it has kept %q", got)
	}
	if other := srv.Emitted("t1", "r2"); other != nil {
		t.Errorf("of another run it has kept %q", other)
	}
	if n := srv.Waiting("over r1"); n != 0 {
		t.Errorf("%d scripts wait", n)
	}
}
