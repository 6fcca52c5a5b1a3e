package agenttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Case is what the agent of a replay case does.
type Case struct {
	Runs         [][]Step      // the scripts of its runs, one after the other
	Parallel     int           // on how many threads its only run happens at once; 0 if that is not said
	IgnoreCancel time.Duration // see [Agent]
}

// ParseCase reads the agentEvents of a replay case: a list of steps, or an object with runs, run, rawAgentLines or
// rawSSE. A rawSSE becomes a run for each way to cut it that its chunkings ask for.
func ParseCase(agentEvents json.RawMessage) (Case, error) {
	if list, err := ParseSteps(agentEvents); err == nil || bytes.HasPrefix(bytes.TrimSpace(agentEvents), []byte("[")) {
		return Case{Runs: [][]Step{list}}, err
	}
	var form struct {
		Runs            []json.RawMessage `json:"runs"`
		Run             json.RawMessage   `json:"run"`
		ParallelThreads int               `json:"parallelThreads"`
		IgnoreCancelMs  int               `json:"agentIgnoresCancelForMs"`
		RawAgentLines   []string          `json:"rawAgentLines"`
		RawSSE          []string          `json:"rawSSE"`
		Chunkings       []string          `json:"chunkings"`
	}
	if err := strict(agentEvents, &form); err != nil {
		return Case{}, fmt.Errorf("agentEvents: %w", err)
	}
	c := Case{Parallel: form.ParallelThreads, IgnoreCancel: milliseconds(form.IgnoreCancelMs)}
	var err error
	switch {
	case form.Runs != nil:
		c.Runs, err = parseRuns(form.Runs)
	case form.Run != nil:
		c.Runs, err = parseRuns([]json.RawMessage{form.Run})
	case form.RawAgentLines != nil:
		c.Runs = [][]Step{emitAll(form.RawAgentLines)}
	case form.RawSSE != nil:
		c.Runs, err = cutAll(strings.Join(form.RawSSE, ""), form.Chunkings)
	default:
		err = errors.New("agentEvents: they hold nothing to do")
	}
	return c, err
}

func parseRuns(lists []json.RawMessage) ([][]Step, error) {
	runs := make([][]Step, 0, len(lists))
	for i, list := range lists {
		steps, err := ParseSteps(list)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", i, err)
		}
		runs = append(runs, steps)
	}
	return runs, nil
}

func emitAll(lines []string) []Step {
	steps := make([]Step, 0, len(lines))
	for _, line := range lines {
		steps = append(steps, Emit(line))
	}
	return steps
}

// cutAll makes a run of each way to cut a stream.
func cutAll(stream string, chunkings []string) ([][]Step, error) {
	var runs [][]Step
	for _, chunking := range chunkings {
		switch chunking {
		case "one piece":
			runs = append(runs, []Step{SSE(stream, OnePiece)})
		case "one byte at a time":
			runs = append(runs, []Step{SSE(stream, ByteByByte)})
		case "split at every single byte position in turn":
			for i := 1; i < len(stream); i++ {
				runs = append(runs, []Step{SSE(stream, SplitAt(i))})
			}
		default:
			return nil, fmt.Errorf("chunking %q is not known", chunking)
		}
	}
	return runs, nil
}

// ParseSteps reads a list of events and directives. An event is emitted as it is written, without white space between
// its members. {"$crashNode":true} reaches the mark "crashNode" and waits for the gate of that name, which a
// killed node never releases; {"$waitForToolResult":id} waits for the gate "toolResult:" + id.
func ParseSteps(list json.RawMessage) ([]Step, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(list, &elements); err != nil {
		return nil, fmt.Errorf("list of steps: %w", err)
	}
	var steps []Step
	for i, element := range elements {
		s, err := parseStep(element)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		steps = append(steps, s...)
	}
	return steps, nil
}

// directive is an element of a list that is not an event.
type directive struct {
	Repeat            *int            `json:"$repeat"`
	Event             json.RawMessage `json:"$event"`
	SleepMs           *int            `json:"$sleepMs"`
	Mark              *string         `json:"$mark"`
	WaitFor           *string         `json:"$waitFor"`
	WaitForToolResult *string         `json:"$waitForToolResult"`
	Panic             *string         `json:"$panic"`
	CrashNode         bool            `json:"$crashNode"`
	BigResult         *struct {
		ToolCallID string `json:"toolCallId"`
		MessageID  string `json:"messageId"`
		Bytes      int    `json:"bytes"`
	} `json:"$bigResult"`
}

func parseStep(element json.RawMessage) ([]Step, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(element, &members); err != nil {
		return nil, err
	}
	if !isDirective(members) {
		event, err := compact(element)
		return []Step{Emit(event)}, err
	}
	var d directive
	if err := strict(element, &d); err != nil {
		return nil, err
	}
	switch {
	case d.Repeat != nil:
		return d.repeat()
	case d.SleepMs != nil:
		return []Step{Sleep(milliseconds(*d.SleepMs))}, nil
	case d.Mark != nil:
		return []Step{Mark(*d.Mark)}, nil
	case d.WaitFor != nil:
		return []Step{WaitFor(*d.WaitFor)}, nil
	case d.WaitForToolResult != nil:
		return []Step{WaitFor("toolResult:" + *d.WaitForToolResult)}, nil
	case d.Panic != nil:
		return []Step{Panic(*d.Panic)}, nil
	case d.CrashNode:
		return []Step{Mark("crashNode"), WaitFor("crashNode")}, nil
	case d.BigResult != nil:
		return []Step{BigResult(d.BigResult.ToolCallID, d.BigResult.MessageID, d.BigResult.Bytes)}, nil
	}
	return nil, errors.New("the directive says nothing to do")
}

func isDirective(members map[string]json.RawMessage) bool {
	for name := range members {
		if strings.HasPrefix(name, "$") {
			return true
		}
	}
	return false
}

// repeat reads {"$repeat": n, "$event": e, "$sleepMs": m}. In a STATE_DELTA a value that is only "{i}" becomes a
// number.
func (d directive) repeat() ([]Step, error) {
	event, err := compact(d.Event)
	if err != nil {
		return nil, fmt.Errorf("$event: %w", err)
	}
	var header struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(d.Event, &header); err != nil {
		return nil, fmt.Errorf("$event: %w", err)
	}
	if header.Type == "STATE_DELTA" {
		event = strings.ReplaceAll(event, `"{i}"`, `{i}`)
	}
	apart := time.Duration(0)
	if d.SleepMs != nil {
		apart = milliseconds(*d.SleepMs)
	}
	return []Step{Repeat(*d.Repeat, event, apart)}, nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// compact takes the white space out of JSON and changes nothing else.
func compact(data json.RawMessage) (string, error) {
	var b bytes.Buffer
	err := json.Compact(&b, data)
	return b.String(), err
}

// strict decodes JSON and refuses members that the value has no place for.
func strict(data []byte, value any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(value)
}
