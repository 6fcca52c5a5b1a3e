package terminal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/terminal"
)

func stopping(id, run string) func(context.Context, terminal.Config) error {
	return func(ctx context.Context, c terminal.Config) error { return terminal.Stop(ctx, c, id, run) }
}

func listing(limit int) func(context.Context, terminal.Config) error {
	return func(ctx context.Context, c terminal.Config) error { return terminal.Threads(ctx, c, limit) }
}

func TestStopOfWhatDoesNotRun(t *testing.T) {
	s := open(t, "", said(1))
	s.run("t", "r1", "Hello", "")
	s.saved("t", "r1")
	for want, run := range map[string]string{"Nothing is running.\n": "", "Run r1 is not active.\n": "r1"} {
		c := s.start(nil, stopping("t", run))
		c.ends(0)
		if c.out.String() != want {
			t.Errorf("it says %q, want %q", &c.out, want)
		}
	}
	c := s.start(func(c *terminal.Config) { c.JSON = true }, stopping("t", ""))
	c.ends(0)
	if c.out.String() != `{"stopped":false}`+"\n" {
		t.Errorf("in JSON it says %q", &c.out)
	}
}

func TestThreadsAreListed(t *testing.T) {
	s := open(t, "", said(1), asking(), held(1))
	none := s.start(nil, listing(0))
	none.ends(0)
	if none.err.String() != "There are no threads yet.\n" {
		t.Errorf("of none it says %q", &none.err)
	}
	for i, title := range []string{"Hello", "日本語のとても長い題名" + strings.Repeat("名", 60), "Third"} {
		id, run := fmt.Sprint("t", i+1), fmt.Sprint("r", i+1)
		s.run(id, run, title, "")
		if i < 2 {
			s.saved(id, run)
		}
	}
	defer s.agent.Release("go")
	c := s.start(func(c *terminal.Config) { c.OutTerminal, c.Color, c.Width = true, true, func() int { return 60 } }, listing(0))
	c.ends(0)
	lines := strings.Split(strings.TrimSuffix(c.out.String(), "\n"), "\n")
	if len(lines) != 4 || lines[0] != "\x1b[2mSTATE     AGE  THREAD  TITLE\x1b[0m" {
		t.Fatalf("the list is\n%s", &c.out)
	}
	for i, want := range [][2]string{{"\x1b[32mrunning   \x1b[0m", "  t3      Third"}, {"\x1b[33mwaiting   \x1b[0m", "  t2      日本語のとても長い題名名名名名名名…"},
		{"\x1b[2mfinished  \x1b[0m", "  t1      Hello"}} {
		if !strings.HasPrefix(lines[i+1], want[0]) || !strings.HasSuffix(lines[i+1], want[1]) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i+1], want)
		}
	}
	two := s.start(func(c *terminal.Config) { c.JSON = true }, listing(2))
	two.ends(0)
	rows := strings.Split(strings.TrimSuffix(two.out.String(), "\n"), "\n")
	var row struct{ ID, State string }
	if err := json.Unmarshal([]byte(rows[0]), &row); err != nil || len(rows) != 2 || row.ID != "t3" || row.State != "running" {
		t.Errorf("in JSON they are %q", &two.out)
	}
}

func TestLongListsComeInPages(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		next := map[string]string{"": `"a b"`, "a b": `"c"`, "c": `null`}[r.URL.Query().Get("before")]
		fmt.Fprintf(w, `{"threads":[{"id":"t%d","title":"","state":"timed_out","activity":"2026-08-01T00:00:00Z"}],"next":%s}`, len(asked), next)
	}))
	defer server.Close()
	tests := map[string]struct {
		limit   int
		want    string
		queries []string
	}{
		"all":  {0, "t1 t2 t3", []string{"limit=200", "limit=200&before=a+b", "limit=200&before=c"}},
		"some": {2, "t1 t2", []string{"limit=2", "limit=1&before=a+b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked = nil
			var out strings.Builder
			c := terminal.Config{Server: server.URL, Output: terminal.Output{Out: &out, Err: io.Discard}}
			if err := terminal.Threads(t.Context(), c, test.limit); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(regexp.MustCompile(`\bt\d\b`).FindAllString(out.String(), -1), " "); got != test.want {
				t.Errorf("the list is\n%s", &out)
			}
			if !slices.Equal(asked, test.queries) {
				t.Errorf("it asked %q", asked)
			}
		})
	}
}
