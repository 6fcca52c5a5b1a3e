package web

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

var update = flag.Bool("update", false, "write the golden frames of errors anew")

// sentinels are the errors of package thread, by name. That the list is whole, a test looks up in the source.
var sentinels = map[string]error{
	"ErrBadInput": thread.ErrBadInput, "ErrBadCursor": thread.ErrBadCursor, "ErrNotFound": thread.ErrNotFound,
	"ErrRunning": thread.ErrRunning, "ErrRunIDUsed": thread.ErrRunIDUsed, "ErrUnfinished": thread.ErrUnfinished,
	"ErrLeaseLost": thread.ErrLeaseLost, "ErrEnded": thread.ErrEnded, "ErrGap": thread.ErrGap,
	"ErrDeleted": thread.ErrDeleted, "ErrDraining": thread.ErrDraining, "ErrUnavailable": thread.ErrUnavailable,
	"ErrCorrupt": thread.ErrCorrupt, "ErrUnknownAgent": thread.ErrUnknownAgent, "ErrAnswered": thread.ErrAnswered, "ErrQueueFull": thread.ErrQueueFull, "ErrFull": thread.ErrFull, "ErrQueued": thread.ErrQueued,
	"ErrTooLarge": thread.ErrTooLarge,
}

// declared returns the names of the errors that the sources of package thread declare.
func declared(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../persistence/thread/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of package thread: %v", err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func TestEverySentinelHasARow(t *testing.T) {
	names := declared(t)
	if len(names) != len(sentinels) {
		t.Errorf("package thread declares %d errors, and this test knows %d", len(names), len(sentinels))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			sentinel := sentinels[name]
			if sentinel == nil {
				t.Fatal("this test does not know it")
			}
			rows := 0
			for _, f := range failures {
				if f.err == sentinel {
					rows++
				}
			}
			if rows != 1 {
				t.Fatalf("it has %d rows in the error table", rows)
			}
		})
	}
}

func TestEveryCodeIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]int{"internal": 500, "method_not_allowed": 405}
	for _, f := range failures {
		codes[f.code] = f.status
	}
	for code, status := range codes {
		if row := fmt.Sprintf("| `%s` | %d |", code, status); !bytes.Contains(doc, []byte(row)) {
			t.Errorf("docs/protocol.md lacks %s", row)
		}
	}
}

func TestMessagesOfInternalErrorsTellNothingOfTheInside(t *testing.T) {
	const secret = "dial tcp 10.1.2.3:5432: connection refused"
	all := []error{errors.New("something else")}
	for _, f := range failures {
		all = append(all, f.err)
	}
	for _, sentinel := range all {
		t.Run(sentinel.Error(), func(t *testing.T) {
			joined := problem(errors.Join(fmt.Errorf("thread t1: %w", sentinel), errors.New(secret)))
			if strings.Contains(joined.Message, "10.1.2.3") {
				t.Errorf("what was joined to it is told: %s", joined.Message)
			}
			wrapped := problem(fmt.Errorf("%s: %w", secret, sentinel))
			if wrapped.status >= 500 && strings.Contains(wrapped.Message, "10.1.2.3") {
				t.Errorf("what wraps it is told: %s", wrapped.Message)
			}
			if joined.Message == "" || strings.Contains(joined.Message, "bad input: ") {
				t.Errorf("the message is %q", joined.Message)
			}
		})
	}
}

// examples are errors as they come, by code; the golden frames show what clients get of them.
func examples() map[string]error {
	_, badCursor := thread.ParseCursor("yesterday")
	_, badInput := parseRun("t1", []byte(`[]`))
	return map[string]error{
		"thread_busy": &thread.RunningError{RunID: "r4", Owner: "node/SECRET", Since: time.Unix(1785576660, 0)},
		"already_answered": fmt.Errorf("record run r5: %w", &thread.AnsweredError{
			Answer: thread.Answer{Kind: thread.AnswerInterrupt, ID: "i1"}, RunID: "r4",
		}),
		"queue_full":      fmt.Errorf("enqueue run r5: %w", thread.ErrQueueFull),
		"unknown_agent":   fmt.Errorf("%w: %q", thread.ErrUnknownAgent, "nobody"),
		"bad_cursor":      badCursor,
		"run_id_used":     fmt.Errorf("%w: run %s of this thread was a run of agent %q", thread.ErrRunIDUsed, "r4", "demo"),
		"too_large":       fmt.Errorf("%w: the input has 9000000 bytes", thread.ErrTooLarge),
		"bad_input":       badInput,
		"not_found":       fmt.Errorf("thread t1: %w", thread.ErrNotFound),
		"thread_deleted":  thread.ErrDeleted,
		"draining":        fmt.Errorf("watch thread t1: %w", thread.ErrDraining),
		"unavailable":     fmt.Errorf("find the head of thread t1: disk I/O error: %w", thread.ErrUnavailable),
		"damaged":         fmt.Errorf("load run 3: %w", thread.ErrCorrupt),
		"run_ended":       thread.ErrEnded,
		"internal":        errors.New("a bug"),
		"unknown_event":   fmt.Errorf("%w: %q; a thread takes run, stop, status and sync", errUnknownEvent, "jump"),
		"unmatched_topic": errUnmatched,
		"too_many_topics": errTooManyTopics,
		"rate_limited":    errRateLimited,
		"not_authorized":  errForeign,

		"not_authenticated": errNoTicket,
	}
}

func TestErrorsAreWrittenAsInTheGoldenFrames(t *testing.T) {
	rows := examples()
	for _, f := range failures {
		if rows[f.code] == nil {
			t.Errorf("there is no example of %s", f.code)
		}
	}
	for code, err := range rows {
		t.Run(code, func(t *testing.T) {
			p := problem(err)
			if p.Code != code || p.status < 400 || http.StatusText(p.status) == "" {
				t.Fatalf("it is %s, %d", p.Code, p.status)
			}
			if p.AgeMs != nil {
				*p.AgeMs = 1500
			}
			frame := wire.Frame{JoinRef: "1", Ref: "9", Topic: "thread:t1"}
			got := append(wire.AppendReply(nil, frame, "error", p.json()), '\n')
			path := filepath.Join("wire/testdata/errors", code+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("written as\n%swant\n%s", got, want)
			}
		})
	}
}

func TestReasonsFitIntoACloseFrame(t *testing.T) {
	for reason, want := range map[string]string{
		"short":                             "short",
		strings.Repeat("x", 200):            strings.Repeat("x", 120),
		"x" + strings.Repeat("\u00e4", 100): "x" + strings.Repeat("\u00e4", 59),
	} {
		if got := shorten(reason); got != want {
			t.Errorf("%q became %q", reason, got)
		}
	}
}
