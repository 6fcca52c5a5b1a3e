package redislog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/thread"
)

// Warning is something about the server that puts what is in it at risk: a sentence for the operator.
type Warning string

// version is that of Redis, or the one of Redis that another server says it is like.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// eachServer calls fn for every server that holds keys.
func (s *server) eachServer(ctx context.Context, fn func(context.Context, redis.Cmdable) error) error {
	if c, ok := s.commands.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, one *redis.Client) error { return fn(ctx, one) })
	}
	return fn(ctx, s.commands)
}

// version looks at the servers, and refuses those that are too old. It returns the oldest.
func (s *server) version(ctx context.Context) (version, error) {
	ctx, cancel, err := s.enter(ctx)
	if err != nil {
		return version{}, err
	}
	defer cancel()
	found := make(chan version, 64)
	err = s.eachServer(ctx, func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		v, text := readVersion(info)
		if !v.atLeast(6, 2) {
			return fmt.Errorf("%w: %w: it is version %s; 6.2 or later is needed", thread.ErrUnavailable, errTooOld, text)
		}
		select {
		case found <- v:
		default:
		}
		return nil
	})
	if errors.Is(err, errTooOld) {
		return version{}, err
	}
	if err != nil {
		return version{}, s.classify(ctx, err)
	}
	oldest := version{major: 1 << 30}
	for len(found) > 0 {
		if v := <-found; !v.atLeast(oldest.major, oldest.minor) {
			oldest = v
		}
	}
	return oldest, nil
}

var errTooOld = errors.New("this Redis is too old")

// readVersion reads redis_version from what INFO tells.
func readVersion(info string) (version, string) {
	text := infoField(info, "redis_version")
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var v version
	v.major, _ = strconv.Atoi(major)
	v.minor, _ = strconv.Atoi(minor)
	return v, text
}

// infoField returns the value of a field of INFO; empty if it is not there.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// Check looks at how the servers are set up, and says what puts runs at risk: that keys may be evicted, that nothing is
// written to a disk, that memory has no bound or is nearly used up. The error is that of looking.
func (l *Log) Check(ctx context.Context) ([]Warning, error) {
	ctx, cancel, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	found := make(chan Warning, 64)
	err = l.eachServer(ctx, func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx).Result()
		if err != nil {
			return err
		}
		saves := "unknown" // some services do not let one ask
		if got, err := c.ConfigGet(ctx, "save").Result(); err == nil {
			saves = got["save"]
		}
		for _, w := range judge(info, saves) {
			select {
			case found <- w:
			default:
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at how Redis is set up: %w", l.classify(ctx, err))
	}
	var all []Warning
	seen := make(map[Warning]bool)
	for len(found) > 0 {
		if w := <-found; !seen[w] {
			seen[w] = true
			all = append(all, w)
		}
	}
	return all, nil
}

// judge says what is risky about a server, by what INFO tells of it and what it saves snapshots by.
func judge(info, saves string) []Warning {
	var all []Warning
	if policy := infoField(info, "maxmemory_policy"); policy != "noeviction" && policy != "" {
		all = append(all, Warning(fmt.Sprintf("Redis evicts keys when its memory is used up (maxmemory-policy is %s), and "+
			"a run is one key: a run that goes on may vanish from the live log. Set maxmemory-policy to noeviction.", policy)))
	}
	switch aof := infoField(info, "aof_enabled"); {
	case aof == "0" && saves == "":
		all = append(all, "Redis writes nothing to its disk (appendonly is no and there are no save points): when it is "+
			"restarted, runs that go on are written again by the nodes that run them, but what ended and is not in the "+
			"history yet is lost. Set appendonly to yes.")
	case aof == "0":
		all = append(all, "Redis writes only snapshots to its disk (appendonly is no): when it is restarted, it is some "+
			"minutes behind. Set appendonly to yes.")
	}
	most, _ := strconv.ParseFloat(infoField(info, "maxmemory"), 64)
	if used, _ := strconv.ParseFloat(infoField(info, "used_memory"), 64); most > 0 && used > 0.9*most {
		all = append(all, Warning(fmt.Sprintf("Redis has used %.0f %% of the memory that it may use (maxmemory).", 100*used/most)))
	}
	return all
}
