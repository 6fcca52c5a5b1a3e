package loadtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
	"github.com/threadcast/threadcast/persistence/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// push is a push of the server.
type push struct{ event, payload string }

func batch(from, to int, events ...string) push {
	return push{"ag_ui_events", fmt.Sprintf(`{"runId":"run-1","from":"1-%d","to":"1-%d","replay":false,"events":[%s]}`,
		from, to, strings.Join(events, ","))}
}

func text(i int) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"%d"}`, i)
}

const finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"run-1"}`

// whole is a run of n events, the last of which ends it, as the socket pushes it.
func whole(n int) []push {
	var all []push
	for i := range n - 1 {
		all = append(all, batch(i, i+1, text(i)))
	}
	return append(all, batch(n-1, n, finished), batch(n, n+1))
}

// fake is a server of the protocol with one run to a thread, which comes as it is told to.
type fake struct {
	*httptest.Server
	pushes func(viewer int) []push // what a viewer gets who joins from the beginning
	record []push                  // what the API says
	start  int                     // the status of a request for a run
	cut    bool                    // the first socket of each viewer ends in the middle

	mu      sync.Mutex
	viewers atomic.Int64
	begun   chan struct{} // closed when the run is asked for
	deleted []string
}

func newFake(t *testing.T, pushes func(int) []push) *fake {
	f := &fake{pushes: pushes, record: whole(10), start: http.StatusAccepted, begun: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/agents", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"agents":[{"id":"a","type":"agui","default":true}]}`)
	})
	mux.HandleFunc("POST /api/threads/{id}/runs", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(f.start)
		fmt.Fprint(w, `{"runId":"run-1","cursor":"1-0"}`)
		close(f.begun)
	})
	mux.HandleFunc("GET /api/threads/{id}/events", func(w http.ResponseWriter, _ *http.Request) {
		var batches []string
		for _, p := range f.record {
			batches = append(batches, p.payload)
		}
		fmt.Fprintf(w, `{"batches":[%s],"cursor":"1-11","more":false}`, strings.Join(batches, ","))
	})
	mux.HandleFunc("DELETE /api/threads/{id}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.deleted = append(f.deleted, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /socket/websocket", f.socket)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	_, message, err := conn.Read(r.Context())
	if err != nil {
		return
	}
	var join []json.RawMessage
	var options struct{ After string }
	if json.Unmarshal(message, &join) != nil || json.Unmarshal(join[4], &options) != nil {
		return
	}
	ctx := conn.CloseRead(r.Context())
	write := func(text string) { _ = conn.Write(ctx, websocket.MessageText, []byte(text)) }
	write(fmt.Sprintf(`["1","1",%s,"phx_reply",{"status":"ok","response":{"cursor":%q}}]`, join[2], options.After))
	pushes := whole(10)
	first := options.After == "0-0"
	if first {
		pushes = f.pushes(int(f.viewers.Add(1)) - 1)
	}
	after, _ := thread.ParseCursor(options.After)
	select {
	case <-f.begun:
	case <-ctx.Done():
		return
	}
	for i, p := range pushes {
		if !first && uint64(i) < after.Seq {
			continue
		}
		if first && f.cut && i == 5 {
			return
		}
		write(fmt.Sprintf(`["1",null,%s,%q,%s]`, join[2], p.event, p.payload))
	}
	<-ctx.Done()
}

func (f *fake) run(t *testing.T, change func(*loadtest.Config)) loadtest.Report {
	t.Helper()
	c := loadtest.Defaults()
	c.URLs, c.Threads, c.Viewers, c.Restless = []string{f.URL + "/"}, 1, 2, 0
	c.Patience = patience
	if change != nil {
		change(&c)
	}
	report, err := loadtest.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
