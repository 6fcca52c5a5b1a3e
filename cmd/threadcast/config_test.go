package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// variables is an environment.
func variables(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// configFile writes a configuration file and returns its name.
func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "threadcast.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestHelpTellsOfEverySetting(t *testing.T) {
	var text bytes.Buffer
	help(&text)
	for _, s := range settings {
		if s.set == nil {
			if !strings.Contains(text.String(), "\n  "+s.name+" (only in the file)\n        "+s.help) {
				t.Errorf("the help lacks %s", s.name)
			}
			continue
		}
		if !strings.Contains(text.String(), "\n  --"+s.name) {
			t.Errorf("the help lacks --%s", s.name)
		}
		if !strings.Contains(text.String(), "("+s.variable()+")") {
			t.Errorf("the help lacks %s", s.variable())
		}
		if s.help == "" || !strings.Contains(text.String(), s.help) {
			t.Errorf("the help does not say what --%s is for", s.name)
		}
		if s.def != "" && !strings.Contains(text.String(), "(default "+s.def+")") {
			t.Errorf("the help lacks the default of --%s", s.name)
		}
	}
	for _, k := range agentKeys {
		if k.help == "" || !strings.Contains(text.String(), "\n  "+k.name+" ("+strings.Join(k.of, ", ")+")\n        "+k.help) {
			t.Errorf("the help does not say what %s of an agent is for", k.name)
		}
	}
}

func TestDefaultsAreAWorkingConfiguration(t *testing.T) {
	c, err := load(nil, variables(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Database != "threadcast.db" || c.Agents.given != nil || c.Insecure {
		t.Errorf("the defaults are %+v", c)
	}
	if c.Run.Lease != 15*time.Second || c.Grace != 15*time.Second || c.Run.Retention != 5*time.Minute || c.LogLevel != slog.LevelInfo {
		t.Errorf("the defaults are %+v", c)
	}
}

func TestSourcesAreRanked(t *testing.T) {
	file := configFile(t, "listen: 127.0.0.1:1001\nlease: 1s\ngrace: 10s\nmax-frame: 2048\nagent:\n  - a=demo\n  - b=demo\n")
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"the file wins over the default":      {[]string{"--config", file}, nil, "127.0.0.1:1001"},
		"the file may be named by a variable": {nil, map[string]string{"THREADCAST_CONFIG": file}, "127.0.0.1:1001"},
		"a variable wins over the file": {
			[]string{"--config", file}, map[string]string{"THREADCAST_LISTEN": "127.0.0.1:1002"}, "127.0.0.1:1002",
		},
		"an empty variable counts as none": {
			[]string{"--config", file}, map[string]string{"THREADCAST_LISTEN": ""}, "127.0.0.1:1001",
		},
		"a flag wins over a variable": {
			[]string{"--config", file, "--listen", "127.0.0.1:1003"},
			map[string]string{"THREADCAST_LISTEN": "127.0.0.1:1002"}, "127.0.0.1:1003",
		},
		"the last of two flags counts": {[]string{"--listen=127.0.0.1:1", "--listen=127.0.0.1:2"}, nil, "127.0.0.1:2"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(test.args, variables(test.env))
			if err != nil {
				t.Fatal(err)
			}
			if c.Listen != test.want {
				t.Errorf("it listens on %s, not %s", c.Listen, test.want)
			}
		})
	}
}

func TestListsReplaceThoseBelow(t *testing.T) {
	file := configFile(t, "agent: [a=demo, b=demo]\n")
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"the file's":      {nil, nil, "a=demo b=demo"},
		"a variable's":    {nil, map[string]string{"THREADCAST_AGENT": "c=demo d=demo"}, "c=demo d=demo"},
		"those of flags":  {[]string{"--agent", "e=demo", "--agent", "f=demo"}, map[string]string{"THREADCAST_AGENT": "c=demo"}, "e=demo f=demo"},
		"a flag once set": {[]string{"--agent", "e=demo"}, nil, "e=demo"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(append([]string{"--config", file}, test.args...), variables(test.env))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.Agents.given, " "); got != test.want {
				t.Errorf("the agents are %q, not %q", got, test.want)
			}
		})
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		file string
		want string // in the error
	}{
		"unknown flag":            {args: []string{"--liste", "x"}, want: "-liste"},
		"argument":                {args: []string{"--insecure", "yes"}, want: `unexpected argument "yes"`},
		"flag without its value":  {args: []string{"--listen"}, want: "listen"},
		"no port":                 {args: []string{"--listen", "localhost"}, want: "is not HOST:PORT"},
		"all addresses":           {args: []string{"--listen", "0.0.0.0:1"}, want: "add --insecure"},
		"no host":                 {args: []string{"--listen", ":1"}, want: "add --insecure"},
		"all IPv6 addresses":      {args: []string{"--listen", "[::]:1"}, want: "add --insecure"},
		"an address of a network": {args: []string{"--listen", "192.168.1.2:1"}, want: "add --insecure"},
		"postgres alone":          {args: []string{"--database", "postgres://u:hunter2@x"}, want: "add --redis URL"},
		"another database":        {args: []string{"--database", "mysql://u:hunter2@x/y"}, want: "mysql://x/y is neither"},
		"not a duration":          {args: []string{"--lease", "15"}, want: `--lease: "15" must be a duration such as 15s`},
		"too short":               {args: []string{"--lease", "1ms"}, want: "must be at least 300ms"},
		"too long":                {args: []string{"--ping", "26s"}, want: "must be at most 25s"},
		"not a number":            {args: []string{"--max-frame", "4M"}, want: "must be a number of at least 1024"},
		"not a level":             {args: []string{"--log-level", "loud"}, want: "--log-level"},
		"not a format":            {args: []string{"--log-format", "xml"}, want: "must be one of text, json"},
		"not a form of a stop":    {args: []string{"--stop-terminal", "cancelled"}, want: "must be one of finished, error"},
		"not a boolean":           {args: []string{"--insecure=perhaps"}, want: "must be true or false"},
		"in a variable":           {env: map[string]string{"THREADCAST_GRACE": "soon"}, want: `THREADCAST_GRACE: "soon"`},
		"in the file":             {file: "grace: soon\n", want: "grace in "},
		"unknown key":             {file: "lisen: 127.0.0.1:1\n", want: `unknown key "lisen"`},
		"a key twice":             {file: "grace: 5s\ngrace: 6s\n", want: "grace"},
		"a list for one value":    {file: "grace: [5s, 6s]\n", want: "takes one value"},
		"not YAML":                {file: "grace: [5s\n", want: "threadcast.yaml"},
		"no such file":            {args: []string{"--config", "/does/not/exist.yaml"}, want: "/does/not/exist.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			args := test.args
			if test.file != "" {
				args = append(args, "--config", configFile(t, test.file))
			}
			_, err := load(args, variables(test.env))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("the error is %v; it should speak of %q", err, test.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows a password", err)
			}
			if !errors.As(err, new(usageError)) {
				t.Errorf("%v does not count as a mistake of the caller", err)
			}
		})
	}
}

func TestAddressesThatAreLetIn(t *testing.T) {
	for _, args := range [][]string{
		{"--listen", "localhost:1"},
		{"--listen", "127.1.2.3:1"},
		{"--listen", "[::1]:1"},
		{"--listen", "0.0.0.0:1", "--insecure"},
		{"--listen", ":1", "--insecure=true"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if _, err := load(args, variables(nil)); err != nil {
				t.Errorf("%v is refused: %v", args, err)
			}
		})
	}
}
