package redislog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/threadcast/threadcast/persistence/thread"
)

// How a lane reads.
const (
	block      = time.Second // how long one call waits for something to come
	readCount  = 256         // entries of each stream in one call
	retryLane  = 50 * time.Millisecond
	retryLanes = time.Second
	lookChunk  = 100 // threads that are looked at in one round trip
)

// lane is the reader of one group: it blocks on the group's news, on its own probes, and on the streams of the runs that
// are watched and live, and brings what comes to the tails.
type lane struct {
	log    *Log
	group  int
	waking atomic.Bool // it will be woken

	mu      sync.Mutex
	watches map[thread.ID]*watch
	news    position
	probed  string    // id of the last probe that came
	echo    time.Time // when the last probe was written that came back
	lost    bool      // something may have been missed: look at everything
	notices []notice  // what the boards are to be told
}

func newLane(l *Log, group int) *lane {
	return &lane{
		log: l, group: group, watches: make(map[thread.ID]*watch), probed: "0-0", lost: true, echo: time.Now(),
	}
}

// run reads until the log is closed.
func (ln *lane) run() {
	wait := retryLane
	for !ln.log.closing() {
		began := time.Now()
		err := ln.recover()
		streams := 0
		if err == nil {
			streams, err = ln.read()
		}
		for _, tell := range ln.takeNotices() {
			tell()
		}
		if err == nil {
			wait = retryLane
			if left := pace(streams) - time.Since(began); left > 0 && !ln.log.pause(left) {
				return
			}
			continue
		}
		ln.doubt()
		ln.log.opts.Logger.Debug("live log not read; tried again", "group", ln.group, "err", err)
		if !ln.log.pause(wait) {
			return
		}
		wait = min(2*wait, retryLanes)
	}
}

// pace is the least time between two calls that read so many streams: what comes meanwhile comes with one of them.
func pace(streams int) time.Duration {
	switch {
	case streams <= 16:
		return 0
	case streams <= 100:
		return 2 * time.Millisecond
	}
	return 5 * time.Millisecond
}

// doubt makes the lane look at everything before it reads on.
func (ln *lane) doubt() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.lost = true
}

// notify has a board told something, if anything, once nothing is locked. The lane is locked.
func (ln *lane) notify(n notice) {
	if n != nil {
		ln.notices = append(ln.notices, n)
	}
}

// toBoard is notify for the board of the threads.
func (ln *lane) toBoard(tell func(Board)) {
	if board := ln.log.board.Load(); board != nil {
		ln.notify(func() { tell(*board) })
	}
}

func (ln *lane) takeNotices() []notice {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	notices := ln.notices
	ln.notices = nil
	return notices
}

// source is a stream that is read, and whose.
type source struct {
	thread thread.ID
	run    member
}

// list returns what is to be read, and from where: the news, the probes, and then the streams of runs.
func (ln *lane) list() (args []any, runs map[string]source) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	runs = make(map[string]source)
	names := []any{ln.log.keys.news(ln.group), ln.log.keys.probe(ln.group, ln.log.node)}
	ids := []any{ln.news.String(), ln.probed}
	for id, w := range ln.watches {
		if !w.live || w.home {
			continue
		}
		key := ln.log.keys.stream(id, w.run.number)
		runs[key] = source{thread: id, run: w.run}
		names = append(names, key)
		ids = append(ids, thread.Cursor{Run: w.run.number, Seq: w.last}.String())
	}
	args = make([]any, 0, 6+2*len(names))
	args = append(args, "XREAD", "COUNT", readCount, "BLOCK", block.Milliseconds(), "STREAMS")
	args = append(args, names...)
	return append(args, ids...), runs
}

// firstKey is the place of the first name in what list returns.
const firstKey = 6

