package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/threadcast/threadcast/persistence/postgres"
	"github.com/threadcast/threadcast/persistence/redislog"
	"github.com/threadcast/threadcast/runner"
	"github.com/threadcast/threadcast/web"
)

// config is what the process is told: by flags, over the environment, over a file, over defaults.
type config struct {
	Listen      string
	Database    string
	Redis       string
	RedisPrefix string
	RedisActive time.Duration
	RedisLock   time.Duration
	Agents      agentList
	Node        string
	LogLevel    slog.Level
	LogFormat   string
	Insecure    bool
	UserHeader  string
	Grace       time.Duration
	MaxFrame    int
	Web         web.Config    // Ping, WriteTimeout, CopilotPath, Origins and PublicURL of it
	Run         runner.Config // Lease, StopGrace, Retention, MaxEventBytes and StopTerminal of it
}

// setting is one row of the configuration table: the flag --name, the variable THREADCAST_NAME, and the key name of the file.
type setting struct {
	name  string
	value string // what stands for the value in the help
	def   string
	list  bool // may be given more than once; each source replaces the lists of those below it
	help  string
	set   func(*config, string) error
}

// onlyInFile stands where a setting has neither flag nor variable, but a form of its own in the file.
var onlyInFile func(*config, string) error

// settings is the configuration: flags, variables, file keys, help and documentation are made from it.
var settings = []setting{
	{"listen", "HOST:PORT", "127.0.0.1:8080", false,
		"where to serve; port 0 picks a free one and prints it",
		func(c *config, s string) error { c.Listen = s; return nil }},
	{"database", "FILE", "threadcast.db", false,
		"the SQLite file that holds live log, leases and history; with --redis, of the history alone, or the postgres:// URL of one that nodes share",
		func(c *config, s string) error { c.Database = s; return nil }},
	{"redis", "URL", "", false,
		"Redis, for the live log and the leases that nodes share: redis://HOST:PORT/0, or the URL of a Sentinel or a Cluster",
		func(c *config, s string) error { c.Redis = s; return nil }},
	{"redis-prefix", "PREFIX", redislog.DefaultPrefix, false,
		"what the names of all keys in Redis begin with; the same for all nodes that serve the same threads",
		func(c *config, s string) error {
			if c.RedisPrefix = s; strings.ContainsAny(s, "{}") {
				return errors.New("must not hold braces")
			}
			return nil
		}},
	{"redis-active", "DURATION", "168h", false,
		"how long Redis keeps a run that is not in the database while no node renews it",
		duration(time.Minute, func(c *config) *time.Duration { return &c.RedisActive })},
	{"redis-lock", "DURATION", "5m", false,
		"how long Redis remembers that a lease was given up, so that what its holder still sends is known to be late",
		duration(time.Second, func(c *config) *time.Duration { return &c.RedisLock })},
	{"agent", "NAME=TYPE:URL", "", true,
		"an agent, such as story=agui:http://127.0.0.1:9000/ or ai=openai:http://127.0.0.1:11434/v1?model=qwen3, " +
			"where keys of the table agents may follow the ?; may be repeated, the first is the default; " +
			"without any, the built-in demo; demo=demo adds it to others; a variable separates several by spaces",
		func(c *config, s string) error { c.Agents.given = append(c.Agents.given, s); return nil }},
	{"agents", "", "", false,
		"a table of agents in place of agent: for each name a table of its keys; --agent and its variable win over it",
		onlyInFile},
	{"node", "NAME", "", false,
		"this node's name in logs and leases; the host's name if not given",
		func(c *config, s string) error { c.Node = s; return nil }},
	{"insecure", "", "false", false,
		"serve on other addresses than loopback although nobody has to log in",
		boolean(func(c *config) *bool { return &c.Insecure })},
	{"allow-origin", "ORIGIN", "", true,
		"the origin of pages that may use this server besides its own, such as https://chat.example or http://localhost:3000; " +
			"may be repeated; * allows all pages of all sites everything that they can do without credentials",
		func(c *config, s string) error {
			c.Web.Origins = append(c.Web.Origins, s)
			return checkOrigin(s)
		}},
	{"public-url", "URL", "", false,
		"how clients reach this server, such as https://chat.example; if not given, by the name they called it",
		func(c *config, s string) error { c.Web.PublicURL = s; return checkPublic(s) }},
	{"copilotkit-path", "PATH", "/api/copilotkit", false,
		"where CopilotKit's clients find this server; with -sse behind it for those that shall use server-sent events",
		func(c *config, s string) error { c.Web.CopilotPath = s; return checkPath(s) }},
	{"user-header", "NAME", "", false,
		"the header in which a proxy in front says who is calling; a request without it is refused, and the proxy has to take away " +
			"the one that a client sends; if not given, whoever calls is the same one user",
		headerName},
	{"log-level", "LEVEL", "info", false, "debug, info, warn or error",
		func(c *config, s string) error {
			if c.LogLevel.UnmarshalText([]byte(s)) != nil {
				return errors.New("must be debug, info, warn or error")
			}
			return nil
		}},
	{"log-format", "FORMAT", "text", false, "text or json",
		func(c *config, s string) error {
			c.LogFormat = s
			return oneOf(s, "text", "json")
		}},
	{"grace", "DURATION", "15s", false,
		"after SIGTERM, in how long the process ends; runs may go on until 3 s before",
		duration(4*time.Second, func(c *config) *time.Duration { return &c.Grace })},
	{"lease", "DURATION", "15s", false,
		"how long a run stays with a node that is not heard of",
		duration(300*time.Millisecond, func(c *config) *time.Duration { return &c.Run.Lease })},
	{"stop-grace", "DURATION", "1s", false,
		"how long an agent may take to return once it was cancelled, before it is abandoned",
		duration(time.Millisecond, func(c *config) *time.Duration { return &c.Run.StopGrace })},
	{"stop-terminal", "FORM", string(runner.StopFinished), false,
		"how a stopped run ends: finished is RUN_FINISHED with the cancelled outcome; error is RUN_ERROR with code stopped, " +
			"for clients from before AG-UI 1.0, which read the former as success",
		func(c *config, s string) error {
			c.Run.StopTerminal = runner.StopTerminal(s)
			return oneOf(s, string(runner.StopFinished), string(runner.StopError))
		}},
	{"retention", "DURATION", "5m", false,
		"how long a finished run stays in the live log, where a returning viewer finds each of its events",
		duration(time.Second, func(c *config) *time.Duration { return &c.Run.Retention })},
	{"ping", "DURATION", "20s", false,
		"time between two pings to a socket; at most 25s, as proxies close what is silent for longer",
		func(c *config, s string) error {
			err := duration(100*time.Millisecond, func(c *config) *time.Duration { return &c.Web.Ping })(c, s)
			if err == nil && c.Web.Ping > 25*time.Second {
				err = errors.New("must be at most 25s")
			}
			return err
		}},
	{"write-timeout", "DURATION", "10s", false,
		"for how long a viewer may not read before its socket is closed; it resumes when it comes back",
		duration(100*time.Millisecond, func(c *config) *time.Duration { return &c.Web.WriteTimeout })},
	{"max-frame", "BYTES", "4194304", false, "greatest size of a frame or request from a client",
		number(1024, func(c *config) *int { return &c.MaxFrame })},
	{"max-event", "BYTES", "8388608", false, "greatest size of one event of an agent; a larger one fails its run, unless it is a tool's result",
		number(1024, func(c *config) *int { return &c.Run.MaxEventBytes })},
	{"max-result", "BYTES", "67108864", false,
		"greatest size of a tool's result; one that is larger than an event may be is kept apart, and the event says where",
		number(1024, func(c *config) *int { return &c.Run.MaxResultBytes })},
	{"max-run", "BYTES", "268435456", false, "greatest size of all events of a run; what sends more fails",
		number(1024, func(c *config) *int { return &c.Run.MaxRunBytes })},
	{"max-events", "NUMBER", "1000000", false, "most events of a run; what sends more fails",
		number(2, func(c *config) *int { return &c.Run.MaxEvents })},
	{"max-run-time", "DURATION", "24h", false, "how long a run may take; then it ends as timed out",
		duration(time.Millisecond, func(c *config) *time.Duration { return &c.Run.MaxRunTime })},
	{"max-silence", "DURATION", "1h", false, "how long an agent may say nothing; then its run ends as timed out",
		duration(time.Millisecond, func(c *config) *time.Duration { return &c.Run.MaxSilence })},
	{"max-queue", "NUMBER", "16", false, "how many runs may wait for their turn on one thread",
		number(1, func(c *config) *int { return &c.Run.MaxQueue })},
}

