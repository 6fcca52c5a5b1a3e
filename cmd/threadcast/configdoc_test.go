package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files anew")

func TestConfigurationPage(t *testing.T) {
	const name = "../../docs/configuration.md"
	var want bytes.Buffer
	markdown(&want)
	if *update {
		if err := os.WriteFile(name, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the settings say; run this test with -update", name)
	}
}

func TestHelpNamesEverySetting(t *testing.T) {
	var text bytes.Buffer
	help(&text)
	for _, s := range settings {
		if s.set == nil {
			continue // TestHelpTellsOfEverySetting has it
		}
		if !strings.Contains(text.String(), "--"+s.name) || !strings.Contains(text.String(), s.variable()) {
			t.Errorf("the help does not explain %s", s.name)
		}
	}
}
