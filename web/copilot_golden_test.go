package web

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
	"github.com/threadcast/threadcast/web/wire"
)

func TestCopilotKitsFramesAreAsInTheGoldenFiles(t *testing.T) {
	at := func(text string) copilotkit.Position {
		p, err := copilotkit.ParsePosition(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	push := func(event string, payload []byte) string {
		return string(wire.AppendPush(nil, "3", "thread:t1", event, payload))
	}
	event := func(text, position string, old bool) string {
		var e copilotkit.Event
		e.Read([]byte(text))
		return push(copilotkit.PushEvent, e.Append(nil, copilotkit.Stamp{Position: at(position), Old: old}))
	}
	control := func(name, position string) string { return push(name, copilotkit.AppendControl(nil, at(position))) }
	stopped, err := json.Marshal(stopReply{Stopped: true, RunID: "r4"})
	if err != nil {
		t.Fatal(err)
	}
	reply := func(ref string, response []byte) string {
		return string(wire.AppendReply(nil, wire.Frame{JoinRef: "3", Ref: ref, Topic: "thread:t1"}, "ok", response))
	}
	written := map[string]string{
		"reply_join":        reply("3", []byte("{}")),
		"reply_stop_run":    reply("6", stopped),
		"event":             event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m8","delta":"Hi"}`, "4-17", false),
		"event_stored":      event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m6","delta":"May I?"}`, "3-0+3", false),
		"event_old_failure": event(`{"type":"RUN_ERROR","message":"The agent is ill.","code":"agent_ill"}`, "2-9", true),
		"event_snapshot":    event(`{"type":"MESSAGES_SNAPSHOT","messages":[]}`, "3-60~0", false),
		"replay_complete":   control(copilotkit.PushReplayComplete, "4-17"),
		"replay_failed":     control(copilotkit.PushReplayFailed, "3-120"),
		"stream_idle":       control(copilotkit.PushStreamIdle, "4-18"),
	}
	for name, got := range written {
		if want := golden(t, "copilotkit/"+name); got != want {
			t.Errorf("%s is written as\n%s\nwant\n%s", name, got, want)
		}
	}
	read := map[string]any{
		"join_run":     copilotkit.Join{Mode: "run", RunID: "r4"},
		"join_connect": copilotkit.Join{Mode: "connect", LastSeen: "3-120"},
		"stop_run":     thread.RunID("r4"),
	}
	for name, want := range read {
		f, err := wire.Parse([]byte(golden(t, "copilotkit/"+name)))
		if err != nil || f.Topic != "thread:t1" {
			t.Fatalf("%s is read as %+v, %v", name, f, err)
		}
		var got any
		if strings.HasPrefix(name, "join") {
			got, err = copilotkit.ParseJoin(f.Payload)
		} else {
			got, err = parseStop(f.Payload)
		}
		if err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", name, got, err)
		}
	}
	files, err := filepath.Glob("wire/testdata/copilotkit/*.json")
	if err != nil || len(files) != len(written)+len(read) {
		t.Errorf("%d files for %d frames, %v", len(files), len(written)+len(read), err)
	}
}
