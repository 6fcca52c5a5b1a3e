package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// documented are the pages whose command lines and files people copy.
var documented = []string{"../../docs/openai.md", "../../docs/cluster.md", "../../docs/configuration.md", "../../docs/clients/copilotkit.md", "../../README.md"}

var (
	commandLine = regexp.MustCompile(`(?m)^    (?:bin/)?threadcast ((?:serve )?--.*)$`)
	exported    = regexp.MustCompile(`key_env[=:] ?([A-Z_]+)|: ([A-Z_]+)\}`)
	yamlBlock   = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// TestDocumentedCommandsWork parses what the pages say, and makes the agents. No server is asked for anything.
func TestDocumentedCommandsWork(t *testing.T) {
	commands, files := 0, 0
	for _, page := range documented {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]string{}
		for _, m := range exported.FindAllStringSubmatch(string(text), -1) {
			env[m[1]+m[2]] = "secret"
		}
		try := func(what string, args ...string) {
			c, err := load(args, variables(env))
			if err != nil {
				t.Errorf("%s: %s: %v", page, what, err)
				return
			}
			a, err := newAgents(c.Agents, variables(env), c.Run.MaxEventBytes)
			if err != nil {
				t.Errorf("%s: %s: %v", page, what, err)
				return
			}
			a.Close()
		}
		for _, m := range commandLine.FindAllStringSubmatch(string(text), -1) {
			commands++
			try(m[1], shellWords(strings.TrimPrefix(m[1], "serve "))...)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			files++
			try(m[1], "--config", configFile(t, m[1]))
		}
	}
	if commands < 7 || files < 2 {
		t.Errorf("the pages show %d commands and %d files; some are not found", commands, files)
	}
}

// shellWords splits a command line as a shell does, as far as single quotes go.
func shellWords(line string) (words []string) {
	for i, piece := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, piece)
		} else {
			words = append(words, strings.Fields(piece)...)
		}
	}
	return words
}

// TestDocumentedCodes holds that the page names every code that the agent can end with.
func TestDocumentedCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/openai.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, file := range []string{"failure.go", "openai_failure.go", "openai_chat.go"} {
		source, err := os.ReadFile("../../runner/agent/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Code: +"([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
			codes[m[1]] = true
		}
	}
	if len(codes) < 13 {
		t.Errorf("only these codes were found: %v", codes)
	}
	for code := range codes {
		if !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("docs/openai.md does not explain %s", code)
		}
	}
}
