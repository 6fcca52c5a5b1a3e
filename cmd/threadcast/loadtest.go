package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
)

// loadFlags are the flags of "threadcast loadtest".
type loadFlags struct {
	loadtest.Config
	json bool
}

// loadFlag is a row of their table: help and documentation are made from it.
type loadFlag struct {
	name, value string
	help        string
	bind        func(*flag.FlagSet, string, *loadFlags)
}

func loadNumber(field func(*loadFlags) *int) func(*flag.FlagSet, string, *loadFlags) {
	return func(fs *flag.FlagSet, name string, f *loadFlags) { fs.IntVar(field(f), name, *field(f), "") }
}

func loadText(field func(*loadFlags) *string) func(*flag.FlagSet, string, *loadFlags) {
	return func(fs *flag.FlagSet, name string, f *loadFlags) { fs.StringVar(field(f), name, *field(f), "") }
}

func loadSwitch(field func(*loadFlags) *bool) func(*flag.FlagSet, string, *loadFlags) {
	return func(fs *flag.FlagSet, name string, f *loadFlags) { fs.BoolVar(field(f), name, *field(f), "") }
}

var loadTable = []loadFlag{
	{"url", "URL", "a node, such as http://127.0.0.1:8080, or what stands before several; repeat it for more nodes (required)",
		func(fs *flag.FlagSet, name string, f *loadFlags) {
			fs.Func(name, "", func(s string) error { f.URLs = append(f.URLs, s); return nil })
		}},
	{"threads", "N", "how many threads", loadNumber(func(f *loadFlags) *int { return &f.Threads })},
	{"viewers", "N", "how many viewers follow each thread, every one over a socket of its own",
		loadNumber(func(f *loadFlags) *int { return &f.Viewers })},
	{"runs", "N", "how many runs each thread has, one after the other", loadNumber(func(f *loadFlags) *int { return &f.Runs })},
	{"at-once", "N", "how many of the threads run at the same time; 0 is all of them",
		loadNumber(func(f *loadFlags) *int { return &f.AtOnce })},
	{"events", "N", "how many text events the built-in agent sends in a run", loadNumber(func(f *loadFlags) *int { return &f.Emit.Count })},
	{"rate", "R", "how many events a second a run sends; 0 is as fast as they are taken",
		func(fs *flag.FlagSet, name string, f *loadFlags) { fs.Float64Var(&f.Emit.Rate, name, f.Emit.Rate, "") }},
	{"bytes", "N", "size of an event", loadNumber(func(f *loadFlags) *int { return &f.Emit.Bytes })},
	{"agent", "NAME", "the agent; the default one if it is not given. Any but the built-in one does as it pleases",
		loadText(func(f *loadFlags) *string { return &f.Agent })},
	{"message", "TEXT", "what the agent is told", loadText(func(f *loadFlags) *string { return &f.Message })},
	{"restless", "PERCENT", "how many of the viewers cut their connections now and then and resume on any node",
		loadNumber(func(f *loadFlags) *int { return &f.Restless })},
	{"drops", "N", "how many times in a run such a viewer does so", loadNumber(func(f *loadFlags) *int { return &f.Drops })},
	{"stop", "PERCENT", "how many of the runs are stopped before they end", loadNumber(func(f *loadFlags) *int { return &f.Stop })},
	{"connect", "N", "how many connections are opened in a second; 0 is as many as can be",
		loadNumber(func(f *loadFlags) *int { return &f.Connect })},
	{"patience", "DURATION", "for how long nothing may come before a run counts as unfinished, and a node may be away",
		func(fs *flag.FlagSet, name string, f *loadFlags) { fs.DurationVar(&f.Patience, name, f.Patience, "") }},
	{"prefix", "TEXT", "what the ids of the threads begin with; by chance if it is not given, so that they are new",
		loadText(func(f *loadFlags) *string { return &f.Prefix })},
	{"delete", "", "remove the threads at the end", loadSwitch(func(f *loadFlags) *bool { return &f.Delete })},
	{"json", "", "print the report as JSON", loadSwitch(func(f *loadFlags) *bool { return &f.json })},
}

// parseLoad reads the command line of "threadcast loadtest".
func parseLoad(args []string) (loadFlags, *flag.FlagSet, error) {
	f := loadFlags{Config: loadtest.Defaults()}
	fs := flag.NewFlagSet("threadcast loadtest", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, row := range loadTable {
		row.bind(fs, row.name, &f)
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return f, fs, err
	case err != nil:
		return f, fs, usageError{err}
	case fs.NArg() > 0:
		return f, fs, usagef("unexpected argument %q", fs.Arg(0))
	}
	if err := f.Check(); err != nil {
		return f, fs, usageError{fmt.Errorf("loadtest: %w", err)}
	}
	return f, fs, nil
}

const loadHelpHead = `threadcast loadtest drives many viewers against running nodes, and checks what each of them sees: every event
of every run once, in order, the same bytes as all others and as the API has them.

Usage:
  threadcast loadtest --url http://127.0.0.1:8080 [flags]

Flags:
`

const loadHelpTail = `
Exit codes: 0 when every viewer has seen every event once and in order, 1 when something is wrong, 2 when the command
cannot be understood. Ctrl-C ends it, and the report tells what was found until then.
`

func loadHelp(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprint(w, loadHelpHead)
	for _, row := range loadTable {
		note := fs.Lookup(row.name).DefValue
		if note == "" || row.value == "" {
			fmt.Fprintf(w, "\n  --%s\n        %s\n", strings.TrimSpace(row.name+" "+row.value), row.help)
			continue
		}
		fmt.Fprintf(w, "\n  --%s\n        %s (default %s)\n", row.name+" "+row.value, row.help, note)
	}
	fmt.Fprint(w, loadHelpTail)
}

// runLoad is "threadcast loadtest".
func runLoad(p process, args []string) error {
	f, fs, err := parseLoad(args)
	if errors.Is(err, flag.ErrHelp) {
		loadHelp(p.stdout, fs)
	}
	if err != nil {
		return err
	}
	if isTerminal(p.stderr) {
		f.Progress = p.stderr
	}
	report, err := loadtest.Run(p.soft, f.Config)
	if err != nil && p.soft.Err() == nil {
		return fmt.Errorf("loadtest: %w", err)
	}
	if err := printReport(p.stdout, report, f.json); err != nil {
		return err
	}
	switch {
	case p.soft.Err() != nil:
		return errors.New("loadtest: interrupted")
	case !report.OK():
		return errors.New("loadtest: not everything is as it should be")
	}
	return nil
}

func printReport(w io.Writer, report loadtest.Report, asJSON bool) error {
	if !asJSON {
		_, err := report.WriteTo(w)
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}