// read makes one call, and brings what came. It returns how many streams it read.
func (ln *lane) read() (int, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), block+ioTimeout, errDeadline)
	defer cancel()
	args, runs := ln.list()
	cmd := redis.NewSliceCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	err := (*ln.log.reads.Load()).Process(ctx, cmd)
	if errors.Is(err, redis.Nil) {
		return len(runs), nil
	}
	if err != nil {
		return 0, err
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	news, probes := ln.log.keys.news(ln.group), ln.log.keys.probe(ln.group, ln.log.node)
	var lines, echoes []any
	for _, one := range cmd.Val() {
		name, list, ok := readStream(one)
		switch {
		case !ok:
			return 0, fmt.Errorf("%w: a reply of another form", thread.ErrCorrupt)
		case name == news:
			lines = list
		case name == probes:
			echoes = list
		default:
			if err := ln.bring(runs[name], list); err != nil {
				return 0, err
			}
		}
	}
	// What the runs brought was there before the news that came with it.
	ln.hearAll(lines)
	ln.echoed(echoes)
	return len(runs), nil
}

// readStream reads one stream of a reply: its name and its entries.
func readStream(one any) (name string, list []any, ok bool) {
	pair, ok := one.([]any)
	if !ok || len(pair) != 2 {
		return "", nil, false
	}
	name, ok = pair[0].(string)
	list, okList := pair[1].([]any)
	return name, list, ok && okList
}

// bring brings entries of a run to its tails.
func (ln *lane) bring(from source, list []any) error {
	entries, err := readEntries(from.run, list)
	if err != nil || len(entries) == 0 {
		return err
	}
	// The watch may have gone on to another run, or have them already.
	if w := ln.watches[from.thread]; w != nil && w.run == from.run && !w.home && w.last < entries[len(entries)-1].Seq {
		w.put(entries)
	}
	return nil
}

// hearAll does what the news call for. If some are missing, the lane has to look for itself.
func (ln *lane) hearAll(lines []any) {
	for _, one := range lines {
		n, ok := readLine(one)
		if !ok || n.at.first != ln.news.first || n.at.number != ln.news.number+1 {
			ln.lost = true
			return
		}
		ln.news = n.at
		ln.hear(n)
	}
}

// recover looks at everything, if something may have been missed: where the news are, and then at each thread.
func (ln *lane) recover() error {
	ln.mu.Lock()
	lost := ln.lost
	ln.lost = false
	ln.mu.Unlock()
	if !lost {
		return nil
	}
	err := ln.lookAround()
	if err != nil {
		ln.doubt()
	}
	return err
}

func (ln *lane) lookAround() error {
	list, err := ln.log.run(context.Background(), ln.log.probeCall(ln.group, 0))
	if err != nil {
		return err
	}
	ln.mu.Lock()
	was := ln.news
	ln.news, ln.probed = readProbe(list), "0-0"
	missed := was != ln.news // those that watched before the lane came may have
	ids := make([]thread.ID, 0, len(ln.watches))
	for id := range ln.watches {
		ids = append(ids, id)
		if missed {
			ln.toBoard(func(b Board) { b.Missed(id) })
		}
	}
	if missed {
		ln.notify(ln.log.missedLists())
	}
	ln.mu.Unlock()
	ln.log.holders.wakeGroup(ln.group)
	for len(ids) > 0 {
		n := min(len(ids), lookChunk)
		if err := ln.lookAt(ids[:n]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (ln *lane) lookAt(ids []thread.ID) error {
	calls := make([]call, len(ids))
	for i, id := range ids {
		calls[i] = ln.log.lookCall(id)
	}
	replies, err := ln.log.runAll(context.Background(), ln.log.commands, calls)
	if err != nil {
		return err
	}
	for i, r := range replies {
		if r.err != nil {
			return r.err
		}
		s, err := readSight(r.list)
		if err != nil {
			return err
		}
		ln.mu.Lock()
		if w := ln.watches[ids[i]]; w != nil {
			w.see(s)
		}
		ln.mu.Unlock()
	}
	return nil
}
