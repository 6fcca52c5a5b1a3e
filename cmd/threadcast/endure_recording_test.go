package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner/agenttest"
)

// recording is what an agent emits in one run, and so the measure of what viewers get: event number i of it is
// entry i+1 of the run.
type recording struct {
	size    int // of a delta, on average and about
	events  [][]byte
	parsed  []emitted
	mu      sync.Mutex
	started []byte // RUN_STARTED as the server completes it; the first viewer that sees it decides
}

// emitted is what compaction may change about an event: deltas of one lane are joined.
type emitted struct {
	lane  string // type and id of a delta; empty for an event that has to stay as it is
	delta string
}

// recorded is about how many bytes a recording has: twice what the hub keeps of a thread in memory.
const recorded = 2 << 20

// newRecording makes a run of about n events: messages and tool calls with random deltas, and events of unknown types.
func newRecording(threadID, runID string, n int, rng *rand.Rand) *recording {
	r := &recording{size: recorded / n}
	r.add(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, threadID, runID)
	for i := 0; len(r.events) < n-1; i++ {
		switch rng.IntN(6) {
		case 0:
			r.add(`{"type":"CUSTOM","name":"note","value":{"n":%d,"big":9007199254740993.50}}`, i)
			r.add(`{"type":"NOT_YET_INVENTED","n":%d,"null":null}`, i)
		case 1:
			r.add(`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"look"}`, i)
			r.deltas("TOOL_CALL_ARGS", fmt.Sprintf(`"toolCallId":"c%d"`, i), 1+rng.IntN(60), rng)
			r.add(`{"type":"TOOL_CALL_END","toolCallId":"c%d"}`, i)
		default:
			r.add(`{"type":"TEXT_MESSAGE_START","messageId":"m%d","role":"assistant"}`, i)
			r.deltas("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`"messageId":"m%d"`, i), 1+rng.IntN(400), rng)
			r.add(`{"type":"TEXT_MESSAGE_END","messageId":"m%d"}`, i)
		}
	}
	r.add(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, threadID, runID)
	r.parsed = make([]emitted, len(r.events))
	for i, e := range r.events {
		r.parsed[i] = parseEmitted(e)
	}
	return r
}

func (r *recording) add(format string, args ...any) {
	r.events = append(r.events, fmt.Appendf(nil, format, args...))
}

// deltas adds events whose deltas begin with their place in the run, so that no two of them are alike.
func (r *recording) deltas(kind, id string, n int, rng *rand.Rand) {
	words := []string{`and so on `, `\n`, `\u00e9t\u00e9 `, `été `, `\"quoted\" `, `😀`, `\ud83d\ude00`, `<&> `, `\u2028`, `0`}
	for range n {
		text := ""
		for len(text) < rng.IntN(2*r.size) {
			text += words[rng.IntN(len(words))]
		}
		r.add(`{"type":%q,%s,"delta":"#%d;%s"}`, kind, id, len(r.events), text)
	}
}

// end is the position of the run's end entry.
func (r *recording) end(run uint64) thread.Cursor {
	return thread.Cursor{Run: run, Seq: uint64(len(r.events)) + 1}
}

// script plays the record as fast as it is taken, in pieces that do not care where an event ends.
func (r *recording) script() []agenttest.Step {
	var stream strings.Builder
	for _, e := range r.events {
		fmt.Fprintf(&stream, "data: %s\n\n", e)
	}
	return []agenttest.Step{agenttest.SSE(stream.String(), func(all []byte) [][]byte {
		return slices.Collect(slices.Chunk(all, 10_007))
	})}
}

// check tells what is wrong with events that stand for the entries after seq from, up to and with to. Without compaction they
// must be the agent's bytes; with it the agent's words.
func (r *recording) check(from, to uint64, events [][]byte, compacted bool) error {
	n := uint64(len(r.events))
	if from > to || to > n+1 {
		return fmt.Errorf("there are no entries %d to %d", from+1, to)
	}
	if from == 0 && len(events) > 0 {
		if err := r.checkStarted(events[0]); err != nil {
			return err
		}
		from, events = 1, events[1:]
	}
	from, to = min(from, n), min(to, n)
	if slices.EqualFunc(r.events[from:to], events, bytes.Equal) {
		return nil
	}
	if !compacted {
		return r.difference(from, to, events)
	}
	return compareWords(r.parsed[from:to], r.events[from:to], events)
}

func (r *recording) checkStarted(event []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == nil && bytes.HasPrefix(event, r.events[0][:len(r.events[0])-1]) {
		r.started = event
	}
	if !bytes.Equal(r.started, event) {
		return fmt.Errorf("the run begins with %.120s; others got %.120s", event, r.started)
	}
	return nil
}

func (r *recording) difference(from, to uint64, events [][]byte) error {
	for i, e := range events {
		if at := from + uint64(i); at >= to || !bytes.Equal(r.events[at], e) {
			return fmt.Errorf("entry %d came as %.120s", at+1, e)
		}
	}
	return fmt.Errorf("entries %d to %d are missing", from+uint64(len(events))+1, to)
}

// compareWords compares each lane's text, and the rest byte for byte.
func compareWords(want []emitted, original, got [][]byte) error {
	type account struct {
		text map[string]*strings.Builder
		rest []string
	}
	count := func(parsed []emitted, events [][]byte) account {
		a := account{text: map[string]*strings.Builder{}}
		for i, p := range parsed {
			if p.lane == "" {
				a.rest = append(a.rest, string(events[i]))
				continue
			}
			if a.text[p.lane] == nil {
				a.text[p.lane] = &strings.Builder{}
			}
			a.text[p.lane].WriteString(p.delta)
		}
		return a
	}
	parsed := make([]emitted, len(got))
	for i, e := range got {
		parsed[i] = parseEmitted(e)
	}
	w, g := count(want, original), count(parsed, got)
	if !slices.Equal(w.rest, g.rest) {
		return fmt.Errorf("of the events without delta came %d, not %d, or others, or in another order", len(g.rest), len(w.rest))
	}
	if !maps.EqualFunc(w.text, g.text, func(a, b *strings.Builder) bool { return a.String() == b.String() }) {
		return fmt.Errorf("the deltas of %d lanes do not add up to those of the %d that were emitted", len(g.text), len(w.text))
	}
	return nil
}

func parseEmitted(event []byte) emitted {
	var e struct {
		Type, MessageID, ToolCallID string
		Delta                       *string
	}
	if json.Unmarshal(event, &e) != nil || e.Delta == nil {
		return emitted{}
	}
	return emitted{lane: e.Type + " " + e.MessageID + e.ToolCallID, delta: *e.Delta}
}
