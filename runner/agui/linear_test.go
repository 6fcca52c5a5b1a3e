package agui_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/threadcast/threadcast/runner/agui"
)

// streams are streams of n steps that grow one thing each.
var streams = map[string]func(n int) []string{
	"DeltasOfOneMessage": func(n int) []string {
		return repeated(n, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, func(i int) []string {
			return []string{fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"word %d "}`, i)}
		})
	},
	"MetadataOfOneMessage": func(n int) []string {
		return repeated(n, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, func(i int) []string {
			return []string{fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","metadata":{"k%d":%d}}`, i, i)}
		})
	},
	"ChunksOfOneCall": func(n int) []string {
		return repeated(n, `{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f"}`, func(i int) []string {
			return []string{fmt.Sprintf(`{"type":"TOOL_CALL_CHUNK","delta":"%d,"}`, i)}
		})
	},
	"Messages": func(n int) []string {
		return repeated(n, `{"type":"STATE_SNAPSHOT","snapshot":{}}`, func(i int) []string {
			return []string{
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":"m%d"}`, i),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%d","delta":"x"}`, i),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":"m%d"}`, i),
			}
		})
	},
	"CallsOfOneMessageWithResults": func(n int) []string {
		return repeated(n, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, func(i int) []string {
			return []string{
				fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"f","parentMessageId":"m"}`, i),
				fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":"c%d","content":"x"}`, i, i),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":"n%d"}`, i),
			}
		})
	},
	"StateDeltas": func(n int) []string {
		return repeated(n, `{"type":"STATE_SNAPSHOT","snapshot":{"l":[],"m":{}}}`, func(i int) []string {
			return []string{fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/l/-","value":%d},{"op":"add","path":"/m/k%d","value":%d}]}`, i, i, i)}
		})
	},
}

func repeated(n int, first string, step func(int) []string) []string {
	events := []string{first}
	for i := range n {
		events = append(events, step(i)...)
	}
	return events
}

// A long stream takes about the memory and the time of many short ones of the same length together. What is quadratic
// takes as many times as much as there are short ones. The machine may have other things to do: it may try again.
func TestReducerIsLinear(t *testing.T) {
	const steps, parts = 32_000, 16
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			measure := func(n, times int) (uint64, time.Duration) {
				events := stream(n)
				return allocated(func() {
					for range times {
						if r := reduced(t, &agui.Reducer{MaxBytes: 1 << 30}, events); r.Truncated() {
							t.Error("something was left out")
						}
					}
				})
			}
			var slow string
			for range 3 {
				many, short := measure(steps/parts, parts)
				one, long := measure(steps, 1)
				if one > 3*many {
					t.Errorf("one stream allocates %d bytes, and %d parts %d", one, parts, many)
				}
				if long < parts/2*short {
					return
				}
				slow = fmt.Sprintf("one stream takes %s, and %d parts take %s", long, parts, short)
			}
			t.Error(slow)
		})
	}
}

// BenchmarkReducer prints the time for one step of each stream, in the middle of 50,000.
func BenchmarkReducer(b *testing.B) {
	for name, stream := range streams {
		b.Run(name, func(b *testing.B) {
			events := stream(50_000)
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				reduced(b, &agui.Reducer{MaxBytes: 1 << 30}, events)
				steps += 50_000
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}
