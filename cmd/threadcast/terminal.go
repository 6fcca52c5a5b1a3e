package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
)

// defaultServer is where a server listens that was started without flags.
const defaultServer = "http://127.0.0.1:8080"

// termFlags are the flags of the commands for people at a terminal.
type termFlags struct {
	terminal.Config
	terminal.Tailing
	terminal.Question
	server, color string
	limit         int
}

// termCommand is one of these commands.
type termCommand struct {
	name, usage string
	about       string
	run         func(p process, f *termFlags, args []string) error
}

var termCommands = []termCommand{
	{"ask", "[flags] TEXT...", `asks an agent and shows its answer, in a thread that stays. TEXT of "-" is read from the standard input. The answer
goes to the standard output, the thread's id and all that is no answer to the standard error. Ctrl-C leaves the run
alone: it goes on.`, runAsk},
	{"tail", "THREAD [flags]", `shows a thread, and what comes, until Ctrl-C. When the connection is lost it is made again, and nothing is missed.`, runTail},
	{"threads", "[flags]", `lists threads, latest activity first.`, runThreads},
	{"stop", "THREAD [RUN] [flags]", `stops the run that is active, or RUN if that is active, or cancels what the thread waits for.`, runStop},
}

// termFlag is a row of the table of their flags: help and documentation are made from it.
type termFlag struct {
	of          string // the commands, or empty for all
	name, value string
	help        string
	bind        func(*flag.FlagSet, string, *termFlags)
}

func termText(field func(*termFlags) *string) func(*flag.FlagSet, string, *termFlags) {
	return func(fs *flag.FlagSet, name string, f *termFlags) { fs.StringVar(field(f), name, *field(f), "") }
}

func termSwitch(field func(*termFlags) *bool) func(*flag.FlagSet, string, *termFlags) {
	return func(fs *flag.FlagSet, name string, f *termFlags) { fs.BoolVar(field(f), name, *field(f), "") }
}

var termTable = []termFlag{
	{"ask", "thread", "THREAD", "go on in this thread; a new one if it is not given", termText(func(f *termFlags) *string { return &f.Question.Thread })},
	{"ask", "agent", "NAME", "the agent; the thread's if it is not given, or the default one",
		termText(func(f *termFlags) *string { return &f.Agent })},
	{"ask", "on-busy", "WHAT", "what to do while another run is active: reject, enqueue, interrupt or replace",
		termText(func(f *termFlags) *string { return &f.OnBusy })},
	{"ask", "answer", "ANSWER", "answer what the thread waits for: yes, no, or a value; repeat it for more questions",
		func(fs *flag.FlagSet, name string, f *termFlags) {
			fs.Func(name, "", func(s string) error { f.Answers = append(f.Answers, s); return nil })
		}},
	{"ask", "stop-on-interrupt", "", "stop the run on Ctrl-C, in place of leaving it alone", termSwitch(func(f *termFlags) *bool { return &f.StopOnInterrupt })},
	{"tail", "after", "CURSOR", "only what follows this position, as --json tells it", termText(func(f *termFlags) *string { return &f.After })},
	{"tail", "from-now", "", "only what comes from now on", termSwitch(func(f *termFlags) *bool { return &f.Now })},
	{"tail", "once", "", "end when everything is shown that is there now", termSwitch(func(f *termFlags) *bool { return &f.Once })},
	{"tail", "raw", "", "event by event, as long as the server has them, in place of fewer events with the same meaning",
		termSwitch(func(f *termFlags) *bool { return &f.Raw })},
	{"threads", "limit", "N", "how many threads; 0 is all of them",
		func(fs *flag.FlagSet, name string, f *termFlags) { fs.IntVar(&f.limit, name, 50, "") }},
	{"ask tail threads", "full", "", "do not shorten arguments, results, states and titles", termSwitch(func(f *termFlags) *bool { return &f.Full })},
	{"", "json", "", "print JSON, one object a line", termSwitch(func(f *termFlags) *bool { return &f.JSON })},
	{"ask tail threads", "color", "WHEN", "use colours: always, never, or auto, which is on a terminal unless NO_COLOR is set",
		func(fs *flag.FlagSet, name string, f *termFlags) { fs.StringVar(&f.color, name, "auto", "") }},
	{"", "server", "URL", "the server, or what stands before several (THREADCAST_SERVER)", termText(func(f *termFlags) *string { return &f.server })},
	{"", "token", "TOKEN", "says who you are, as \"Authorization: Bearer\"; better given as THREADCAST_TOKEN, which others on the machine cannot read",
		termText(func(f *termFlags) *string { return &f.Token })},
}

// flagsOf are those of one command.
func flagsOf(command string) []termFlag {
	return slices.DeleteFunc(slices.Clone(termTable), func(row termFlag) bool {
		return row.of != "" && !slices.Contains(strings.Fields(row.of), command)
	})
}

func findTerm(name string) (termCommand, bool) {
	i := slices.IndexFunc(termCommands, func(c termCommand) bool { return c.name == name })
	if i < 0 {
		return termCommand{}, false
	}
	return termCommands[i], true
}

