package main

import (
	"fmt"
	"io"
	"strings"
)

const helpHead = `threadcast runs AI agents so that their answers outlive the browser tab.

Usage:
  threadcast [serve] [flags]   serve; this is what happens without a command
  threadcast version           print the version
  threadcast help              print this

Start it without flags, open the page it prints, and talk to the built-in agent. Then bring your own:
  threadcast --agent story=agui:http://127.0.0.1:9000/

Flags, each also as a variable and as a key of the file that --config names:
`

const helpTail = `
  --config FILE (THREADCAST_CONFIG)
        a YAML file of these settings, such as
          listen: 127.0.0.1:9090
          agent:
            - story=agui:http://127.0.0.1:9000/
            - demo=demo

Flags win over variables, variables over the file. SIGTERM or Ctrl-C ends the process in an orderly way: runs may
finish, for as long as --grace allows. A second one ends it at once.
Exit codes: 0 after an orderly end, 1 when something went wrong, 2 when the command cannot be understood.
`

// help prints what --help prints. It is made from the settings.
func help(w io.Writer) {
	fmt.Fprint(w, helpHead)
	for _, s := range settings {
		fmt.Fprintf(w, "\n  --%s (%s)\n        %s%s\n", strings.TrimSpace(s.name+" "+s.value), s.variable(), s.help, s.defaultNote())
	}
	fmt.Fprint(w, helpTail)
}

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
		fmt.Fprintf(w, "| `%s` | `%s` | %s | %s |\n", s.name, s.variable(), def, s.help)
	}
}

func (s setting) defaultNote() string {
	if s.def == "" {
		return ""
	}
	return " (default " + s.def + ")"
}
