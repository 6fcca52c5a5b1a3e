package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
	"github.com/threadcast/threadcast/web"
)

// agents are what --agent made, in the order given.
type agents struct {
	byID  map[string]runner.Agent
	list  []web.Agent
	where []string // as an operator wants to read it at the start
	close []func()
}

// newAgents makes the agents that were configured; without any, the demo alone.
func newAgents(specs []string, maxEvent int) (*agents, error) {
	if len(specs) == 0 {
		specs = []string{"demo=demo"}
	}
	a := &agents{byID: map[string]runner.Agent{}}
	for _, spec := range specs {
		if err := a.add(spec, maxEvent); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *agents) add(spec string, maxEvent int) error {
	id, rest, ok := strings.Cut(spec, "=")
	if !ok {
		return usagef("--agent: %q is not NAME=TYPE:URL, such as story=agui:http://127.0.0.1:9000/", spec)
	}
	if err := thread.CheckID("name", id); err != nil {
		return usagef("--agent: %q: %w", spec, err)
	}
	if a.byID[id] != nil {
		return usagef("--agent: there are two agents named %q", id)
	}
	kind, address, _ := strings.Cut(rest, ":")
	where := id + "  " + kind
	switch kind {
	case "agui":
		made, err := agent.NewAGUI(address, agent.AGUIOptions{MaxEvent: maxEvent})
		if err != nil {
			return usagef("--agent: %q: %w", id, err)
		}
		a.byID[id] = made
		a.close = append(a.close, made.Close)
		where += " at " + withoutSecrets(address)
	case "demo":
		speed, err := demoSpeed()
		if err != nil {
			return err
		}
		a.byID[id] = agent.NewDemo(agent.DemoOptions{Speed: speed})
		where += ", built in"
	default:
		return usagef("--agent: %q: unknown type %q; this version has agui and demo", id, kind)
	}
	a.list = append(a.list, web.Agent{ID: id, Type: kind, Default: len(a.list) == 0})
	a.where = append(a.where, where)
	return nil
}

// demoSpeed lets tests and the impatient make the demo quicker.
func demoSpeed() (float64, error) {
	text := os.Getenv("THREADCAST_DEMO_SPEED")
	if text == "" {
		return 1, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || speed <= 0 || math.IsNaN(speed) {
		return 0, usagef("THREADCAST_DEMO_SPEED: %q is not a positive number", text)
	}
	return speed, nil
}

// withoutSecrets is a URL as it may be printed.
func withoutSecrets(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = rest[at+1:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	return fmt.Sprintf("%s://%s", scheme, rest)
}

func (a *agents) Close() {
	for _, fn := range a.close {
		fn()
	}
}
