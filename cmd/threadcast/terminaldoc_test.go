package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTerminalPage holds that docs/terminal.md has every flag as the commands know it, and that its commands can be given.
// With -update it writes the flags.
func TestTerminalPage(t *testing.T) {
	const name = "../../docs/terminal.md"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page, flags, found := strings.Cut(string(data), "## Flags\n\n")
	if !found {
		t.Fatalf("%s has no section of flags", name)
	}
	none := variables(nil)
	want := "| flag | of | default | |\n|---|---|---|---|\n"
	for _, row := range termTable {
		of := strings.Join(strings.Fields(row.of), ", ")
		_, _, fs, err := parseTerm(strings.Fields(row.of + " ask")[0], nil, none)
		if err != nil {
			t.Fatal(err)
		}
		def := strings.TrimSuffix(strings.TrimPrefix(row.defaultNote(fs), " (default "), ")")
		if def != "" {
			def = "`" + def + "`"
		}
		want += fmt.Sprintf("| `--%s` | %s | %s | %s |\n", strings.TrimSpace(row.name+" "+row.value), of, def, row.help)
	}
	if *update {
		if err := os.WriteFile(name, []byte(page+"## Flags\n\n"+want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if flags != want {
		t.Errorf("the flags differ; go test -run TestTerminalPage -update writes\n%s", want)
	}
	commands := regexp.MustCompile(`(?m)^(?:    |\$ )threadcast (\S+) ?(.*)$`).FindAllStringSubmatch(page, -1)
	if len(commands) < 9 {
		t.Errorf("the page shows %d commands; some are not found", len(commands))
	}
	for _, m := range commands {
		words, _, _ := strings.Cut(m[2], " <")
		if _, ok := findTerm(m[1]); !ok {
			t.Errorf("there is no command %s", m[1])
		}
		if _, _, _, err := parseTerm(m[1], shellWords(words), none); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

func TestTerminalFlagsStandAnywhere(t *testing.T) {
	env := variables(map[string]string{"THREADCAST_SERVER": "https://a/", "THREADCAST_TOKEN": "t"})
	tests := map[string]struct {
		args   string
		words  string
		json   bool
		server string
		flags  string // that commands need which are proposed
	}{
		"behind":         {"thread --json", "thread", true, "https://a", ""},
		"before":         {"--json thread", "thread", true, "https://a", ""},
		"between":        {"how --json deep", "how deep", true, "https://a", ""},
		"none after --":  {"-- how --json", "how --json", false, "https://a", ""},
		"a dash":         {"- --json", "-", true, "https://a", ""},
		"another server": {"x --server http://b:1/", "x", false, "http://b:1", " --server http://b:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, words, _, err := parseTerm("ask", strings.Fields(test.args), env)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(words, " ")
			if got != test.words || f.JSON != test.json || f.Config.Server != test.server || f.Flags != test.flags || f.Token != "t" {
				t.Errorf("got %q %t %q %q", got, f.JSON, f.Config.Server, f.Flags)
			}
		})
	}
}
