package main

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/runner/agent"
	"github.com/threadcast/threadcast/web"
)

// agents are what was configured, in the order given.
type agents struct {
	byID  map[string]runner.Agent
	list  []web.Agent
	where []string // as an operator wants to read it at the start
	close []func()

	env      func(string) (string, bool) // for what is secret
	maxEvent int
}

// newAgents makes the agents that were configured; without any, the demo alone. env looks a variable up.
func newAgents(configured agentList, env func(string) (string, bool), maxEvent int) (*agents, error) {
	specs, err := configured.specs()
	if err != nil {
		return nil, err
	}
	a := &agents{byID: map[string]runner.Agent{}, env: env, maxEvent: maxEvent}
	for _, spec := range specs {
		if err := a.add(spec); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *agents) add(spec agentSpec) error {
	if err := thread.CheckID("name", spec.name); err != nil {
		return spec.errorf("%w", err)
	}
	if a.byID[spec.name] != nil {
		return usagef("%s: there are two agents named %q", spec.source, spec.name)
	}
	where := spec.name + "  " + spec.kind
	switch spec.kind {
	case "agui":
		made, err := a.newAGUI(spec)
		if err != nil {
			return spec.errorf("%w", err)
		}
		a.byID[spec.name] = made
		a.close = append(a.close, made.Close)
		where += " at " + withoutSecrets(spec.url)
	case "openai":
		made, err := a.newOpenAI(spec)
		if err != nil {
			return spec.errorf("%w", err)
		}
		a.byID[spec.name] = made
		a.close = append(a.close, made.Close)
		where += ", " + spec.model + " at " + withoutSecrets(spec.url)
	case "demo":
		speed, err := demoSpeed()
		if err != nil {
			return err
		}
		a.byID[spec.name] = agent.NewDemo(agent.DemoOptions{Speed: speed})
		where += ", built in"
	default:
		return spec.unknownType()
	}
	a.list = append(a.list, web.Agent{ID: spec.name, Type: spec.kind, Default: len(a.list) == 0})
	a.where = append(a.where, where)
	return nil
}

func (a *agents) newAGUI(spec agentSpec) (*agent.AGUI, error) {
	header := http.Header{}
	for name, value := range spec.headers {
		header.Add(name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.headerEnv)) {
		value, err := secret("header_env", spec.headerEnv[name], a.env)
		if err != nil {
			return nil, err
		}
		header.Add(name, value)
	}
	for name, values := range header {
		if len(values) > 1 {
			return nil, fmt.Errorf("header %s is given twice", name)
		}
	}
	return agent.NewAGUI(spec.url, agent.AGUIOptions{Header: header, MaxEvent: a.maxEvent})
}

func (a *agents) newOpenAI(spec agentSpec) (*agent.OpenAI, error) {
	if spec.model == "" {
		return nil, fmt.Errorf("model is missing; for --agent it follows the URL: ?model=NAME")
	}
	prompt, err := spec.prompt()
	if err != nil {
		return nil, err
	}
	var key string
	if spec.keyEnv != "" {
		if key, err = secret("key_env", spec.keyEnv, a.env); err != nil {
			return nil, err
		}
	}
	return agent.NewOpenAI(spec.url, agent.OpenAIOptions{
		Model: spec.model, Key: key, System: prompt, Provider: spec.provider, Allow: spec.allow, MaxEvent: a.maxEvent,
	})
}

// prompt returns the system prompt, wherever it is.
func (a *agentSpec) prompt() (string, error) {
	const most = 1 << 20
	if a.systemFile == "" {
		return a.system, nil
	}
	if a.system != "" {
		return "", fmt.Errorf("system and system_file are one too many")
	}
	text, err := os.ReadFile(a.systemFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("system_file: %w", err)
	case len(text) > most || !utf8.Valid(text):
		return "", fmt.Errorf("system_file: %s is not a text of at most %d bytes", a.systemFile, most)
	case strings.TrimSpace(string(text)) == "":
		return "", fmt.Errorf("system_file: %s is empty", a.systemFile)
	}
	return strings.TrimSpace(string(text)), nil
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
