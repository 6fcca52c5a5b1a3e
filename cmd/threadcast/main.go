// Command threadcast is the server: it reads the configuration, wires the parts together, and ends them in order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
)

// version is set by the linker of a release.
var version = ""

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the process until its end and returns the exit code.
func command(args []string, stdout, stderr io.Writer) int {
	soft, stopSoft := context.WithCancel(context.Background())
	hard, stopHard := context.WithCancel(context.Background())
	defer stopSoft()
	defer stopHard()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	go func() {
		for _, stop := range []func(){stopSoft, stopHard} {
			select {
			case <-signals:
				stop()
			case <-hard.Done():
				return
			}
		}
	}()
	err := run(process{soft: soft, hard: hard, env: os.LookupEnv, stdin: os.Stdin, stdout: stdout, stderr: stderr}, args)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		of := ""
		if len(args) > 0 && (isTerm(args[0]) || args[0] == "loadtest") {
			of = " " + args[0]
		}
		fmt.Fprintf(stderr, "threadcast: %v\nthreadcast%s --help explains the flags.\n", err, of)
		return 2
	case !terminal.Said(err):
		fmt.Fprintf(stderr, "threadcast: %v\n", err)
	}
	if len(args) > 0 && isTerm(args[0]) {
		return terminal.ExitCode(err)
	}
	return 1
}

// process is what the outside gives: the wish to end (soft), to end at once (hard), the environment, and output.
type process struct {
	soft, hard     context.Context
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run is the command without the process around it, so that tests can call it.
func run(p process, args []string) error {
	command := "serve"
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-version") {
		args = []string{"version"}
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	if c, ok := findTerm(command); ok {
		return runTerm(p, c, args)
	}
	switch command {
	case "serve":
		c, err := load(args, p.env)
		if errors.Is(err, flag.ErrHelp) {
			help(p.stdout)
		}
		if err != nil {
			return err
		}
		return serve(p, c)
	case "version":
		fmt.Fprintln(p.stdout, "threadcast", currentVersion())
		return nil
	case "loadtest":
		return runLoad(p, args)
	case "help":
		help(p.stdout)
		return nil
	}
	return usagef("unknown command %q", command)
}

// currentVersion is the release's, or else what the build knows.
func currentVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
