package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// client is for the nodes' HTTP API. The tests leave no connection open behind them.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 60 * time.Second}

// problem is an error as the API and the socket put it.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	RunID   string `json:"runId"`
	AgeMs   *int64 `json:"ageMs"`
}

// do makes a request of the API, decodes the answer into the value if it is not nil, and returns the status.
func (n *node) do(method, path string, body, value any) int {
	n.t.Helper()
	status, data, err := n.request(method, path, body)
	if err != nil {
		n.t.Fatal(err)
	}
	if value != nil {
		if err := json.Unmarshal(data, value); err != nil {
			n.t.Fatalf("%s %s answered %d with what is not the JSON expected: %v\n%.500s", method, path, status, err, data)
		}
	}
	return status
}

// request makes a request of the API. It may be called from any goroutine.
func (n *node) request(method, path string, body any) (int, []byte, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = bytes.NewReader([]byte(b))
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return 0, nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, n.url+path, reader)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return resp.StatusCode, data, nil
}

func threadPath(thread string) string { return "/api/threads/" + url.PathEscape(thread) }

// runRequest is the body of a request for a run, on socket and API alike.
type runRequest struct {
	AgentID  string          `json:"agentId,omitempty"`
	RunID    string          `json:"runId,omitempty"`
	Messages json.RawMessage `json:"messages"`
	Resume   json.RawMessage `json:"resume,omitempty"`
	OnBusy   string          `json:"onBusy,omitempty"`
	Tools    json.RawMessage `json:"tools,omitempty"`
}

// accepted is the answer to a request for a run.
type accepted struct {
	RunID  string `json:"runId"`
	Cursor string `json:"cursor"`
	Queued int    `json:"queued"`
}

// says are the messages of a run: one of a user.
func says(id, text string) json.RawMessage {
	return fmt.Appendf(nil, `[{"id":%q,"role":"user","content":%q}]`, id, text)
}

// startRun starts a run over the API and expects it to be accepted.
func (n *node) startRun(thread string, req runRequest) accepted {
	n.t.Helper()
	if req.Messages == nil {
		req.Messages = json.RawMessage("[]")
	}
	status, data, err := n.request(http.MethodPost, threadPath(thread)+"/runs", req)
	var acc accepted
	if err == nil {
		err = json.Unmarshal(data, &acc)
	}
	if err != nil || status != http.StatusAccepted {
		n.t.Fatalf("run %s on thread %s was not accepted: %d %s %v", req.RunID, thread, status, data, err)
	}
	return acc
}

// status is how a thread stands.
type status struct {
	Running   bool            `json:"running"`
	RunID     string          `json:"runId"`
	AgentID   string          `json:"agentId"`
	Cursor    string          `json:"cursor"`
	StartedAt *time.Time      `json:"startedAt"`
	Outcome   string          `json:"outcome"`
	Pending   json.RawMessage `json:"pending"`

	PendingToolCalls json.RawMessage `json:"pendingToolCalls"`
	Queue            []struct {
		RunID string `json:"runId"`
		Title string `json:"title"`
	} `json:"queue"`
}

// runInfo is what the API tells of a run.
type runInfo struct {
	RunID     string `json:"runId"`
	Number    int    `json:"number"`
	State     string `json:"state"`
	Code      string `json:"code"`
	Error     string `json:"error"`
	StoppedBy string `json:"stoppedBy"`
	End       string `json:"end"`
}

// threadInfo is what the API tells of a thread.
type threadInfo struct {
	State  string    `json:"state"`
	Status status    `json:"status"`
	Runs   []runInfo `json:"runs"`
}

// thread asks how a thread stands.
func (n *node) thread(thread string) threadInfo {
	n.t.Helper()
	var info threadInfo
	if code := n.do(http.MethodGet, threadPath(thread), nil, &info); code != http.StatusOK {
		n.t.Fatalf("thread %s: the API answers %d", thread, code)
	}
	return info
}

// ended waits until the thread's latest run has ended and is in the history, and returns what is known of it.
func (n *node) ended(thread, run string) runInfo {
	n.t.Helper()
	var latest runInfo
	eventually(n.t, 60*time.Second, "run "+run+" of thread "+thread+" is in the history", func() bool {
		runs := n.thread(thread).Runs
		if len(runs) == 0 {
			return false
		}
		latest = runs[len(runs)-1]
		return latest.RunID == run && latest.End != "" // the state may be known a moment before
	})
	return latest
}

// batch is a step of a thread's record, as the API and the socket give it.
type batch struct {
	Reset  bool              `json:"reset"`
	RunID  string            `json:"runId"`
	From   string            `json:"from"`
	To     string            `json:"to"`
	Events []json.RawMessage `json:"events"`
}

// record reads the batches of a thread after a position, all pages of them.
func (n *node) record(thread, after, replay string) []batch {
	n.t.Helper()
	var all []batch
	for {
		var page struct {
			Batches []batch `json:"batches"`
			Cursor  string  `json:"cursor"`
			More    bool    `json:"more"`
		}
		path := threadPath(thread) + "/events?limit=10000&replay=" + replay
		if after != "" {
			path += "&after=" + url.QueryEscape(after)
		}
		if code := n.do(http.MethodGet, path, nil, &page); code != http.StatusOK {
			n.t.Fatalf("events of thread %s after %q: the API answers %d", thread, after, code)
		}
		all = append(all, page.Batches...)
		after = page.Cursor
		if !page.More {
			return all
		}
	}
}
