package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const termExits = `
Exit codes: 0 when all went well, 1 when the run did not finish or the server refuses, 2 when the command cannot be
understood, 3 when the server cannot be reached, 4 when the run waits for an answer, 130 after Ctrl-C in ask.
`

// termHelp prints what --help prints for one of the commands.
func termHelp(w io.Writer, c termCommand, fs *flag.FlagSet) {
	fmt.Fprintf(w, "threadcast %s %s\n\nUsage:\n  threadcast %s %s\n\nFlags:\n", c.name, c.about, c.name, c.usage)
	for _, row := range flagsOf(c.name) {
		fmt.Fprintf(w, "\n  --%s\n        %s%s\n", strings.TrimSpace(row.name+" "+row.value), row.help, row.defaultNote(fs))
	}
	fmt.Fprint(w, termExits)
}

// defaultNote says what is taken if the flag is not given.
func (row termFlag) defaultNote(fs *flag.FlagSet) string {
	def := fs.Lookup(row.name).DefValue
	if row.name == "server" {
		def = defaultServer // whatever the environment says
	}
	if def == "" || row.value == "" || row.name == "token" {
		return ""
	}
	return " (default " + def + ")"
}
