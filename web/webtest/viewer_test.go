package webtest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/web/webtest"
)

func push(event, payload string) webtest.Push {
	return webtest.Push{Event: event, Payload: json.RawMessage(payload)}
}

func events(run, from, to string, types ...string) webtest.Push {
	texts := make([]string, len(types))
	for i, typ := range types {
		texts[i] = `{"type":"` + typ + `"}`
	}
	return push("ag_ui_events", `{"runId":"`+run+`","from":"`+from+`","to":"`+to+`","replay":false,"events":[`+
		strings.Join(texts, ",")+`]}`)
}

func TestViewerAcceptsWhatFollows(t *testing.T) {
	tests := map[string][]webtest.Push{
		"one run in pieces": {
			events("a", "1-0", "1-1", "RUN_STARTED"), events("a", "1-1", "1-3", "CUSTOM", "RUN_FINISHED"),
			events("a", "1-3", "1-4"), push("caught_up", `{"cursor":"1-4"}`),
		},
		"a second run": {
			events("a", "1-0", "1-3", "RUN_STARTED", "RUN_ERROR"), events("b", "2-0", "2-1", "RUN_STARTED"),
		},
		"a thread that was deleted before begins at any run": {events("h", "8-0", "8-1", "RUN_STARTED")},
		"a run again after its reset": {
			events("a", "1-0", "1-2", "RUN_STARTED", "CUSTOM"), push("reset", `{"runId":"a","from":"1-0"}`),
			events("a", "1-0", "1-9", "RUN_STARTED", "RUN_FINISHED"),
		},
		"everything anew after a reset of the thread": {
			events("a", "1-0", "1-2", "RUN_STARTED", "CUSTOM"), push("reset", `{"runId":null,"from":"0-0"}`),
			events("a", "2-0", "2-1", "RUN_STARTED"),
		},
		"pushes it does not know": {push("presence_state", `{}`)},
	}
	for name, pushes := range tests {
		t.Run(name, func(t *testing.T) {
			v := webtest.NewViewer("t", nil)
			for _, p := range pushes {
				if err := v.Apply(p); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestViewerRefusesWhatDoesNotFollow(t *testing.T) {
	begun := events("a", "1-0", "1-2", "RUN_STARTED", "CUSTOM")
	done := events("a", "1-0", "1-3", "RUN_STARTED", "RUN_FINISHED")
	tests := map[string][]webtest.Push{
		"a repeat":                       {begun, events("a", "1-1", "1-2", "CUSTOM")},
		"the same run from its start":    {begun, begun},
		"a hole":                         {begun, events("a", "1-3", "1-4", "CUSTOM")},
		"a run in the middle":            {done, events("b", "2-1", "2-2", "CUSTOM")},
		"a run left out":                 {done, events("c", "3-0", "3-1", "RUN_STARTED")},
		"a run before":                   {events("b", "2-0", "2-2", "RUN_STARTED", "RUN_FINISHED"), begun},
		"an unfinished run before":       {begun, events("b", "2-0", "2-1", "RUN_STARTED")},
		"an event after the terminal":    {done, events("a", "1-3", "1-4", "CUSTOM")},
		"more events than seqs":          {events("a", "1-0", "1-1", "RUN_STARTED", "CUSTOM")},
		"to before from":                 {begun, events("a", "1-2", "1-1")},
		"to in another run":              {events("a", "1-0", "2-1", "RUN_STARTED")},
		"another id for the run":         {begun, events("b", "1-2", "1-3", "CUSTOM")},
		"an id that came before":         {done, events("a", "2-0", "2-1", "RUN_STARTED")},
		"no cursor":                      {events("a", "1", "1-1", "RUN_STARTED")},
		"caught_up somewhere else":       {begun, push("caught_up", `{"cursor":"1-1"}`)},
		"a reset of another run":         {begun, push("reset", `{"runId":"b","from":"2-0"}`)},
		"a reset to the middle of a run": {begun, push("reset", `{"runId":"a","from":"1-1"}`)},
		"fewer events than seqs":         {events("a", "1-0", "1-5", "RUN_STARTED", "CUSTOM")},
	}
	for name, pushes := range tests {
		t.Run(name, func(t *testing.T) {
			v := webtest.NewViewer("t", nil)
			v.Exact = true
			for i, p := range pushes {
				switch err := v.Apply(p); {
				case i < len(pushes)-1 && err != nil:
					t.Fatalf("push %d: %v", i, err)
				case i == len(pushes)-1 && err == nil:
					t.Fatalf("it took %s %s", p.Event, p.Payload)
				}
			}
		})
	}
}

func TestViewerEndsWithTheMembership(t *testing.T) {
	for _, event := range []string{"phx_close", "phx_error"} {
		t.Run(event, func(t *testing.T) {
			if err := webtest.NewViewer("t", nil).Apply(push(event, "{}")); !errors.Is(err, webtest.ErrEnded) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestViewerTakesCompactedEvents(t *testing.T) {
	v := webtest.NewViewer("t", nil)
	if err := v.Apply(events("a", "1-0", "1-50", "RUN_STARTED", "TEXT_MESSAGE_CONTENT")); err != nil {
		t.Fatal(err)
	}
	if got := len(v.Events()); got != 2 || v.Cursor != "1-50" || v.Run("a").To != 50 {
		t.Fatalf("%d events, at %s, run at %d", got, v.Cursor, v.Run("a").To)
	}
	if webtest.Ended("a")(v) || webtest.Ended("b")(v) || !webtest.Seen(2)(v) || webtest.Seen(3)(v) {
		t.Fatal("the conditions are not those of the state")
	}
}
