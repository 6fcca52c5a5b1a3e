package copilotkit_test

import (
	"errors"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

func TestJoinsAreRead(t *testing.T) {
	for text, want := range map[string]copilotkit.Join{
		`{"stream_mode":"run","run_id":"R1"}`:                         {Mode: "run", RunID: "R1"},
		`{"stream_mode":"run"}`:                                       {Mode: "run"},
		`{"stream_mode":"connect","last_seen_event_id":"3-120+7"}`:    {Mode: "connect", LastSeen: "3-120+7"},
		`{"stream_mode":"connect","last_seen_event_id":null}`:         {Mode: "connect"},
		`{"stream_mode":"connect","last_seen_event_id":" ","more":1}`: {Mode: "connect"},
	} {
		if got, err := copilotkit.ParseJoin([]byte(text)); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{}`, `{"stream_mode":"x"}`, `{"stream_mode":"connect","last_seen_event_id":7}`} {
		if _, err := copilotkit.ParseJoin([]byte(text)); !errors.Is(err, thread.ErrBadInput) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestControlsSayWhereTheClientStands(t *testing.T) {
	at := copilotkit.Position{Cursor: thread.Cursor{Run: 3, Seq: 120}}
	if got := string(copilotkit.AppendControl(nil, at)); got != `{"latestEventId":"3-120"}` {
		t.Errorf("got %s", got)
	}
	if got := string(copilotkit.AppendControl(nil, copilotkit.Position{})); got != `{}` {
		t.Errorf("got %s", got)
	}
}
