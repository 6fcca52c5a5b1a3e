package redislog

import (
	"context"
	"crypto/sha1" //nolint:gosec // how Redis names scripts
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// script is a script with its name in Redis.
type script struct{ source, sha string }

// scripts are all there are.
type scripts struct {
	acquire, renew, release, holder, ask, abandoned script
	append, look, drop, forget, probe, tell, claim  script
	// last is append for a batch with the end of its run: it is let in though the memory is used up.
	last script
}

// overMemory lets a script write though the memory is used up. Redis knows it since 7.0.
const overMemory = "#!lua flags=allow-oom\n"

// loadScripts reads the scripts. What bounds the memory is that no events are let in, where flags are known: what is
// needed to end runs is small.
func loadScripts(flags bool) scripts {
	load := func(name string, always bool) script {
		source := read("common") + read(name)
		if flags && always {
			source = overMemory + source
		}
		sum := sha1.Sum([]byte(source)) //nolint:gosec // how Redis names scripts
		return script{source: source, sha: hex.EncodeToString(sum[:])}
	}
	return scripts{
		acquire: load("acquire", true), renew: load("renew", true), release: load("release", true),
		holder: load("holder", true), ask: load("ask", true), abandoned: load("abandoned", true),
		append: load("append", false), last: load("append", true),
		look: load("look", true), drop: load("drop", true), forget: load("forget", true), probe: load("probe", true),
		tell: load("tell", true), claim: load("claim", true),
	}
}

func read(name string) string {
	data, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // they are part of the program
	}
	return string(data)
}

// call is a script with what it is called with.
type call struct {
	script script
	keys   []string
	args   []any
}

// run calls a script for somebody who asks, and returns its reply, which is a list.
func (s *server) run(ctx context.Context, c call) ([]any, error) {
	return s.runOver(ctx, s.commands, c)
}

// runFor is run for what a run needs: it does not wait for those who only look.
func (s *server) runFor(ctx context.Context, c call) ([]any, error) { return s.runOver(ctx, s.runs, c) }

func (s *server) runOver(ctx context.Context, client redis.UniversalClient, c call) ([]any, error) {
	replies, err := s.runAll(ctx, client, []call{c})
	if err != nil {
		return nil, err
	}
	return replies[0].list, replies[0].err
}

// reply is what a script answered.
type reply struct {
	list []any
	err  error
}

// runAll calls scripts in one round trip, or as many as there are nodes. It returns as many replies as there are calls;
// the error is that of the whole. Scripts that the server does not know are sent to it.
func (s *server) runAll(ctx context.Context, client redis.UniversalClient, calls []call) ([]reply, error) {
	ctx, cancel, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	replies, unknown := send(ctx, client, calls, false)
	if len(unknown) > 0 {
		again := make([]call, len(unknown))
		for i, at := range unknown {
			again[i] = calls[at]
		}
		late, _ := send(ctx, client, again, true)
		for i, at := range unknown {
			replies[at] = late[i]
		}
	}
	for i := range replies {
		replies[i].err = s.classify(ctx, replies[i].err)
	}
	return replies, nil
}

// send sends calls in one pipeline, whole or by the names of their scripts, and returns the replies, and which of the
// calls the server does not know the script of.
func send(ctx context.Context, client redis.UniversalClient, calls []call, whole bool) (replies []reply, unknown []int) {
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		if whole {
			cmds[i] = pipe.Eval(ctx, c.script.source, c.keys, c.args...)
		} else {
			cmds[i] = pipe.EvalSha(ctx, c.script.sha, c.keys, c.args...)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	replies = make([]reply, len(calls))
	for i, cmd := range cmds {
		got, err := cmd.Result()
		switch list := got.(type) {
		case []any:
			replies[i] = reply{list: list, err: err}
		default:
			replies[i] = reply{list: []any{got}, err: err}
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	return replies, unknown
}

// fields reads a reply, or a part of one, as texts; what is nil is empty.
func fields(list []any) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case string:
			texts[i] = v
		case int64:
			texts[i] = fmt.Sprint(v)
		}
	}
	return texts
}
