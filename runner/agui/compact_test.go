package agui_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner/agui"
)

// lines makes a record out of events, numbered from 1.
func lines(events ...string) []agui.Event {
	out := make([]agui.Event, len(events))
	for i, e := range events {
		out[i] = agui.Event{First: uint64(i + 1), Last: uint64(i + 1), Data: []byte(e)}
	}
	return out
}

// written shows a record, a line per event: "first-last data".
func written(events []agui.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%d-%d %s", e.First, e.Last, e.Data)
	}
	return out
}

func TestCompact(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"Nothing", nil, []string{}},
		{"JoinsDeltasWhereTheFirstStands", []string{
			`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`{"type":"CUSTOM","name":"n","value":1.0}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\u00e9\n"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`2-5 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\u00e9\n"}`,
			`3-3 {"type":"CUSTOM","name":"n","value":1.0}`,
			`6-6 {"type":"TEXT_MESSAGE_END","messageId":"m"}`,
		}},
		{"DoesNotJoinDeltasAcrossTheCallThatMakesTheirMessage", []string{
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lost"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f","parentMessageId":"n"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lost"}`,
			`2-2 {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`,
			`3-5 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}`,
			`4-4 {"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f","parentMessageId":"n"}`,
		}},
		{"JoinsDeltasOfAnOpenMessageAcrossItsCalls", []string{
			`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`2-4 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}`,
			`3-3 {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`,
		}},
		{"JoinsParallelItemsEachByItself", []string{
			`{"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"1"}`,
			`{"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"2"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"3"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"4"}`,
			`{"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"5"}`,
		}, []string{
			`1-4 {"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"14"}`,
			`2-5 {"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"25"}`,
			`3-3 {"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"3"}`,
		}},
		{"KeepsTheFirstTimestampAndMergesMetadata", []string{
			`{"delta":"a","type":"TEXT_MESSAGE_CONTENT","messageId":"m","timestamp":1,"rawEvent":{"x":1}}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","metadata":{"k":1.0,"l":[1, 2]},"timestamp":2}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c","metadata":{"k":null},"rawEvent":3}`,
		}, []string{
			`1-3 {"delta":"abc","type":"TEXT_MESSAGE_CONTENT","messageId":"m","timestamp":1,"rawEvent":{"x":1},` +
				`"metadata":{"k":null,"l":[1, 2]}}`,
		}},
		{"KeepsDeltasApartThatDisagree", []string{
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","subagentRunId":"s"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c","future":1}`,
			`{"future":1,"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e","future":2}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","subagentRunId":"s"}`,
			`2-2 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`3-4 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"cd","future":1}`,
			`5-5 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e","future":2}`,
		}},
		{"StopsAtBarriers", []string{
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[]}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`{"type":"FUTURE"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}`,
			`not an event`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`2-2 {"type":"MESSAGES_SNAPSHOT","messages":[]}`,
			`3-3 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`4-4 {"type":"FUTURE"}`,
			`5-5 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c"}`,
			`6-6 {"type":"TEXT_MESSAGE_END","messageId":"m"}`,
			`7-7 {"type":"TEXT_MESSAGE_START","messageId":"m"}`,
			`8-8 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}`,
			`9-9 not an event`,
			`10-10 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e"}`,
		}},
		{"ExpandsChunks", []string{
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a","metadata":{"k":1}}`,
			`{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`,
			`{"type":"TEXT_MESSAGE_CHUNK"}`,
			`{"type":"RAW","event":1}`,
			`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","future":1}`,
			`{"type":"RUN_ERROR","message":"x"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","metadata":{"k":1}}`,
			`1-2 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab","metadata":{"k":1}}`,
			`4-4 {"type":"RAW","event":1}`,
			`1-3 {"type":"TEXT_MESSAGE_END","messageId":"m"}`,
			`5-5 {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","future":1}`,
			`5-5 {"type":"TOOL_CALL_END","toolCallId":"c"}`,
			`6-6 {"type":"RUN_ERROR","message":"x"}`,
		}},
		{"LeavesARunAloneWhoseChunksAreIllegal", []string{
			`{"type":"RUN_STARTED","threadId":"t","runId":"1"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","role":"user","delta":"c"}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"2"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}`,
		}, []string{
			`1-1 {"type":"RUN_STARTED","threadId":"t","runId":"1"}`,
			`2-2 {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`,
			`3-3 {"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`,
			`4-4 {"type":"TEXT_MESSAGE_CHUNK","role":"user","delta":"c"}`,
			`5-5 {"type":"RUN_STARTED","threadId":"t","runId":"2"}`,
			`6-6 {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`,
		}},
		{"FoldsStateIntoTheLastSnapshot", []string{
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/lost","value":1}],"metadata":{"a":1}}`,
			`{"type":"RAW","event":1}`,
			`{"type":"STATE_SNAPSHOT","snapshot":{}}`,
			`{"type":"STATE_SNAPSHOT","snapshot":{ "big":12345678901234567890,"e":1e400, "f":1.0 ,"k\u00e9":[1, 2]},"future":1}`,
			`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/f","value":2.50}],"metadata":{"b":2}}`,
			`{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/missing"}]}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/new","value":"\ud83d"}]}`,
		}, []string{
			`2-2 {"type":"RAW","event":1}`,
			`1-7 {"type":"STATE_SNAPSHOT","snapshot":{"big":12345678901234567890,"e":1e400,"f":2.50,"k\u00e9":[1, 2],` +
				`"new":"\ud83d"},"future":1,"metadata":{"a":1,"b":2}}`,
		}},
		{"KeepsDeltasWithoutASnapshot", []string{
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`,
			`{"type":"STATE_DELTA","delta":[ ]}`,
		}, []string{
			`1-1 {"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`,
			`2-2 {"type":"STATE_DELTA","delta":[ ]}`,
		}},
		{"KeepsASnapshotAloneAsItIs", []string{`{"type":"STATE_SNAPSHOT","snapshot": { "a" : null } }`},
			[]string{`1-1 {"type":"STATE_SNAPSHOT","snapshot": { "a" : null } }`}},
		{"LeavesToConsumersWhatTheyDifferOn", []string{
			`{"type":"STATE_SNAPSHOT","snapshot":{"l":[1]}}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/-","value":2}]}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/00","value":0}]}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/-","value":3}]}`,
		}, []string{
			`1-2 {"type":"STATE_SNAPSHOT","snapshot":{"l":[1,2]}}`,
			`3-3 {"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/00","value":0}]}`,
			`4-4 {"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/-","value":3}]}`,
		}},
		{"KeepsAMalformedPatch", []string{
			`{"type":"STATE_SNAPSHOT","snapshot":{}}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"a","value":0}]}`,
			`{"type":"STATE_DELTA","delta":[]}`,
		}, []string{
			`1-1 {"type":"STATE_SNAPSHOT","snapshot":{}}`,
			`2-2 {"type":"STATE_DELTA","delta":[{"op":"add","path":"a","value":0}]}`,
			`3-3 {"type":"STATE_DELTA","delta":[]}`,
		}},
		{"KeepsTheOrderOfTextAndReasoningOfOneName", []string{
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c"}`,
		}, []string{
			`1-1 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}`,
			`2-2 {"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"b"}`,
			`3-3 {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"c"}`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compacted := agui.Compact(lines(c.events...))
			if diff := cmp.Diff(c.want, written(compacted)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, written(agui.Compact(compacted))); diff != "" {
				t.Errorf("compacted again (-want +got):\n%s", diff)
			}
		})
	}
}