func boolean(field func(*config) *bool) func(*config, string) error {
	return func(c *config, s string) (err error) {
		if *field(c), err = strconv.ParseBool(s); err != nil {
			err = errors.New("must be true or false")
		}
		return err
	}
}

func duration(least time.Duration, field func(*config) *time.Duration) func(*config, string) error {
	return func(c *config, s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("must be a duration such as 15s or 5m")
		}
		if d < least {
			return fmt.Errorf("must be at least %s", least)
		}
		*field(c) = d
		return nil
	}
}

func number(least int, field func(*config) *int) func(*config, string) error {
	return func(c *config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least {
			return fmt.Errorf("must be a number of at least %d", least)
		}
		*field(c) = n
		return nil
	}
}

func oneOf(s string, allowed ...string) error {
	for _, a := range allowed {
		if s == a {
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
}

func (s setting) variable() string {
	return "THREADCAST_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// values are what the sources give, by setting.
type values map[string][]string

// load merges the sources. env looks a variable up, as os.LookupEnv does.
func load(args []string, env func(string) (string, bool)) (config, error) {
	flags, file, err := parseFlags(args)
	if err != nil {
		return config{}, err
	}
	if file == "" {
		file, _ = env("THREADCAST_CONFIG")
	}
	fromFile, table, err := readFile(file)
	if err != nil {
		return config{}, err
	}
	c := config{Agents: agentList{table: table}}
	for _, s := range settings {
		if s.set == nil {
			continue
		}
		given, source := []string{s.def}, "the default of "+s.name
		if s.list {
			given = nil
		}
		if v, ok := fromFile[s.name]; ok {
			given, source = v, s.name+" in "+file
		}
		if v, ok := env(s.variable()); ok && v != "" {
			given, source = []string{v}, s.variable()
			if s.list {
				given = strings.Fields(v)
			}
		}
		if v, ok := flags[s.name]; ok {
			given, source = v, "--"+s.name
		}
		for _, v := range given {
			if err := s.set(&c, v); err != nil {
				return config{}, usagef("%s: %q %w", source, v, err)
			}
		}
	}
	return c, c.check()
}

func parseFlags(args []string) (values, string, error) {
	given := values{}
	fs := flag.NewFlagSet("threadcast", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	file := fs.String("config", "", "")
	for _, s := range settings {
		if s.set == nil {
			continue
		}
		add := func(v string) error {
			if !s.list {
				delete(given, s.name)
			}
			given[s.name] = append(given[s.name], v)
			return nil
		}
		if s.value == "" {
			fs.BoolFunc(s.name, "", add)
		} else {
			fs.Func(s.name, "", add)
		}
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, "", err
		}
		return nil, "", usageError{err}
	}
	if fs.NArg() > 0 {
		return nil, "", usagef("unexpected argument %q", fs.Arg(0))
	}
	return given, *file, nil
}

// readFile reads a YAML file of settings, and apart from the others its table of agents. A key that is none is an error.
func readFile(name string) (values, []agentSpec, error) {
	if name == "" {
		return nil, nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, usageError{err}
	}
	var keys map[string]any
	if err := yaml.UnmarshalWithOptions(text, &keys, yaml.UseOrderedMap()); err != nil {
		return nil, nil, usagef("%s: %w", name, err)
	}
	var table []agentSpec
	if v, ok := keys["agents"]; ok {
		if _, both := keys["agent"]; both {
			return nil, nil, usagef("%s: agent and agents are two ways to say the same; use one", name)
		}
		if table, err = readAgents(name, v); err != nil {
			return nil, nil, err
		}
		delete(keys, "agents")
	}
	given, err := readKeys(name, keys)
	return given, table, err
}

// readKeys reads the settings of a file that are texts, or lists of them.
func readKeys(name string, keys map[string]any) (values, error) {
	given := values{}
	for key, v := range keys {
		s, ok := find(key)
		if !ok {
			return nil, usagef("%s: unknown key %q; threadcast --help lists the keys", name, key)
		}
		list, isList := v.([]any)
		if isList && !s.list {
			return nil, usagef("%s: %s takes one value, not a list", name, key)
		}
		if !isList {
			list = []any{v}
		}
		for _, item := range list {
			given[key] = append(given[key], fmt.Sprint(item))
		}
	}
	return given, nil
}

func find(name string) (setting, bool) {
	for _, s := range settings {
		if s.name == name {
			return s, true
		}
	}
	return setting{}, false
}

// check refuses combinations that cannot be meant.
func (c *config) check() error {
	switch {
	case c.postgres() && c.Redis == "":
		return usagef("--database: Postgres holds the history, but the live log and the leases need Redis: add --redis URL, " +
			"or give a file name instead, which holds all three for one node")
	case !c.postgres() && strings.Contains(c.Database, "://"):
		return usagef("--database: %s is neither the name of a file nor a postgres:// URL", withoutSecrets(c.Database))
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usagef("--listen: %q is not HOST:PORT", c.Listen)
	}
	if !c.Insecure && !loopback(host) {
		return usagef("--listen: %s can be reached from other machines, and nobody has to log in; "+
			"listen on 127.0.0.1, or add --insecure if that is what you want", c.Listen)
	}
	return nil
}

// postgres tells whether the history is in Postgres rather than in a file.
func (c *config) postgres() bool { return postgres.IsURL(c.Database) }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
