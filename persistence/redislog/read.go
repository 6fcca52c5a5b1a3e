package redislog

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/thread"
)

// readPage is how many entries are asked for at once.
const readPage = 512

// Read returns up to limit entries after the given cursor, in order, crossing runs; none if there are none.
func (l *Log) Read(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	var all []thread.Entry
	for len(all) < limit {
		part, err := l.readRun(ctx, id, after, min(limit-len(all), readPage))
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", id, err)
		}
		if len(part) == 0 {
			break
		}
		if all == nil {
			all = part
		} else {
			all = append(all, part...)
		}
		after = part[len(part)-1].Cursor()
	}
	if all == nil && limit <= 0 {
		_, cancel, err := l.enter(ctx)
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", id, err)
		}
		cancel()
	}
	return all, nil
}

// member is a run as the index of a thread names it.
type member struct {
	number uint64
	id     thread.RunID
}

// readRun returns the entries after a cursor that are of one run, the first that has any.
func (s *server) readRun(ctx context.Context, id thread.ID, after thread.Cursor, limit int) ([]thread.Entry, error) {
	ctx, cancel, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	// The index first: what it does not have any more when it is read is not to be read from its stream.
	pipe := s.commands.Pipeline()
	index := pipe.ZRangeByScore(ctx, s.keys.active(id), &redis.ZRangeBy{
		Min: strconv.FormatUint(after.Run, 10), Max: "+inf", Count: readPage,
	})
	stream := s.rangeOf(ctx, id, after, limit)
	_ = pipe.Process(ctx, stream)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := s.classify(ctx, index.Err()); err != nil {
		return nil, err
	}
	for _, text := range index.Val() {
		m, err := readMember(text)
		if err != nil {
			return nil, err
		}
		if m.number != after.Run {
			stream = s.rangeOf(ctx, id, thread.Cursor{Run: m.number}, limit)
			_ = s.commands.Process(ctx, stream)
		}
		if err := s.classify(ctx, stream.Err()); err != nil {
			return nil, err
		}
		entries, err := readEntries(m, stream.Val())
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
	return nil, nil
}

// rangeOf asks for entries of a run's stream.
func (s *server) rangeOf(ctx context.Context, id thread.ID, after thread.Cursor, limit int) *redis.SliceCmd {
	return redis.NewSliceCmd(ctx, "XRANGE", s.keys.stream(id, after.Run), "("+after.String(), "+", "COUNT", limit)
}

func readMember(text string) (member, error) {
	number, id, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return member{}, fmt.Errorf("%w: the index has the run %q", thread.ErrCorrupt, text)
	}
	return member{number: n, id: thread.RunID(id)}, nil
}

// readEntries reads entries of a run as they are in a reply: lists of an id and a list of one field and its value.
func readEntries(m member, list []any) ([]thread.Entry, error) {
	entries := make([]thread.Entry, len(list))
	for i, one := range list {
		id, field, value, ok := readRaw(one)
		_, seq, _ := strings.Cut(id, "-")
		n, err := strconv.ParseUint(seq, 10, 64)
		e := thread.Entry{Run: m.number, RunID: m.id, Seq: n, Kind: thread.KindEvent, Data: []byte(value)}
		if field == fieldEnd {
			e.Kind = thread.KindEnd
		}
		if !ok || err != nil || e.Cursor().String() != id {
			return nil, fmt.Errorf("%w: run %d has an entry %q", thread.ErrCorrupt, m.number, id)
		}
		entries[i] = e
	}
	return entries, nil
}

// readRaw reads an entry of a stream: its id, and its first field with the value.
func readRaw(one any) (id, field, value string, ok bool) {
	pair, ok := one.([]any)
	if !ok || len(pair) != 2 {
		return "", "", "", false
	}
	id, ok = pair[0].(string)
	values, okValues := pair[1].([]any)
	if !ok || !okValues || len(values) < 2 {
		return id, "", "", false
	}
	field, ok = values[0].(string)
	value, okValue := values[1].(string)
	return id, field, value, ok && okValue
}

// Head returns the position of the thread's last entry in the log; the zero cursor if there is none.
func (l *Log) Head(ctx context.Context, id thread.ID) (thread.Cursor, error) {
	seen, err := l.look(ctx, id)
	if err != nil {
		return thread.Cursor{}, fmt.Errorf("find the head of thread %s: %w", id, err)
	}
	return thread.Cursor{Run: seen.run.number, Seq: seen.last}, nil
}

// sight is how a thread stands in the log, at one moment.
type sight struct {
	news  position // of its group
	gone  position // of the thread's latest deletion, as far as that is remembered
	run   member   // its latest run; zero if there is none
	last  uint64
	ended bool
}

func (s *server) lookCall(id thread.ID) call {
	group := groupOf(id)
	return call{
		script: s.scripts.look, keys: []string{s.keys.active(id), s.keys.counters(group), s.keys.lock(id)},
		args: []any{s.keys.streams(id)},
	}
}

func (s *server) look(ctx context.Context, id thread.ID) (sight, error) {
	list, err := s.run(ctx, s.lookCall(id))
	if err != nil {
		return sight{}, err
	}
	return readSight(list)
}

func readSight(list []any) (sight, error) {
	f := fields(list)
	if len(f) < 6 {
		return sight{}, fmt.Errorf("%w: the state of a thread is %q", thread.ErrCorrupt, f)
	}
	s := sight{news: readPosition(f[0]), gone: readPosition(f[1]), ended: f[5] == "1"}
	s.run.number, _ = strconv.ParseUint(f[2], 10, 64)
	s.run.id = thread.RunID(f[3])
	s.last, _ = strconv.ParseUint(f[4], 10, 64)
	return s, nil
}
