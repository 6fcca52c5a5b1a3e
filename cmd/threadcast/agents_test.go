package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/threadcast/threadcast/runner"
)

// secretText is what must not be printed.
const secretText = "hunter2"

var agentEnv = variables(map[string]string{"AI_KEY": "sk-" + secretText + "\n", "EMPTY": "", "STORY_AUTH": "Bearer " + secretText})

// loadAgents makes the agents that arguments, or a file, configure.
func loadAgents(t *testing.T, file string, args ...string) (*agents, error) {
	t.Helper()
	if file != "" {
		args = append(args, "--config", file)
	}
	c, err := load(args, agentEnv)
	if err != nil {
		return nil, err
	}
	a, err := newAgents(c.Agents, agentEnv, 0)
	if err == nil {
		t.Cleanup(a.Close)
	}
	return a, err
}

func TestAgentsAreChecked(t *testing.T) {
	const ai = "x=openai:http://h/v1?model=m"
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		specs []string
		want  string
	}{
		"no name":         {[]string{"demo"}, "is not NAME=TYPE:URL"},
		"empty name":      {[]string{"=demo"}, "name is missing"},
		"unknown type":    {[]string{"x=magic:http://h/"}, `unknown type "magic"; this version has agui, openai, demo`},
		"the same twice":  {[]string{"x=demo", "x=demo"}, `two agents named "x"`},
		"no URL":          {[]string{"x=agui"}, "http or https URL"},
		"not a web URL":   {[]string{"x=agui:ftp://h/"}, "http or https URL"},
		"no model":        {[]string{"x=openai:http://h/v1"}, "model is missing; for --agent it follows the URL: ?model=NAME"},
		"openai, no URL":  {[]string{"x=openai:?model=m"}, "http or https URL"},
		"credentials":     {[]string{"x=openai:http://u:" + secretText + "@h/v1?model=m"}, "no credentials"},
		"unknown key":     {[]string{ai + "&models=n"}, `unknown key "models"; an agent of type openai has type, url, model, key_env`},
		"key of another":  {[]string{ai + "&headers=x"}, `unknown key "headers"`},
		"key twice":       {[]string{ai + "&model=n"}, "model takes one value"},
		"type":            {[]string{ai + "&type=agui"}, "type stands before the ?"},
		"bad query":       {[]string{ai + "%zz"}, "cannot be read"},
		"unset variable":  {[]string{ai + "&key_env=NO_SUCH"}, "the environment variable NO_SUCH, which key_env names, is not set"},
		"empty variable":  {[]string{ai + "&key_env=EMPTY"}, "the environment variable EMPTY, which key_env names, is not set"},
		"a key as name":   {[]string{ai + "&key_env=sk-" + secretText}, "key_env takes the name of an environment variable"},
		"two prompts":     {[]string{ai + "&system=x&system_file=y"}, "system and system_file are one too many"},
		"no prompt file":  {[]string{ai + "&system_file=/does/not/exist"}, "/does/not/exist"},
		"an empty prompt": {[]string{ai + "&system_file=" + empty}, "is empty"},
		"what to allow":   {[]string{ai + "&allow=tools"}, `"tools" cannot be allowed; what can is model, temperature`},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, spec := range test.specs {
				args = append(args, "--agent", spec)
			}
			_, err := loadAgents(t, "", args...)
			checkMistake(t, err, test.want)
		})
	}
}

func checkMistake(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("the error is %v; it should speak of %q", err, want)
	}
	if !errors.As(err, new(usageError)) {
		t.Errorf("%v does not count as a mistake of the caller", err)
	}
	if strings.Contains(err.Error(), secretText) {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func TestAgentsOfTheFileAreChecked(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"a list":            {"agents: [a=demo]\n", "agents takes a table of names"},
		"nothing":           {"agents:\n", "agents takes a table of names"},
		"no keys":           {"agents: {x: demo}\n", `"x": it takes a table of keys`},
		"no type":           {"agents: {x: {url: 'http://h/'}}\n", `"x": type is missing; it can be agui, openai, demo`},
		"unknown type":      {"agents: {x: {type: magic}}\n", `unknown type "magic"`},
		"unknown key":       {"agents: {x: {type: agui, url: 'http://h/', hedaers: {}}}\n", `unknown key "hedaers"; an agent of type agui has type, url, headers, header_env`},
		"key of another":    {"agents: {x: {url: 'http://h/', type: demo}}\n", `unknown key "url"; an agent of type demo has type`},
		"no model":          {"agents: {x: {type: openai, url: 'http://h/v1'}}\n", "model is missing"},
		"no URL":            {"agents: {x: {type: openai, model: m}}\n", "http or https URL"},
		"a model of many":   {"agents: {x: {type: openai, model: [m]}}\n", "model takes one value"},
		"a model of none":   {"agents: {x: {type: openai, model: }}\n", "model takes one value"},
		"unset variable":    {"agents: {x: {type: openai, url: 'http://h/v1', model: m, key_env: NO_SUCH}}\n", "NO_SUCH"},
		"a key as name":     {"agents: {x: {type: openai, url: 'http://h/v1', model: m, key_env: sk-" + secretText + "}}\n", "key_env takes the name"},
		"headers of one":    {"agents: {x: {type: agui, url: 'http://h/', headers: x}}\n", "headers takes a table"},
		"a header of many":  {"agents: {x: {type: agui, url: 'http://h/', headers: {a: [b]}}}\n", "headers takes one value for a"},
		"unset header":      {"agents: {x: {type: agui, url: 'http://h/', header_env: {a: NO_SUCH}}}\n", "NO_SUCH, which header_env names"},
		"a header twice":    {"agents: {x: {type: agui, url: 'http://h/', headers: {a: b}, header_env: {A: STORY_AUTH}}}\n", "header A is given twice"},
		"a bad header":      {"agents: {x: {type: agui, url: 'http://h/', headers: {'a b': b}}}\n", "not one of HTTP"},
		"a name twice":      {"agents: {x: {type: demo}, x: {type: demo}}\n", "x"},
		"both ways":         {"agent: [a=demo]\nagents: {x: {type: demo}}\n", "agent and agents are two ways"},
		"a table elsewhere": {"listen: {a: b}\n", "is not HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadAgents(t, configFile(t, test.file))
			checkMistake(t, err, test.want)
		})
	}
}

