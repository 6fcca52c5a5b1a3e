// Command embed is threadcast inside a Go server of your own: its routes beside yours, an agent that is a function of this
// program, and your way of telling who calls.
//
//	go run ./docs/examples/embed
//	curl -N localhost:8090/agui/parrot -H 'Authorization: Bearer ann-token' -d '{"threadId":"t1","runId":"r1","state":{},
//	  "messages":[{"id":"m1","role":"user","content":"one two three"}],"tools":[],"context":[],"forwardedProps":{}}'
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/history"
	"github.com/threadcast/threadcast/persistence/sqlitefile"
	"github.com/threadcast/threadcast/persistence/sqllog"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/web"
)

func main() {
	if err := listen("127.0.0.1:8090", "embed.db"); err != nil {
		slog.Error("it ended", "err", err)
		os.Exit(1)
	}
}

// listen serves until the process is told to end.
func listen(addr, path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("serving", "url", "http://"+listener.Addr().String())
	return serve(ctx, listener, path)
}

// serve serves until ctx is done. All that threads hold is in the file.
func serve(ctx context.Context, listener net.Listener, path string) (err error) {
	file, err := sqlitefile.Open(ctx, path, sqlitefile.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	past, err := history.NewSQLite(file.Writer(), file.Reader(), history.Options{})
	if err != nil {
		return err
	}
	live, err := sqllog.New(ctx, file.Writer(), file.Reader(), sqllog.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	viewers := hub.New(live, past, hub.Config{Compact: runner.Compact})
	defer viewers.Close()
	past.Listen(viewers.Listed) // what changes in the lists of threads
	runs := runner.New(runner.Stores{
		Log: live, Heads: live, Leaser: live, Owners: live, History: past, Records: past, Backlog: past, Line: past, Story: past,
		Results: past, Board: viewers,
	}, map[string]runner.Agent{"parrot": parrot{}}, "parrot", runner.Config{})
	site := web.New(web.Parts{
		Hub: viewers, Runs: runs, Directory: past, Asker: runs, Identify: identify,
		Agents: []web.Agent{{ID: "parrot", Type: "embedded", Default: true}},
	}, web.Config{})

	routes := http.NewServeMux()
	routes.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a route of my own") })
	routes.Handle("/", site.Handler())
	return run(ctx, listener, &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}, site, runs)
}

// run serves, ends what an earlier process left behind, and says goodbye in order: viewers are told to come back, runs have
// some seconds to finish, and those that do not are ended as shut down.
func run(ctx context.Context, listener net.Listener, server *http.Server, site *web.Server, runs *runner.Runner) error {
	watch, stopWatch := context.WithCancel(context.Background())
	watched, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(watched)
		runs.Watch(watch)
	}()
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	stopWatch()
	<-watched
	soft, cancelSoft := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelSoft()
	hard, cancelHard := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancelHard()
	site.Drain(soft)
	_, drained := runs.Drain(soft, hard)
	return errors.Join(err, drained, server.Close())
}