// A snapshot may drop a message that is open; a call may bring it back. What was streamed in between is lost, what
// follows is not.
func TestCompactKeepsLostDeltasFromComingBack(t *testing.T) {
	events := lines(
		`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[]}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lost"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"kept"}`,
	)
	want, _ := replay(t, events)
	got, _ := replay(t, agui.Compact(events))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-live +compacted):\n%s", diff)
	}
}

func TestCompactLeavesStateThatWouldNestTooDeep(t *testing.T) {
	deep := strings.Repeat("[", 9990) + strings.Repeat("]", 9990)
	events := lines(
		`{"type":"STATE_SNAPSHOT","snapshot":{"a":{"b":{"c":{}}}}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a/b/c/d","value":`+deep+`}]}`,
		`{"type":"STATE_DELTA","delta":[{"op":"copy","from":"/a","path":"/a/b/c/e"}]}`,
		`{"type":"STATE_DELTA","delta":[{"op":"copy","from":"/a","path":"/a/b/c/e"}]}`,
	)
	for _, e := range agui.Compact(events) {
		if !json.Valid(e.Data) {
			t.Fatal("a result is not JSON any more")
		}
	}
}

func TestCompactKeepsExactValues(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string // what must stand in the record; the other events must be there as they came
	}{
		{"c13-falsy-values", []string{`{"delta":" \n0false","messageId":"m1","type":"TEXT_MESSAGE_CONTENT"}`}},
		{"c33-split-emoji", []string{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"hi \ud83d\ude00 ok"}`}},
		{"c35-nul-and-lone-surrogate", []string{
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a\u0000b\u0001c\u007fd\uffffelone \ud800 end"}`}},
		{"c36-numbers-and-bytes", nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			events := fieldCase(t, c.file)
			var want []string
			for _, e := range events {
				if !strings.Contains(e, "TEXT_MESSAGE_CONTENT") {
					want = append(want, e)
				}
			}
			want = append(want, c.want...)
			var got []string
			for _, e := range agui.Compact(lines(events...)) {
				got = append(got, string(e.Data))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkCompactDeltas(b *testing.B) {
	events := []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`}
	for i := range 20_000 {
		events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"word %d "}`, i))
	}
	benchmarkCompact(b, append(events, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`))
}

func BenchmarkCompactChunksWithMetadata(b *testing.B) {
	events := []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`}
	for i := range 20_000 {
		events = append(events,
			fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"word %d ","metadata":{"n":%d}}`, i, i))
	}
	benchmarkCompact(b, events)
}

func BenchmarkCompactState(b *testing.B) {
	events := []string{`{"type":"STATE_SNAPSHOT","snapshot":{"list":[],"of":{}}}`}
	for i := range 20_000 {
		events = append(events, fmt.Sprintf(
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/list/-","value":%d},{"op":"add","path":"/of/k%d","value":{}}]}`, i, i))
	}
	benchmarkCompact(b, events)
}

func benchmarkCompact(b *testing.B, events []string) {
	record := lines(events...)
	b.ReportAllocs()
	for b.Loop() {
		if n := len(agui.Compact(record)); n > 4 {
			b.Fatalf("%d events", n)
		}
	}
}
