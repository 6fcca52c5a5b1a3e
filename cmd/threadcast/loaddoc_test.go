package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/threadcast/threadcast/cmd/threadcast/loadtest"
)

// TestLoadtestPage holds that docs/loadtest.md has every flag as the command knows it, and that its commands can be given.
// With -update it writes the flags.
func TestLoadtestPage(t *testing.T) {
	const name = "../../docs/loadtest.md"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page, flags, found := strings.Cut(string(data), "## Flags\n\n")
	if !found {
		t.Fatalf("%s has no section of flags", name)
	}
	_, fs, err := parseLoad([]string{"--url", "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	want := "| flag | default | |\n|---|---|---|\n"
	for _, row := range loadTable {
		def := fs.Lookup(row.name).DefValue
		if row.value == "" || def == "" {
			def = ""
		} else {
			def = "`" + def + "`"
		}
		want += fmt.Sprintf("| `--%s` | %s | %s |\n", strings.TrimSpace(row.name+" "+row.value), def, row.help)
	}
	if *update {
		if err := os.WriteFile(name, []byte(page+"## Flags\n\n"+want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if flags != want {
		t.Errorf("the flags differ; go test -run TestLoadtestPage -update writes\n%s", want)
	}
	commands := regexp.MustCompile(`(?m)^(?:    |\$ )threadcast loadtest (.*)$`).FindAllStringSubmatch(page, -1)
	if len(commands) < 5 {
		t.Errorf("the page shows %d commands; some are not found", len(commands))
	}
	for _, m := range commands {
		if _, _, err := parseLoad(shellWords(m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	var report strings.Builder
	full := loadtest.Report{Unchecked: 1, Stop: loadtest.Latency{Count: 1}}
	if _, err := full.WriteTo(&report); err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^  (\S+(?: \S+)?)  `).FindAllStringSubmatch(report.String(), -1) {
		if !strings.Contains(page, "  "+row[1]+"  ") && !strings.Contains(page, "`"+row[1]+"`") {
			t.Errorf("the page does not show %q", row[1])
		}
	}
}
