package webtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/threadcast/threadcast/web/webtest"
)

// answers are what the server says to everything on a topic, by topic.
var answers = map[string]string{
	"thread:new":     `{"cursor":"0-0","resumed":false}`,
	"thread:now":     `{"cursor":"3-120","resumed":true}`,
	"thread:resumes": `{"cursor":"1-5","resumed":true}`,
	"thread:gone":    `{"cursor":"0-0","resumed":false}`,
}

// script is a server that answers what clients send, by frame, and closes with 4321 on "bye".
func script(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("vsn") == "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"code":"bad_input","message":"no vsn"}`)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"phoenix"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := context.Background()
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		text := string(data)
		switch {
		case kind == websocket.MessageBinary:
			text = `[null,null,"t","binary",{}]`
		case text == "bye":
			_ = conn.Close(4321, "")
			return
		case text == "flood":
			text = `[null,null,"t","flood",{"x":"` + strings.Repeat("x", 1<<16) + `"}]`
			for range 100 {
				if conn.Write(ctx, websocket.MessageText, []byte(text)) != nil {
					return
				}
			}
		case text == "ping":
			pinged, cancel := context.WithTimeout(ctx, time.Second)
			reading := conn.CloseRead(ctx)
			err := conn.Ping(pinged)
			cancel()
			_ = conn.CloseNow()
			<-reading.Done()
			if err == nil {
				panic("the ping was answered")
			}
			return
		default:
			var joinRef, ref, topic string
			fmt.Sscanf(strings.NewReplacer(",", " ", `"`, "", "[", "").Replace(text), "%s %s %s", &joinRef, &ref, &topic)
			if joinRef != "null" {
				joinRef = `"` + joinRef + `"`
			}
			answer := `{"status":"ok","response":{"n": 1e400}}`
			if joined, ok := answers[topic]; ok {
				answer = `{"status":"ok","response":` + joined + `}`
			}
			if strings.Contains(text, "refuse") {
				answer = `{"status":"error","response":{"code":"bad_input","message":"no"}}`
			}
			text = fmt.Sprintf(`[%s,"%s","%s","phx_reply",%s]`, joinRef, ref, topic, answer)
			push := fmt.Sprintf(`[%s,null,"%s","later",{"n": 1}]`, joinRef, topic)
			if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
				return
			}
			text = push
		}
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return
		}
	}
}

// serve serves script in memory until the test ends.
func serve(t *testing.T) *webtest.Pipe {
	t.Helper()
	pipe := webtest.NewPipe()
	server := &http.Server{Handler: http.HandlerFunc(script)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(pipe)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return pipe
}

func dial(t *testing.T, opts webtest.Options) *webtest.Client {
	t.Helper()
	opts.Dial = serve(t).Dial
	client, err := webtest.Dial(t.Context(), "http://server", &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestClientJoinsPushesAndReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames int
		client := dial(t, webtest.Options{OnFrame: func([]byte) { frames++ }, Subprotocols: []string{"phoenix"}})
		if got := client.Response().Header.Get("Sec-WebSocket-Protocol"); got != "phoenix" {
			t.Fatalf("subprotocol %q", got)
		}
		ch, err := client.Join(t.Context(), "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(ch.Joined()); got != `{"n": 1e400}` {
			t.Fatalf("joined with %s", got)
		}
		if got, err := ch.Push(t.Context(), "do", map[string]int{"x": 1}); err != nil || string(got) != `{"n": 1e400}` {
			t.Fatalf("%s, %v", got, err)
		}
		if _, err := ch.Push(t.Context(), "do", `{"refuse":true}`); webtest.Code(err) != "bad_input" {
			t.Fatalf("got %v", err)
		}
		for range 3 {
			if p, err := ch.Next(t.Context()); err != nil || p.Event != "later" || string(p.Payload) != `{"n": 1}` {
				t.Fatalf("%v %s, %v", p.Event, p.Payload, err)
			}
		}
		if err := client.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := ch.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if frames != 10 || client.Strays() != 2 {
			t.Fatalf("%d frames, %d strays", frames, client.Strays())
		}
	})
}

func TestClientReadsTheCloseCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dial(t, webtest.Options{})
		ch, err := client.Join(t.Context(), "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.SendText([]byte("bye"))
		if code, err := client.Closed(t.Context()); code != 4321 || err != nil {
			t.Fatalf("closed with %d, %v", code, err)
		}
		if p, err := ch.Next(t.Context()); err != nil || p.Event != "later" {
			t.Fatalf("what came before the end is lost: %v", err)
		}
		if _, err := ch.Next(t.Context()); err == nil {
			t.Fatal("there is a push after the end")
		}
	})
}

func TestClientThatDropsHasNoCloseCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dial(t, webtest.Options{})
		client.Drop()
		if code, _ := client.Closed(t.Context()); code != webtest.CloseAbnormal {
			t.Fatalf("closed with %d", code)
		}
	})
}

func TestClientThatIsMuteAnswersNoPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dial(t, webtest.Options{Mute: true})
		_ = client.SendText([]byte("ping"))
		if code, err := client.Closed(t.Context()); code != webtest.CloseAbnormal || err != nil {
			t.Fatalf("closed with %d, %v", code, err)
		}
	})
}

func TestClientThatStopsReadingGetsNothingUntilItResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames int
		client := dial(t, webtest.Options{OnFrame: func([]byte) { frames++ }})
		client.StopReading()
		_ = client.SendText([]byte("flood"))
		synctest.Wait()
		if frames != 0 {
			t.Fatalf("%d frames came", frames)
		}
		client.ResumeReading()
		synctest.Wait()
		if frames != 101 {
			t.Fatalf("%d frames came", frames)
		}
	})
}

func TestRefusedHandshakeTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := webtest.Dial(t.Context(), "http://server", &webtest.Options{Dial: serve(t).Dial, Path: "/"})
		var refused *webtest.Refused
		if !errors.As(err, &refused) || refused.HTTP != http.StatusBadRequest || refused.Code != "bad_input" {
			t.Fatalf("got %v", err)
		}
	})
}

func TestClientOverTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(script)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	client, err := webtest.Dial(t.Context(), "http://"+listener.Addr().String(), &webtest.Options{ReadBuffer: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Join(t.Context(), "t", nil); err != nil {
		t.Fatal(err)
	}
	client.Drop()
	if code, _ := client.Closed(t.Context()); code != webtest.CloseAbnormal {
		t.Fatalf("closed with %d", code)
	}
}

func TestPipeRefusesWhenClosed(t *testing.T) {
	pipe := webtest.NewPipe()
	_ = pipe.Close()
	if _, err := pipe.Dial(t.Context(), "", ""); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if _, err := pipe.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestViewerChecksTheAnswerToItsJoin(t *testing.T) {
	tests := map[string]struct {
		thread, at, cursor string
		fails, needsReset  bool
	}{
		"nothing seen yet":               {thread: "new", at: "0-0", cursor: "0-0"},
		"from now on":                    {thread: "now", at: "0-0", cursor: "3-120"},
		"resumed":                        {thread: "resumes", at: "1-5", cursor: "1-5"},
		"resumed somewhere else":         {thread: "resumes", at: "1-6", fails: true},
		"not resumed":                    {thread: "gone", at: "1-5", cursor: "1-5", needsReset: true},
		"an answer that says no cursor":  {thread: "other", at: "1-5", cursor: "1-5", needsReset: true},
		"a thread that the server hates": {thread: "refuse", at: "0-0", fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := webtest.NewViewer(tt.thread, map[string]any{"from": "now"})
				v.Cursor = tt.at
				err := v.Join(t.Context(), dial(t, webtest.Options{}))
				if tt.fails {
					if err == nil {
						t.Fatal("it was taken")
					}
					return
				}
				if err != nil || v.Cursor != tt.cursor || v.Channel().JoinRef() != "1" {
					t.Fatalf("at %s, %v", v.Cursor, err)
				}
				if err := v.Apply(push("presence_state", "{}")); (err != nil) != tt.needsReset {
					t.Fatalf("something other than a reset: %v", err)
				}
				if err := v.Apply(push("reset", `{"runId":null,"from":"0-0"}`)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestWaitingEndsWithTheContextAndTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dial(t, webtest.Options{})
		v := webtest.NewViewer("new", nil)
		if err := v.Join(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := v.Until(short, webtest.CaughtUp); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Until: %v", err)
		}
		if _, err := client.Closed(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Closed: %v", err)
		}
		client.StopReading()
		if err := client.Heartbeat(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Heartbeat: %v", err)
		}
		client.Drop()
		if _, err := v.Channel().Push(t.Context(), "status", nil); err == nil || webtest.Code(err) != "" {
			t.Fatalf("Push: %v", err)
		}
	})
}