func isTerm(name string) bool {
	_, ok := findTerm(name)
	return ok
}

// parseTerm reads the command line of one of the commands. Flags may stand before and behind what is no flag.
func parseTerm(name string, args []string, env func(string) (string, bool)) (*termFlags, []string, *flag.FlagSet, error) {
	f := &termFlags{server: defaultServer}
	if v, ok := env("THREADCAST_SERVER"); ok && v != "" {
		f.server = v
	}
	f.Token, _ = env("THREADCAST_TOKEN")
	fs := flag.NewFlagSet("threadcast "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, row := range flagsOf(name) {
		row.bind(fs, row.name, f)
	}
	words, err := parseAnywhere(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return f, words, fs, err
	case err != nil:
		return f, words, fs, usageError{err}
	}
	if err := client.CheckURL(f.server); err != nil {
		return f, words, fs, usagef("--server: %w", err)
	}
	f.Config.Server = strings.TrimRight(f.server, "/")
	if f.Config.Server != defaultServer {
		if v, _ := env("THREADCAST_SERVER"); v != f.server {
			f.Flags = " --server " + f.Config.Server
		}
	}
	return f, words, fs, f.check()
}

// parseAnywhere parses flags wherever they stand, and returns the other words. Behind "--" there are no flags.
func parseAnywhere(fs *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if len(rest) == 0 {
			return words, nil
		}
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(words, rest...), nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

func (f *termFlags) check() error {
	switch {
	case f.After != "" && f.Now:
		return usagef("--after and --from-now cannot both be given")
	case f.limit < 0:
		return usagef("--limit: a number must not be negative")
	case !slices.Contains([]string{"", "reject", "enqueue", "interrupt", "replace"}, f.OnBusy):
		return usagef("--on-busy: %q is none of reject, enqueue, interrupt and replace", f.OnBusy)
	case !slices.Contains([]string{"", "auto", "always", "never"}, f.color):
		return usagef("--color: %q is none of auto, always and never", f.color)
	}
	return nil
}

// runTerm is one of the commands.
func runTerm(p process, c termCommand, args []string) error {
	f, words, fs, err := parseTerm(c.name, args, p.env)
	if errors.Is(err, flag.ErrHelp) {
		termHelp(p.stdout, c, fs)
	}
	if err != nil {
		return err
	}
	f.Output = p.output(f.color)
	return c.run(p, f, words)
}

func runAsk(p process, f *termFlags, words []string) error {
	text := strings.Join(words, " ")
	if text == "-" {
		var err error
		if text, err = p.readAll(); err != nil {
			return fmt.Errorf("read the question: %w", err)
		}
		f.In = nil
	}
	switch {
	case text == "" && len(f.Answers) == 0:
		return usagef(`there is nothing to ask; give a TEXT, or "-" to read one`)
	case len(f.Answers) > 0 && f.Question.Thread == "":
		return usagef("--answer needs --thread")
	}
	f.Text, f.Insist = text, p.hard.Done()
	return terminal.Ask(p.soft, f.Config, f.Question)
}

// readAll reads what comes in, unless the process is to end before that does.
func (p process) readAll() (string, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(p.stdin)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return strings.TrimSpace(string(r.text)), r.err
	case <-p.soft.Done():
		return "", terminal.ErrInterrupted
	}
}

func runTail(p process, f *termFlags, words []string) error {
	if len(words) != 1 {
		return usagef("name one thread, and not %d; threadcast threads lists them", len(words))
	}
	f.Tailing.Thread = words[0]
	return terminal.Tail(p.soft, f.Config, f.Tailing)
}

func runThreads(p process, f *termFlags, words []string) error {
	if len(words) != 0 {
		return usagef("unexpected argument %q", words[0])
	}
	return terminal.Threads(p.soft, f.Config, f.limit)
}

func runStop(p process, f *termFlags, words []string) error {
	switch len(words) {
	case 1:
		return terminal.Stop(p.soft, f.Config, words[0], "")
	case 2:
		return terminal.Stop(p.soft, f.Config, words[0], words[1])
	}
	return usagef("name a thread, and at most one run of it")
}

// output is what the process writes to, with colours if they are wanted.
func (p process) output(color string) terminal.Output {
	kind, _ := p.env("TERM")
	able := kind != "dumb"
	o := terminal.Output{Out: p.stdout, Err: p.stderr, OutTerminal: able && isTerminal(p.stdout), ErrTerminal: able && isTerminal(p.stderr)}
	none, _ := p.env("NO_COLOR")
	o.Color = color == "always" || color != "never" && none == "" && o.OutTerminal
	if o.ErrTerminal && isTerminal(p.stdin) {
		o.In = p.stdin
	}
	if out, ok := p.stdout.(*os.File); ok && o.OutTerminal {
		o.Width = func() int {
			width, _, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 0
			}
			return width
		}
	}
	return o
}

// isTerminal tells whether a reader or a writer is one.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
