package redislog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

const (
	// maxData is the greatest length of an entry's data, in bytes.
	maxData = 256 << 20
	// maxNumber bounds runs and seqs: the numbers of scripts are exact up to there.
	maxNumber = 1 << 53
)

// The fields of entries, by kind.
const (
	fieldEvent = "event"
	fieldEnd   = "end"
)

// Append adds entries of one run, whose seqs follow each other, all or none of them, and returns when they are in
// Redis. Entries that the run already has are passed over. It returns [thread.ErrLeaseLost] if the lease is not the
// thread's current one, [thread.ErrGap] if the first entry does not follow the run's last one, [thread.ErrEnded] if
// an entry would follow the end of its run or belongs to a run before the thread's latest, [thread.ErrBadInput] if
// the entries are not of one run, [thread.ErrFull] if the memory of Redis is used up, when nothing was added, and
// [thread.ErrUnavailable] if it is not known whether they were. It blocks while too much waits to be sent. If ctx is
// done meanwhile, the entries may have been added or not.
//
// If Redis lost its data, the lease is written again with its token unless somebody else took the thread since, and the
// run begins anew: its entries from the first on are asked for with an ErrGap.
func (l *Log) Append(ctx context.Context, ls thread.Lease, entries []thread.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := l.append(ctx, ls, entries); err != nil {
		return fmt.Errorf("append to run %s: %w", ls.RunID, err)
	}
	return nil
}

func (l *Log) append(ctx context.Context, ls thread.Lease, entries []thread.Entry) error {
	size, err := checkBatch(entries)
	if err != nil {
		return err
	}
	own := slices.Clone(entries) // for a caller that does not wait for the end
	group := groupOf(ls.Thread)
	r := &request{ctx: ctx, call: l.appendCall(ls, own), bytes: size}
	list, err := l.appenders[group%len(l.appenders)].do(r)
	if err == nil {
		err = appended(list, own)
	}
	if err != nil {
		l.lanes[group].leaveHome(ls.Thread)
		return err
	}
	l.lanes[group].home(ls.Thread, own)
	return nil
}

func (l *Log) appendCall(ls thread.Lease, entries []thread.Entry) call {
	first, last := entries[0], entries[len(entries)-1]
	group := groupOf(ls.Thread)
	args := make([]any, 0, 11+2*len(entries))
	args = append(args, string(ls.Thread), string(ls.RunID), ls.Owner, micros(l.holders.ttl(ls)), l.opts.Active.Milliseconds(),
		ls.Token, first.Run, string(first.RunID), first.Seq, l.keys.streams(ls.Thread), l.opts.Lock.Milliseconds())
	for _, e := range entries {
		field := fieldEvent
		if e.Kind == thread.KindEnd {
			field = fieldEnd
		}
		args = append(args, field, e.Data)
	}
	c := call{script: l.scripts.append, args: args, keys: []string{
		l.keys.lock(ls.Thread), l.keys.counters(group), l.keys.leases(group), l.keys.active(ls.Thread),
		l.keys.stream(ls.Thread, first.Run), l.keys.news(group),
	}}
	if last.Kind == thread.KindEnd {
		c.script = l.scripts.last
	}
	return c
}

// appended reads the reply to an append.
func appended(list []any, entries []thread.Entry) error {
	answer := fields(list)
	switch answer[0] {
	case "ok":
		return nil
	case "lost":
		return thread.ErrLeaseLost
	case "id":
		return fmt.Errorf("%w: run %d has the id %q, not %q", thread.ErrBadInput, entries[0].Run, answer[1], entries[0].RunID)
	case "ended":
		return fmt.Errorf("%w at entry %s", thread.ErrEnded, answer[1])
	case "later":
		return fmt.Errorf("%w: run %s of the thread has begun", thread.ErrEnded, answer[1])
	case "gap":
		return fmt.Errorf("%w: entry %d after entry %s", thread.ErrGap, entries[0].Seq, answer[1])
	}
	return fmt.Errorf("%w: the script answered %q", thread.ErrCorrupt, answer)
}

// checkBatch tells whether entries are of one run and follow each other, and how many bytes they have.
func checkBatch(entries []thread.Entry) (int, error) {
	first, size := entries[0], 0
	if first.Run == 0 || first.Seq == 0 || first.Run >= maxNumber || first.Seq >= maxNumber-uint64(len(entries)) {
		return 0, fmt.Errorf("%w: there is no entry %s", thread.ErrBadInput, first.Cursor())
	}
	for i, e := range entries {
		switch {
		case e.Run != first.Run || e.RunID != first.RunID:
			return 0, fmt.Errorf("%w: entries of several runs in one batch", thread.ErrBadInput)
		case e.Seq != first.Seq+uint64(i):
			return 0, fmt.Errorf("%w: entry %d after entry %d in one batch", thread.ErrGap, e.Seq, entries[i-1].Seq)
		case e.Kind != thread.KindEvent && e.Kind != thread.KindEnd:
			return 0, fmt.Errorf("%w: entry %s is of unknown kind %d", thread.ErrBadInput, e.Cursor(), e.Kind)
		case e.Kind == thread.KindEnd && i < len(entries)-1:
			return 0, fmt.Errorf("%w: entry %d would follow the end", thread.ErrEnded, e.Seq+1)
		case len(e.Data) > maxData:
			return 0, fmt.Errorf("%w: entry %s has %d bytes", thread.ErrTooLarge, e.Cursor(), len(e.Data))
		}
		size += len(e.Data)
	}
	return size, nil
}

// micros is a duration as scripts want it.
func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
