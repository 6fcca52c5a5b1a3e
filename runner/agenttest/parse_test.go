package agenttest_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agenttest"
)

func TestParseStepsKeepsEventsAsTheyAreWritten(t *testing.T) {
	steps, err := agenttest.ParseSteps(json.RawMessage(`[
		{ "zeta": 1e400, "type" : "CUSTOM", "big": 9223372036854775808, "s": "\ud800 < \u00e9 {thread}" },
		{ "type": "RUN_FINISHED", "runId": "{run}" }
	]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"zeta":1e400,"type":"CUSTOM","big":9223372036854775808,"s":"\ud800 < \u00e9 t\"1"}`,
		`{"type":"RUN_FINISHED","runId":"r1"}`,
	}
	if diff := cmp.Diff(want, events(t, agenttest.New(steps))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestParseStepsRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps, err := agenttest.ParseSteps(json.RawMessage(`[
			{"$repeat": 2, "$event": {"type": "TEXT_MESSAGE_CONTENT", "delta": "{i}"}, "$sleepMs": 500},
			{"$sleepMs": 1000},
			{"$repeat": 2, "$event": {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/{i}", "value": "{i}"}]}},
			{"$bigResult": {"toolCallId": "k1", "messageId": "big", "bytes": 3}}
		]`))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		want := []string{
			`{"type":"TEXT_MESSAGE_CONTENT","delta":"0"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","delta":"1"}`,
			`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/0","value":0}]}`,
			`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/1","value":1}]}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"big","toolCallId":"k1","role":"tool","content":"xxx"}`,
		}
		if diff := cmp.Diff(want, events(t, agenttest.New(steps))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestParseStepsWaits(t *testing.T) {
	tests := map[string]struct{ list, mark, gate string }{
		"mark and gate": {`[{"$mark":"m"},{"$waitFor":"g"},{"$mark":"end"}]`, "m", "g"},
		"tool result":   {`[{"$mark":"m"},{"$waitForToolResult":"k1"},{"$mark":"end"}]`, "m", "toolResult:k1"},
		"killed node":   {`[{"$crashNode":true},{"$mark":"end"}]`, "crashNode", "crashNode"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps, err := agenttest.ParseSteps(json.RawMessage(test.list))
				if err != nil {
					t.Fatal(err)
				}
				a := agenttest.New(steps)
				done := make(chan error, 1)
				go func() { done <- a.Run(t.Context(), input, new(recorder).emit) }()
				<-a.Mark(test.mark)
				synctest.Wait()
				if len(a.Mark("end")) != 0 || a.Waiting(test.gate) != 1 {
					t.Errorf("it does not wait for %s", test.gate)
				}
				a.Release(test.gate)
				if err := <-done; err != nil || len(a.Mark("end")) != 1 {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

func TestParseStepsPanics(t *testing.T) {
	steps, err := agenttest.ParseSteps(json.RawMessage(`[{"$panic":"boom"}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	_ = agenttest.New(steps).Run(t.Context(), input, new(recorder).emit)
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]string{
		"no JSON":              `[{]`,
		"a number":             `5`,
		"an element, no event": `[5]`,
		"unknown directive":    `[{"$explode":true}]`,
		"unknown beside known": `[{"$mark":"a","$explode":true}]`,
		"directive of nothing": `[{"$event":{"type":"A"}}]`,
		"repeated nothing":     `[{"$repeat":3}]`,
		"repeated number":      `[{"$repeat":3,"$event":5}]`,
		"an empty object":      `{}`,
		"unknown form":         `{"tracks":[]}`,
		"a bad run":            `{"runs":[[{"$explode":true}]]}`,
		"unknown chunking":     `{"rawSSE":["x"],"chunkings":["by moonlight"]}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if c, err := agenttest.ParseCase(json.RawMessage(text)); err == nil {
				t.Errorf("it is read as %v", c)
			}
		})
	}
}

func TestParseCase(t *testing.T) {
	tests := map[string]struct {
		text string
		want [][]string // events of its runs
		c    agenttest.Case
	}{
		"a list":    {`[{"type":"A"}]`, [][]string{{`{"type":"A"}`}}, agenttest.Case{}},
		"no events": {`[]`, [][]string{nil}, agenttest.Case{}},
		"runs": {
			`{"runs":[[{"type":"A"}],[{"type":"B"}]],"agentIgnoresCancelForMs":5000}`,
			[][]string{{`{"type":"A"}`}, {`{"type":"B"}`}}, agenttest.Case{IgnoreCancel: 5 * time.Second},
		},
		"a run on many threads": {`{"run":[{"type":"A"}],"parallelThreads":200}`, [][]string{{`{"type":"A"}`}}, agenttest.Case{Parallel: 200}},
		"raw lines":             {`{"rawAgentLines":["{\"type\" :\"A\"}","x"]}`, [][]string{{`{"type" :"A"}`, "x"}}, agenttest.Case{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := agenttest.ParseCase(json.RawMessage(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var got [][]string
			for _, steps := range c.Runs {
				got = append(got, events(t, agenttest.New(steps)))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if c.Parallel != test.c.Parallel || c.IgnoreCancel != test.c.IgnoreCancel {
				t.Errorf("the case is %v", c)
			}
		})
	}
}

func TestParseCaseCutsStreams(t *testing.T) {
	c, err := agenttest.ParseCase(json.RawMessage(`{"rawSSE":["data: 1\n\n","data: {run}\n\n"],
		"chunkings":["one piece","one byte at a time","split at every single byte position in turn"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 + len("data: 1\n\ndata: {run}\n\n") - 1; len(c.Runs) != want {
		t.Errorf("there are %d ways to cut it; want %d", len(c.Runs), want)
	}
	srv := agenttest.NewServer(t)
	srv.Handle("a", c.Runs...)
	for i := range c.Runs {
		got, err := io.ReadAll(post(t, t.Context(), srv.URL("a"), body).Body)
		if err != nil || string(got) != "data: 1\n\ndata: r1\n\n" {
			t.Errorf("way %d gives %q, %v", i, got, err)
		}
	}
}

func TestCuts(t *testing.T) {
	for name, test := range map[string]struct {
		cut  agenttest.Cut
		want string
	}{
		"one piece": {agenttest.OnePiece, "aéb"}, "byte by byte": {agenttest.ByteByByte, "a|\xc3|\xa9|b"},
		"within": {agenttest.SplitAt(2), "a\xc3|\xa9b"}, "beyond": {agenttest.SplitAt(9), "aéb|"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, piece := range test.cut([]byte("aéb")) {
				got = append(got, string(piece))
			}
			if joined := strings.Join(got, "|"); joined != test.want {
				t.Errorf("got %q; want %q", joined, test.want)
			}
		})
	}
}
