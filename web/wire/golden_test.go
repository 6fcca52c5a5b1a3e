package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/web/wire"
)

// golden reads a frame under testdata.
func golden(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", path+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// each calls fn with every golden frame of a folder.
func each(t *testing.T, folder string, fn func(t *testing.T, name string, text []byte)) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join("testdata", folder))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden frames: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".json")
		t.Run(name, func(t *testing.T) { fn(t, name, golden(t, folder+"/"+name)) })
	}
}

func TestClientFramesAreRead(t *testing.T) {
	want := map[string]wire.Frame{
		"join":              {"1", "1", "thread:t1", "phx_join", []byte(`{}`)},
		"join_after":        {"1", "1", "thread:t1", "phx_join", []byte(`{"after":"3-120"}`)},
		"join_raw":          {"1", "1", "thread:t1", "phx_join", []byte(`{"replay":"raw"}`)},
		"join_now":          {"1", "1", "thread:t1", "phx_join", []byte(`{"from":"now"}`)},
		"join_input_events": {"1", "1", "thread:t1", "phx_join", []byte(`{"input":"events"}`)},
		"heartbeat":         {"", "2", "phoenix", "heartbeat", []byte(`{}`)},
		"leave":             {"1", "3", "thread:t1", "phx_leave", []byte(`{}`)},
		"run": {"1", "4", "thread:t1", "run", []byte(
			`{"agentId":"demo","runId":"r4","messages":[{"id":"m7","role":"user","content":"Hello"}]}`)},
		"run_enqueue": {"1", "4", "thread:t1", "run", []byte(`{"agentId":"demo","runId":"r5",` +
			`"messages":[{"id":"m9","role":"user","content":"And then?"}],"onBusy":"enqueue"}`)},
		"stop":      {"1", "5", "thread:t1", "stop", []byte(`{"runId":"r4"}`)},
		"stop_run":  {"1", "5", "thread:t1", "stop_run", []byte(`{"run_id":"r4"}`)},
		"status":    {"1", "6", "thread:t1", "status", []byte(`{}`)},
		"join_user": {"1", "1", "user", "phx_join", []byte(`{"limit":2}`)},
		"list":      {"1", "2", "user", "list", []byte(`{"before":"MTc4NTU3NjY2MDAwMDp0MQ","limit":2}`)},
		"rename":    {"1", "3", "user", "rename", []byte(`{"threadId":"t1","name":"Plans"}`)},
		"archive":   {"1", "4", "user", "archive", []byte(`{"threadId":"t1","archived":true}`)},
		"delete":    {"1", "5", "user", "delete", []byte(`{"threadId":"t1"}`)},
		"sync":      {"1", "7", "thread:t1", "sync", []byte(`{"after":"4-17"}`)},
	}
	each(t, "client", func(t *testing.T, name string, text []byte) {
		f, err := wire.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		w, known := want[name]
		if !known {
			t.Fatal("no test knows this file")
		}
		if f.JoinRef != w.JoinRef || f.Ref != w.Ref || f.Topic != w.Topic || f.Event != w.Event ||
			!bytes.Equal(f.Payload, w.Payload) {
			t.Fatalf("read as %+v, want %+v", f, w)
		}
		delete(want, name)
	})
	if len(want) > 0 {
		t.Fatalf("files are missing: %v", want)
	}
}

func TestRepliesAreWrittenAsInTheGoldenFrames(t *testing.T) {
	for _, folder := range []string{"server", "errors"} {
		each(t, folder, func(t *testing.T, _ string, text []byte) {
			f, err := wire.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if f.Event != wire.EventReply {
				return // a push; see below
			}
			var reply struct {
				Status   string
				Response json.RawMessage
			}
			if err := json.Unmarshal(f.Payload, &reply); err != nil {
				t.Fatal(err)
			}
			got := wire.AppendReply(nil, f, reply.Status, reply.Response)
			if !bytes.Equal(got, text) {
				t.Fatalf("written as\n%s\nwant\n%s", got, text)
			}
		})
	}
}

func TestPushesAreWrittenAsInTheGoldenFrames(t *testing.T) {
	events := func(e wire.Events) []byte { return e.Append(nil) }
	empty := []byte("{}")
	tests := map[string]struct {
		event   string
		payload []byte
	}{
		"ag_ui_events": {wire.EventEvents, events(wire.Events{RunID: "r4", From: "4-16", To: "4-17",
			Events: [][]byte{[]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m8","delta":"Hi"}`)}})},
		"ag_ui_events_replay": {wire.EventEvents, events(wire.Events{RunID: "r3", From: "3-120", To: "3-121", Replay: true,
			Events: [][]byte{[]byte(`{"type":"RUN_FINISHED","threadId":"t1","runId":"r3"}`)}})},
		"ag_ui_events_end": {wire.EventEvents, events(wire.Events{RunID: "r3", From: "3-121", To: "3-122", Replay: true})},
		"caught_up":        {wire.EventCaughtUp, wire.AppendCaughtUp(nil, "4-17", true)},
		"reset":            {wire.EventReset, wire.AppendReset(nil, "r3", "3-0")},
		"reset_thread":     {wire.EventReset, wire.AppendReset(nil, "", "0-0")},
		"status": {wire.EventStatus, []byte(`{"running":true,"runId":"r4","agentId":"demo","cursor":"4-17","lastEventAgeMs":40,` +
			`"startedAt":"2026-08-01T09:31:00Z","outcome":null,"pending":[],"pendingToolCalls":[],` +
			`"queue":[{"runId":"r5","agentId":"demo","title":"And then?","queuedAt":"2026-08-01T09:31:05Z"}]}`)},
		"thread_deleted": {wire.EventDeleted, empty},
		"phx_close":      {wire.EventClose, empty},
		"phx_error":      {wire.EventError, empty},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := wire.AppendPush(nil, "1", "thread:t1", tt.event, tt.payload)
			if want := golden(t, "server/"+name); !bytes.Equal(got, want) {
				t.Fatalf("written as\n%s\nwant\n%s", got, want)
			}
		})
	}
	ofLists := map[string]struct{ event, payload string }{
		"thread_changed": {wire.EventListChange, `{"change":"renamed","thread":{"id":"t1","title":"Hello","name":"Plans","state":"running",` +
			`"runId":"r4","agentId":"demo","created":"2026-08-01T09:30:00Z","activity":"2026-08-01T09:31:00Z","archived":false,"queued":0,"revision":8}}`},
		"thread_changed_deleted": {wire.EventListChange, `{"change":"deleted","thread":{"id":"t1","revision":10}}`},
		"threads_reset":          {wire.EventListReset, `{}`},
	}
	for name, tt := range ofLists {
		got := wire.AppendPush(nil, "1", "user", tt.event, []byte(tt.payload))
		if want := golden(t, "server/"+name); !bytes.Equal(got, want) {
			t.Errorf("%s is written as\n%s\nwant\n%s", name, got, want)
		}
	}
	each(t, "server", func(t *testing.T, name string, text []byte) {
		_, known := tests[name]
		_, list := ofLists[name]
		if !known && !list && !strings.HasPrefix(name, "reply_") {
			t.Fatal("no test knows this file")
		}
	})
}