func TestAgentsOfTheFile(t *testing.T) {
	file := configFile(t, "agents:\n"+
		"  zeta: {type: openai, url: 'http://h:1/v1', model: qwen3, key_env: AI_KEY, allow: [model, temperature], system: Be kind.}\n"+
		"  story: {type: agui, url: 'http://h:2/p?team=1', headers: {X-Team: 7}, header_env: {Authorization: STORY_AUTH}}\n"+
		"  alpha: {type: demo}\n")
	a, err := loadAgents(t, file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"zeta  openai, qwen3 at http://h:1/v1", "story  agui at http://h:2/p", "alpha  demo, built in"}
	if diff := cmp.Diff(want, a.where); diff != "" {
		t.Errorf("printed is (-want +got):\n%s", diff)
	}
	if !a.list[0].Default || a.list[0].ID != "zeta" || a.list[0].Type != "openai" || a.list[1].Default {
		t.Errorf("clients are told %+v", a.list)
	}
	a, err = loadAgents(t, file, "--agent", "x=demo")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.list) != 1 || a.list[0].ID != "x" {
		t.Errorf("--agent does not win over the file: %+v", a.list)
	}
}

// TestAgentsSendWhatIsConfigured holds that each key arrives where it is meant to, from the file and from a flag.
func TestAgentsSendWhatIsConfigured(t *testing.T) {
	var header http.Header
	var body, uri string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_ = r.Write(&b)
		_, body, _ = strings.Cut(b.String(), "\r\n\r\n")
		header, uri = r.Header, r.RequestURI
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1},\"type\":\"CUSTOM\"}\n\ndata: [DONE]\n\n"))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	prompt := write("prompt.txt", "You are Ann.\n")
	for name, test := range map[string]struct {
		file, flag string
		want       []string // in the body
	}{
		"file": {
			file: "agents: {x: {type: openai, url: '" + server.URL + "/v1', model: m, key_env: AI_KEY, system_file: prompt.txt, allow: 'temperature, max_tokens', provider: home}}\n",
			want: []string{`"model":"m"`, `"You are Ann."`, `"temperature":0.5`, `"max_tokens":7`},
		},
		"flag": {
			flag: "x=openai:" + server.URL + "/v1?model=m&key_env=AI_KEY&allow=temperature,max_tokens&provider=home&system_file=" + prompt,
			want: []string{`"model":"m"`, `"You are Ann."`, `"temperature":0.5`, `"max_tokens":7`},
		},
		"prompt in the flag": {
			flag: "x=openai:" + server.URL + "/v1/?model=m&key_env=AI_KEY&system=You+are+Ann.&provider=home",
			want: []string{`"model":"m"`, `"You are Ann."`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			file := ""
			if test.file != "" {
				file = write("threadcast.yaml", test.file)
			} else {
				args = []string{"--agent", test.flag}
			}
			a, err := loadAgents(t, file, args...)
			if err != nil {
				t.Fatal(err)
			}
			in := runner.Input{ThreadID: "t", RunID: "r", JSON: []byte(`{"messages":[{"id":"u","role":"user","content":"Hi"}],"forwardedProps":{"temperature":0.5,"max_tokens":7}}`)}
			var last string
			if err := a.byID["x"].Run(t.Context(), in, func(event []byte) error { last = string(event); return nil }); err != nil {
				t.Fatal(err)
			}
			if uri != "/v1/chat/completions" || header.Get("Authorization") != "Bearer sk-"+secretText {
				t.Errorf("asked for was %s with %v", uri, header)
			}
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("sent was %s, which lacks %s", body, want)
				}
			}
			if !strings.Contains(last, `"provider":"home"`) {
				t.Errorf("the usage is told as %s", last)
			}
		})
	}
	t.Run("headers", func(t *testing.T) {
		a, err := loadAgents(t, configFile(t, "agents: {x: {type: agui, url: '"+server.URL+"/p?team=1', headers: {X-Team: 7}, header_env: {Authorization: STORY_AUTH}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		_ = a.byID["x"].Run(t.Context(), runner.Input{JSON: []byte("{}")}, func([]byte) error { return nil }) // it is no AG-UI
		if uri != "/p?team=1" || header.Get("X-Team") != "7" || header.Get("Authorization") != "Bearer "+secretText {
			t.Errorf("asked for was %s with %v", uri, header)
		}
	})
}

func TestSecretsOfAnAddressAreNotPrinted(t *testing.T) {
	a, err := loadAgents(t, "", "--agent", "x=agui:http://user:"+secretText+"@h:1/p?key="+secretText,
		"--agent", "y=openai:http://h:2/v1?model=m&key_env=AI_KEY&system="+secretText)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(a.where, "\n"); strings.Contains(got, secretText) || !strings.Contains(got, "h:1/p") || !strings.Contains(got, "m at http://h:2/v1") {
		t.Errorf("printed is %q", got)
	}
}
