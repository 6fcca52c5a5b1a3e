package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/threadcast/threadcast/runner/agent"
)

// agentList is the agents as they were configured: by --agent, its variable or its key, or else by the file's table.
type agentList struct {
	given []string
	table []agentSpec
}

func (l agentList) specs() ([]agentSpec, error) {
	given := l.given
	switch {
	case len(given) == 0 && len(l.table) > 0:
		return l.table, nil
	case len(given) == 0:
		given = []string{"demo=demo"}
	}
	var specs []agentSpec
	for _, text := range given {
		spec, err := parseAgent(text)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// agentSpec is an agent as it was configured.
type agentSpec struct {
	source     string // where it is said, for errors
	name       string
	kind       string
	url        string
	model      string
	keyEnv     string
	provider   string
	system     string
	systemFile string
	allow      []string
	headers    map[string]string
	headerEnv  map[string]string
}

// agentKey is one row of the table of what agents can be told: a key of an agent in the file and, unless it takes a list of
// its own, of the query of an openai agent's URL.
type agentKey struct {
	name string
	of   []string // the types that have it
	help string
	set  func(*agentSpec, any) error
}

var agentTypes = []string{"agui", "openai", "demo"}

// agentKeys is the table: parsing, help and documentation are made from it.
var agentKeys = []agentKey{
	{"type", agentTypes, "agui for an agent that speaks AG-UI, openai for a model behind a chat completions API, demo for the built-in one",
		single(func(a *agentSpec) *string { return &a.kind })},
	{"url", []string{"agui", "openai"}, "where it is; for openai what comes before /chat/completions, such as http://127.0.0.1:11434/v1",
		single(func(a *agentSpec) *string { return &a.url })},
	{"model", []string{"openai"}, "the name that the server knows the model by",
		single(func(a *agentSpec) *string { return &a.model })},
	{"key_env", []string{"openai"}, "the name of the environment variable that holds the key; never the key itself",
		single(func(a *agentSpec) *string { return &a.keyEnv })},
	{"system", []string{"openai"}, "the system prompt",
		single(func(a *agentSpec) *string { return &a.system })},
	{"system_file", []string{"openai"}, "a file that holds the system prompt, relative to the configuration file, or for --agent to the current folder",
		single(func(a *agentSpec) *string { return &a.systemFile })},
	{"allow", []string{"openai"}, "what clients may set by forwardedProps: of " + strings.Join(agent.OpenAIOverrides(), ", ") +
		"; a list, or separated by commas; nothing if not given", setAllow},
	{"provider", []string{"openai"}, "what the token usage names as provider; openai for OpenAI's own servers and openai-compatible for others if not given",
		single(func(a *agentSpec) *string { return &a.provider })},
	{"headers", []string{"agui"}, "a table of headers that are sent to it; only in the file",
		table(func(a *agentSpec) *map[string]string { return &a.headers })},
	{"header_env", []string{"agui"}, "a table of headers and the environment variables that hold their values; only in the file",
		table(func(a *agentSpec) *map[string]string { return &a.headerEnv })},
}

func single(field func(*agentSpec) *string) func(*agentSpec, any) error {
	return func(a *agentSpec, v any) error {
		switch v.(type) {
		case nil, []any, yaml.MapSlice:
			return errors.New("takes one value")
		}
		*field(a) = fmt.Sprint(v)
		return nil
	}
}

func table(field func(*agentSpec) *map[string]string) func(*agentSpec, any) error {
	return func(a *agentSpec, v any) error {
		items, ok := v.(yaml.MapSlice)
		if !ok {
			return errors.New("takes a table")
		}
		entries := map[string]string{}
		for _, item := range items {
			switch item.Value.(type) {
			case nil, []any, yaml.MapSlice:
				return fmt.Errorf("takes one value for %v", item.Key)
			}
			entries[fmt.Sprint(item.Key)] = fmt.Sprint(item.Value)
		}
		*field(a) = entries
		return nil
	}
}

func setAllow(a *agentSpec, v any) error {
	list, ok := v.([]any)
	if !ok {
		var text string
		if err := single(func(*agentSpec) *string { return &text })(a, v); err != nil {
			return err
		}
		for _, name := range strings.Split(text, ",") {
			list = append(list, strings.TrimSpace(name))
		}
	}
	for _, name := range list {
		if text := fmt.Sprint(name); text != "" {
			a.allow = append(a.allow, text)
		}
	}
	return nil
}

// set gives an agent what a key says.
func (a *agentSpec) set(key string, value any) error {
	i := slices.IndexFunc(agentKeys, func(k agentKey) bool { return k.name == key })
	if i < 0 || a.kind != "" && !slices.Contains(agentKeys[i].of, a.kind) {
		return fmt.Errorf("unknown key %q; %s has %s", key, a.article(), strings.Join(keysOf(a.kind), ", "))
	}
	if err := agentKeys[i].set(a, value); err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	return nil
}

func (a *agentSpec) article() string {
	if a.kind == "" {
		return "an agent"
	}
	return "an agent of type " + a.kind
}

// keysOf are the keys of a type of agent, or of all.
func keysOf(kind string) (names []string) {
	for _, k := range agentKeys {
		if kind == "" || slices.Contains(k.of, kind) {
			names = append(names, k.name)
		}
	}
	return names
}

// parseAgent reads NAME=TYPE:URL. The query of an openai agent's URL holds its other keys.
func parseAgent(text string) (agentSpec, error) {
	a := agentSpec{source: "--agent"}
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return a, usagef("--agent: %q is not NAME=TYPE:URL, such as story=agui:http://127.0.0.1:9000/", text)
	}
	a.name = name
	a.kind, a.url, _ = strings.Cut(rest, ":")
	if a.kind != "openai" {
		return a, nil
	}
	var query string
	a.url, query, _ = strings.Cut(a.url, "?")
	keys, err := url.ParseQuery(query)
	if err != nil {
		return a, a.errorf("what follows the ? cannot be read: %w", err)
	}
	for key, given := range keys {
		switch {
		case key == "type" || key == "url":
			return a, a.errorf("%s stands before the ?", key)
		case len(given) > 1:
			return a, a.errorf("%s takes one value", key)
		}
		if err := a.set(key, given[0]); err != nil {
			return a, a.errorf("%w", err)
		}
	}
	return a, nil
}

// readAgents reads the table agents of a configuration file. The agents keep their order: the first is the default.
func readAgents(file string, value any) ([]agentSpec, error) {
	names, ok := value.(yaml.MapSlice)
	if !ok || len(names) == 0 {
		return nil, usagef("%s: agents takes a table of names, each with a table of keys such as type and url", file)
	}
	var list []agentSpec
	for _, named := range names {
		a := agentSpec{source: "agents in " + file, name: fmt.Sprint(named.Key)}
		keys, ok := named.Value.(yaml.MapSlice)
		if !ok {
			return nil, a.errorf("it takes a table of keys such as type and url")
		}
		for _, key := range keys { // the type first: it tells which others there are
			if key.Key == "type" {
				a.kind = fmt.Sprint(key.Value)
			}
		}
		if a.kind == "" {
			return nil, a.errorf("type is missing; it can be %s", strings.Join(agentTypes, ", "))
		}
		if !slices.Contains(agentTypes, a.kind) {
			return nil, a.unknownType()
		}
		for _, key := range keys {
			if err := a.set(fmt.Sprint(key.Key), key.Value); err != nil {
				return nil, a.errorf("%w", err)
			}
		}
		if a.systemFile != "" && !filepath.IsAbs(a.systemFile) {
			a.systemFile = filepath.Join(filepath.Dir(file), a.systemFile)
		}
		list = append(list, a)
	}
	return list, nil
}

func (a *agentSpec) errorf(format string, args ...any) error {
	return usagef("%s: %q: %w", a.source, a.name, fmt.Errorf(format, args...))
}

func (a *agentSpec) unknownType() error {
	return a.errorf("unknown type %q; this version has %s", a.kind, strings.Join(agentTypes, ", "))
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret looks up what an environment variable holds. Errors do not repeat what was given in place of a name: it may be
// the secret.
func secret(key, variable string, env func(string) (string, bool)) (string, error) {
	if !variableName.MatchString(variable) {
		return "", fmt.Errorf("%s takes the name of an environment variable, and nothing else", key)
	}
	value, _ := env(variable)
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("the environment variable %s, which %s names, is not set", variable, key)
	}
	return value, nil
}
