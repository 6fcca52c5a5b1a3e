package copilotkit_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/copilotkit"
)

var stamp = copilotkit.Stamp{
	Position: copilotkit.Position{Cursor: thread.Cursor{Run: 3, Seq: 7}}, ThreadID: `t"1`, RunID: "r3",
}

const ours = `"cpki_event_id":"3-7","cpki_event_seq":7`

func TestEventsAreStampedBetweenTheirBytes(t *testing.T) {
	old := stamp
	old.Old = true
	for name, tt := range map[string]struct {
		event string
		stamp copilotkit.Stamp
		want  string
	}{
		"without metadata": {`{"type":"X","n":12345678901234567890}`, stamp,
			`{"type":"X","n":12345678901234567890,"metadata":{` + ours + `}}`},
		"with its own": {`{"type":"X","metadata":{"a": [1, 2],"b":"\ud800"},"z":1}`, stamp,
			`{"type":"X","metadata":{"a": [1, 2],"b":"\ud800",` + ours + `},"z":1}`},
		"with empty metadata": {`{"metadata":{ },"type":"X"}`, stamp, `{"metadata":{` + ours + `},"type":"X"}`},
		"with other ids": {`{"type":"X","metadata":{"cpki_event_id":"u","a":1,"cpki_event_seq":"9"}}`, stamp,
			`{"type":"X","metadata":{"a":1,` + ours + `}}`},
		"with metadata that is none":   {`{"type":"X","metadata":null}`, stamp, `{"type":"X","metadata":{` + ours + `}}`},
		"with metadata that is a text": {`{"type":"X","metadata":"m"}`, stamp, `{"type":"X","metadata":{` + ours + `}}`},
		"with an escaped name": {`{"type":"X","m\u0065tadata":{"a":1}}`, stamp,
			`{"type":"X","m\u0065tadata":{"a":1,` + ours + `}}`},
		"with metadata twice": {`{"metadata":{"a":1},"metadata":{"b":2}}`, stamp,
			`{"metadata":{"b":2,` + ours + `},"metadata":{"b":2,` + ours + `}}`},
		"with space around": {" {\n\"type\" : \"X\" }\n", stamp, " {\n\"type\" : \"X\" ,\"metadata\":{" + ours + "}}\n"},
		"empty":             {`{}`, stamp, `{"metadata":{` + ours + `}}`},
		"a start without ids": {`{"type":"RUN_STARTED"}`, stamp,
			`{"type":"RUN_STARTED","metadata":{` + ours + `},"threadId":"t\"1","runId":"r3"}`},
		"an end without a run": {`{"type":"RUN_FINISHED","threadId":"t1","runId":null}`, stamp,
			`{"type":"RUN_FINISHED","threadId":"t1","runId":"r3","metadata":{` + ours + `}}`},
		"a start with ids": {`{"type":"RUN_STARTED","threadId":"a","runId":"b"}`, stamp,
			`{"type":"RUN_STARTED","threadId":"a","runId":"b","metadata":{` + ours + `}}`},
		"a failure": {`{"type":"RUN_ERROR","message":"m","code":"c"}`, stamp,
			`{"type":"RUN_ERROR","message":"m","code":"c","metadata":{` + ours + `}}`},
		"an old failure": {`{"type":"RUN_ERROR","message":"m","code":"c"}`, old,
			`{"type":"RUN_ERROR","message":"m","code":"abort","metadata":{` + ours + `}}`},
		"an old failure without a code": {`{"type":"RUN_ERROR","message":"m"}`, old,
			`{"type":"RUN_ERROR","message":"m","metadata":{` + ours + `},"code":"abort"}`},
		"something else with a code": {`{"type":"X","code":"c"}`, old, `{"type":"X","code":"c","metadata":{` + ours + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var e copilotkit.Event
			if !e.Read([]byte(tt.event)) {
				t.Fatal("it cannot be read")
			}
			if got := string(e.Append([]byte("x"), tt.stamp)); got != "x"+tt.want {
				t.Errorf("got\n%s\nwant\nx%s", got, tt.want)
			}
		})
	}
}

func TestAnEventIsReadAgainAndAgain(t *testing.T) {
	var e copilotkit.Event
	for _, text := range []string{`{"type":"A","metadata":{"a":1,"b":2}}`, `{"type":"B"}`, `{"type":"C","metadata":{"c":3}}`} {
		e.Read([]byte(text))
		var fresh copilotkit.Event
		fresh.Read([]byte(text))
		if got, want := e.Append(nil, stamp), fresh.Append(nil, stamp); !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if e.Read([]byte(`["type"]`)) {
		t.Error("an array is read as an event")
	}
	e.Read([]byte(`{"type":"CUSTOM"}`))
	if n := testing.AllocsPerRun(100, func() { e.Read([]byte(`{"type":"CUSTOM"}`)) }); n > 1 {
		t.Errorf("reading allocates %v times", n)
	}
}

func TestEndsAreKnown(t *testing.T) {
	for text, want := range map[string][2]bool{
		`{"type":"RUN_FINISHED"}`: {true, false},
		`{"type":"RUN_ERROR"}`:    {true, false},
		`{"type":"CUSTOM","code":"stopped","message":"The run was stopped."}`:    {false, false},
		`{"type":"RUN_ERROR","code":"stopped","message":"The run was stopped."}`: {true, true},
		`{"type":"RUN_ERROR","code":"stopped","message":"I stopped."}`:           {true, false},
	} {
		var e copilotkit.Event
		e.Read([]byte(text))
		if got := [2]bool{e.Terminal(), e.Stopped()}; got != want {
			t.Errorf("%s: terminal and stopped are %v, want %v", text, got, want)
		}
	}
}

func FuzzStamp(f *testing.F) {
	for _, text := range []string{`{}`, `{"type":"X","metadata":{"cpki_event_id":1}}`, `{"a":{"metadata":1}} `, `[1]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e copilotkit.Event
		var want map[string]any
		valid := json.Unmarshal(text, &want) == nil && want != nil
		if e.Read(text) != valid {
			t.Fatalf("%q is an object: %t", text, valid)
		}
		if !valid {
			return
		}
		metadata, _ := want["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["cpki_event_id"], metadata["cpki_event_seq"] = "3-7", 7.0
		want["metadata"] = metadata
		if typ := want["type"]; typ == "RUN_STARTED" || typ == "RUN_FINISHED" {
			for name, id := range map[string]string{"threadId": `t"1`, "runId": "r3"} {
				if _, ok := want[name].(string); !ok {
					want[name] = id
				}
			}
		}
		out := e.Append(nil, stamp)
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %q", text, out)
		}
	})
}
