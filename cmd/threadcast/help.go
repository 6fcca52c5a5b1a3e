package main

import (
	"fmt"
	"io"
	"strings"
)

const helpHead = `threadcast runs AI agents so that their answers outlive the browser tab.

Usage:
  threadcast [serve] [flags]   serve; this is what happens without a command
  threadcast ask TEXT...       ask an agent from the terminal; a thread comes of it
  threadcast tail THREAD       follow a thread in the terminal
  threadcast threads           list the threads
  threadcast stop THREAD       stop what runs in a thread; of these four, --help lists the flags
  threadcast loadtest [flags]  try running nodes with many viewers; loadtest --help lists the flags
  threadcast version           print the version
  threadcast help              print this

Start it without flags, open the page it prints, and talk to the built-in agent. Then bring your own:
  threadcast --agent story=agui:http://127.0.0.1:9000/
  threadcast --agent 'ai=openai:http://127.0.0.1:11434/v1?model=qwen3'     a model of Ollama

Flags, each also as a variable and as a key of the file that --config names:
`

const helpTail = `
  --config FILE (THREADCAST_CONFIG)
        a YAML file of these settings, such as
          listen: 127.0.0.1:9090
          agents:
            ai: {type: openai, url: https://api.openai.com/v1, model: gpt-4.1-mini, key_env: OPENAI_API_KEY}
            story: {type: agui, url: http://127.0.0.1:9000/}
            demo: {type: demo}

Flags win over variables, variables over the file. SIGTERM or Ctrl-C ends the process in an orderly way: runs may
finish, for as long as --grace allows. A second one ends it at once.
Exit codes: 0 after an orderly end, 1 when something went wrong, 2 when the command cannot be understood.
`

// help prints what --help prints. It is made from the settings.
func help(w io.Writer) {
	fmt.Fprint(w, helpHead)
	for _, s := range settings {
		if s.set == nil {
			fmt.Fprintf(w, "\n  %s (only in the file)\n        %s\n", s.name, s.help)
			continue
		}
		fmt.Fprintf(w, "\n  --%s (%s)\n        %s%s\n", strings.TrimSpace(s.name+" "+s.value), s.variable(), s.help, s.defaultNote())
	}
	fmt.Fprint(w, "\nKeys of an agent in the table agents:\n")
	for _, k := range agentKeys {
		fmt.Fprintf(w, "\n  %s (%s)\n        %s\n", k.name, strings.Join(k.of, ", "), k.help)
	}
	fmt.Fprint(w, helpTail)
}

const agentsPage = "\n## Agents\n\n```yaml" + `
agents:
  ai:
    type: openai
    url: https://api.openai.com/v1
    model: gpt-4.1-mini
    key_env: OPENAI_API_KEY
    system: You are brief.
    allow: [temperature]
  story:
    type: agui
    url: http://127.0.0.1:9000/
    header_env: {Authorization: STORY_AUTHORIZATION}
  demo: {type: demo}
` + "```" + `

The first is the default. Secrets have their place in the environment: the file and the command line only name the
variables. On a command line the keys that are one text follow the URL of an openai agent, and are not sent to it:

    threadcast --agent 'ai=openai:https://api.openai.com/v1?model=gpt-4.1-mini&key_env=OPENAI_API_KEY&allow=temperature' --agent demo=demo

[openai.md](openai.md) tells how to connect Ollama, vLLM, LM Studio and OpenAI.

| key | types | |
|---|---|---|
`

// markdown writes docs/configuration.md. It is made from the settings.
func markdown(w io.Writer) {
	fmt.Fprint(w, "# Configuration\n\nFlags win over variables, variables over the file that `--config` names (YAML, keys as below), the file over\n"+
		"defaults. An unknown key of the file is an error. This page is made from the table in `cmd/threadcast/config.go`\n"+
		"by `go test ./cmd/threadcast -run TestConfigurationPage -update`.\n\n"+
		"| key | variable | default | |\n|---|---|---|---|\n")
	for _, s := range settings {
		def := "`" + s.def + "`"
		if s.def == "" {
			def = ""
		}
		variable := "`" + s.variable() + "`"
		if s.set == nil {
			variable = "only in the file"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", s.name, variable, def, s.help)
	}
	fmt.Fprint(w, agentsPage)
	for _, k := range agentKeys {
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", k.name, strings.Join(k.of, ", "), k.help)
	}
}

func (s setting) defaultNote() string {
	if s.def == "" {
		return ""
	}
	return " (default " + s.def + ")"
}
