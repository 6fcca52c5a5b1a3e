package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// weather is what the demo's tool returns. It is made up, but the same for a city each time.
type weather struct {
	City        string `json:"city"`
	Sky         string `json:"sky"`
	Temperature int    `json:"temperature"` // degrees Celsius
	Wind        int    `json:"wind"`        // kilometres an hour
}

func weatherIn(city string) weather {
	skies := []string{"clear sky", "light clouds", "grey sky", "a little rain", "fog that is lifting"}
	h := hash(city)
	return weather{
		City:        city,
		Sky:         skies[h%uint64(len(skies))],
		Temperature: 4 + int(h>>8%25),
		Wind:        3 + int(h>>16%30),
	}
}

// callTool calls a tool that the demo itself answers, and uses the result.
func callTool(ctx context.Context, v *voice, q question) error {
	city := q.city()
	parent, err := v.say(ctx, "Let me look up the weather in "+city+".")
	if err != nil {
		return err
	}
	call := v.id("call")
	if err := v.send(ctx, event{Type: "TOOL_CALL_START", ToolCallID: call, ToolName: "weather", ParentID: parent}); err != nil {
		return err
	}
	if err := v.arguments(ctx, call, map[string]string{"city": city, "unit": "celsius"}); err != nil {
		return err
	}
	if err := v.work(ctx, workPause); err != nil {
		return err
	}
	w := weatherIn(city)
	content, err := encode(w)
	if err != nil {
		return fmt.Errorf("encode the weather: %w", err)
	}
	result := event{Type: "TOOL_CALL_RESULT", MessageID: v.id("result"), ToolCallID: call, Content: string(content), Role: "tool"}
	if err := v.send(ctx, result); err != nil {
		return err
	}
	_, err = v.say(ctx, fmt.Sprintf("**%s**: %s, **%d °C**, wind at %d km/h. "+
		"I made these numbers up, but the call was real: its name, its arguments piece by piece, and its result "+
		"are events of this run, and everybody who watches sees the same.", w.City, w.Sky, w.Temperature, w.Wind))
	return err
}

// arguments sends the arguments of a call in pieces, as a model does, and ends it.
func (v *voice) arguments(ctx context.Context, call string, args map[string]string) error {
	data, err := encode(args)
	if err != nil {
		return fmt.Errorf("encode arguments: %w", err)
	}
	for rest := []rune(string(data)); len(rest) > 0; {
		n := min(6, len(rest))
		if err := v.send(ctx, event{Type: "TOOL_CALL_ARGS", ToolCallID: call, Delta: string(rest[:n])}); err != nil {
			return err
		}
		if err := v.work(ctx, wordPause); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return v.send(ctx, event{Type: "TOOL_CALL_END", ToolCallID: call})
}

// plan is what the demo works through in shared state, as the member "plan".
type plan struct {
	Title string `json:"title"`
	Done  int    `json:"done"`
	Steps []step `json:"steps"`
}

type step struct {
	Title  string `json:"title"`
	Status string `json:"status"` // pending, running or done
}

// operation is one of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// shareState works through a plan: a snapshot first, then a patch for each change, and words in between.
func shareState(ctx context.Context, v *voice, q question) error {
	p := plan{Title: "A weekend in the mountains"}
	for _, title := range []string{"Choose a hut", "Look up the trains", "Pack for bad weather", "Tell the others"} {
		p.Steps = append(p.Steps, step{Title: title, Status: "pending"})
	}
	if err := v.send(ctx, event{Type: "STATE_SNAPSHOT", Snapshot: withPlan(q.state, p)}); err != nil {
		return err
	}
	id, err := v.open(ctx)
	if err != nil {
		return err
	}
	if err := v.write(ctx, id, "I have put a plan into the shared state, and now I work through it:\n\n"); err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := v.takeStep(ctx, i, s); err != nil {
			return err
		}
		if err := v.write(ctx, id, fmt.Sprintf("%d. %s: *done*\n", i+1, s.Title)); err != nil {
			return err
		}
	}
	err = v.write(ctx, id, "\nThe state was sent whole **once**, and then only what changed in it. "+
		"When the run is over, what is kept is the state as it is, not every step that led there.")
	if err != nil {
		return err
	}
	return v.close(ctx, id)
}

// withPlan adds a plan to the application's state, which is the application's: what else it holds is kept.
func withPlan(state json.RawMessage, p plan) any {
	members := map[string]any{}
	var held map[string]json.RawMessage
	if json.Unmarshal(state, &held) == nil {
		for name, value := range held {
			members[name] = value
		}
	}
	members["plan"] = p
	return members
}

// takeStep does one step of the plan: it is running, takes a moment, and is done.
func (v *voice) takeStep(ctx context.Context, i int, s step) error {
	status := fmt.Sprintf("/plan/steps/%d/status", i)
	if err := v.send(ctx, event{Type: "STEP_STARTED", StepName: s.Title}); err != nil {
		return err
	}
	running := []operation{{Op: "replace", Path: status, Value: "running"}}
	if err := v.send(ctx, event{Type: "STATE_DELTA", Delta: running}); err != nil {
		return err
	}
	if err := v.work(ctx, workPause); err != nil {
		return err
	}
	done := []operation{{Op: "replace", Path: status, Value: "done"}, {Op: "replace", Path: "/plan/done", Value: i + 1}}
	if err := v.send(ctx, event{Type: "STATE_DELTA", Delta: done}); err != nil {
		return err
	}
	return v.send(ctx, event{Type: "STEP_FINISHED", StepName: s.Title})
}
