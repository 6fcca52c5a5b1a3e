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

// Twice the stream takes about twice the memory, and 50,000 steps take moments. What is quadratic takes minutes.
func TestReducerIsLinear(t *testing.T) {
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			measure := func(n int) (uint64, time.Duration) {
				events := stream(n)
				return allocated(func() {
					if r := reduced(t, &agui.Reducer{MaxBytes: 1 << 30}, events); r.Truncated() {
						t.Error("something was left out")
					}
				})
			}
			half, _ := measure(25_000)
			whole, took := measure(50_000)
			if whole > half*3 {
				t.Errorf("25,000 steps allocate %d bytes, and 50,000 allocate %d", half, whole)
			}
			if took > 10*time.Second {
				t.Errorf("50,000 steps take %s", took)
			}
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
